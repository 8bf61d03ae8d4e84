// What a directory knows of damage, and the scrub that looks for it.
#include "log/broker/log_directory.h"
#include "log/segment/segment.h"
#include "log/segment/segment_names.h"

#include <weir/runtime/logger.h>

#include <fmt/core.h>

#include <algorithm>

namespace weir::log {

void LogDirectory::open_scrubber() {
  scrubber_ = std::make_unique<Scrubber>(
      files_, *options_.clock, layout_.scrub_memory, options_.scrub, scrub_memory_,
      Scrubber::Host{
          [this] { return all_partitions(); },
          [this](const TopicPartition& name) { return partition_to_scrub(name); },
          [this] { return damage_by_partition(); },
      });
}

Duration LogDirectory::scrub_step() {
  const MutexLock lock(upkeep_mutex_);
  return scrubber_ ? scrubber_->step() : std::chrono::hours(1);
}

ScrubProgress LogDirectory::scrub_progress() const {
  return scrubber_ ? scrubber_->progress() : ScrubProgress();
}

// Side-cars of topics that are gone: a crash cut their deletion short.
void LogDirectory::sweep_checksums() {
  constexpr std::size_t kIdLength = 22;
  const Result<std::vector<DirectoryEntry>> entries = files_.list(layout_.checksums);
  if (!entries.ok()) {
    return;  // there are none yet
  }
  for (const DirectoryEntry& entry : *entries) {
    const Result<Uuid> id = Uuid::parse(std::string_view(entry.name).substr(0, kIdLength));
    bool is_known = !id.ok() || *id == metadata_->options().topic_id;
    if (!is_known) {
      const MutexLock lock(state_mutex_);
      is_known = image_.find(*id) != nullptr;
    }
    if (!is_known) {
      remove_tree(files_, join_path(layout_.checksums, entry.name))
          .ignore("they are of no use, and no harm");
    }
  }
}

std::vector<TopicPartition> LogDirectory::all_partitions() const {
  std::vector<TopicPartition> all{metadata_->options().name};
  const MutexLock lock(state_mutex_);
  for (const auto& [name, topic] : image_.topics()) {
    for (std::size_t i = 0; i < topic.leader_epochs.size(); ++i) {
      all.push_back({name, PartitionId(static_cast<std::int32_t>(i))});
    }
  }
  std::sort(all.begin(), all.end());
  return all;
}

// Null: it has no records, or cannot be opened.
std::shared_ptr<Partition> LogDirectory::partition_to_scrub(const TopicPartition& name) {
  if (!path_exists(files_, join_path(layout_.log, name.to_string()))) {
    return nullptr;
  }
  Result<std::shared_ptr<Partition>> opened = partition(name);
  if (!opened.ok()) {
    if (opened.error().code() != Errc::kUnknownTopic) {  // deleted meanwhile
      WEIR_WARN("partition not scrubbed partition={} error=\"{}\"", name.to_string(),
                opened.error().message());
    }
    return nullptr;
  }
  return *std::move(opened);
}

// Of partitions that were not opened yet: what the last process knew.
DamageByPartition LogDirectory::damage_by_partition() const {
  DamageByPartition all;
  const auto add = [&all](const Uuid& id, PartitionId partition,
                          std::vector<SegmentDamage> damage) {
    if (!damage.empty()) {
      all[{id, partition}] = std::move(damage);
    }
  };
  add(metadata_->options().topic_id, PartitionId(0), metadata_->damage());
  const MutexLock lock(state_mutex_);
  for (const auto& [name, topic] : image_.topics()) {
    for (std::size_t i = 0; i < topic.leader_epochs.size(); ++i) {
      const PartitionId partition(static_cast<std::int32_t>(i));
      const auto opened = opened_.find({name, partition});
      if (opened != opened_.end() && opened->second.partition) {
        add(topic.id, partition, opened->second.partition->damage());
      } else if (const auto known = scrub_memory_.damage.find({topic.id, partition});
                 known != scrub_memory_.damage.end()) {
        add(topic.id, partition, known->second);
      }
    }
  }
  return all;
}

std::vector<QuarantinedRange> LogDirectory::quarantined_ranges() const {
  std::map<Uuid, std::string> names{{metadata_->options().topic_id, std::string(kMetadataTopic)}};
  {
    const MutexLock lock(state_mutex_);
    for (const auto& [name, topic] : image_.topics()) {
      names[topic.id] = name;
    }
  }
  std::vector<QuarantinedRange> all;
  for (const auto& [key, ranges] : damage_by_partition()) {
    const TopicPartition name{names[key.first], key.second};
    const std::string folder = join_path(layout_.log, name.to_string());
    for (const auto& [segment, range] : ranges) {
      all.push_back({name, join_path(folder, segment_file_name(segment, kLogSuffix)),
                     range.position, range.end_position, range.from, range.to, range.what});
    }
  }
  std::sort(all.begin(), all.end(), [](const QuarantinedRange& a, const QuarantinedRange& b) {
    return std::tie(a.name, a.first_offset) < std::tie(b.name, b.first_offset);
  });
  return all;
}

}  // namespace weir::log
