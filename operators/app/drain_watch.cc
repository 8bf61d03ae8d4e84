#include "operators/app/drain_watch.h"

#include <algorithm>
#include <utility>

namespace weir::internal {

std::vector<std::set<std::string>> drain_stages(const Plan& plan) {
  std::set<std::string> read;
  std::set<std::string> written;
  for (const SubTopology& sub_topology : plan.sub_topologies) {
    read.insert(sub_topology.source_topics.begin(), sub_topology.source_topics.end());
    written.insert(sub_topology.sink_topics.begin(), sub_topology.sink_topics.end());
  }
  std::set<std::string> stage;
  for (const std::string& topic : read) {
    if (!written.contains(topic)) {
      stage.insert(topic);
    }
  }
  if (stage.empty()) {
    stage = read;  // a circle has no first topic
  }
  std::vector<std::set<std::string>> stages;
  std::set<std::string> seen;
  while (!stage.empty()) {
    seen.insert(stage.begin(), stage.end());
    std::set<std::string> next;
    for (const SubTopology& sub_topology : plan.sub_topologies) {
      const bool reads_stage =
          std::any_of(sub_topology.source_topics.begin(), sub_topology.source_topics.end(),
                      [&](const std::string& topic) { return stage.contains(topic); });
      for (const std::string& topic : sub_topology.sink_topics) {
        if (reads_stage && read.contains(topic) && !seen.contains(topic)) {
          next.insert(topic);
        }
      }
    }
    stages.push_back(std::exchange(stage, std::move(next)));
  }
  return stages;
}

StagedDrainWatch::StagedDrainWatch(AppCore& core)
    : core_(core), stages_(drain_stages(core.plan())) {}

Result<std::unique_ptr<StagedDrainWatch>> StagedDrainWatch::make(AppCore& core) {
  std::unique_ptr<StagedDrainWatch> watch(new StagedDrainWatch(core));
  WEIR_TRY(watch->capture());
  return watch;
}

// Called without the lock: the object is new, or the caller moved on to another stage.
Status StagedDrainWatch::capture() {
  std::set<std::string> topics;
  {
    const MutexLock lock(mutex_);
    ends_.clear();
    if (stage_ < stages_.size()) {
      topics = stages_[stage_];
    }
  }
  Admin& admin = core_.backend().admin();
  std::map<TopicPartition, Offset> ends;
  for (const std::string& topic : topics) {
    const std::string name = topic_on_log(core_.plan(), core_.options().application_id, topic);
    const Result<TopicDescription> description = admin.describe_topic(name);
    if (!description.ok() && description.error().code() == Errc::kUnknownTopic) {
      continue;  // nothing stands in it
    }
    WEIR_TRY(description.status());
    core_.check_input(name, description->id);
    for (std::int32_t p = 0; p < description->partitions; ++p) {
      const TopicPartition partition{name, PartitionId(p)};
      WEIR_TRY_ASSIGN(const PartitionOffsets offsets, admin.offsets(partition));
      if (offsets.high_watermark > offsets.log_start) {
        ends.emplace(partition, offsets.high_watermark);
      }
    }
  }
  const MutexLock lock(mutex_);
  ends_ = std::move(ends);
  return {};
}

Result<bool> StagedDrainWatch::done() {
  while (true) {
    WEIR_TRY(core_.error());
    const std::map<TopicPartition, Offset> committed = core_.committed_offsets();
    {
      const MutexLock lock(mutex_);
      if (stage_ >= stages_.size()) {
        return true;
      }
      for (const auto& [partition, end] : ends_) {
        const auto found = committed.find(partition);
        if (found == committed.end() || found->second < end) {
          return false;
        }
      }
      if (++stage_ >= stages_.size()) {
        return true;
      }
    }
    WEIR_TRY(capture());
  }
}

}  // namespace weir::internal
