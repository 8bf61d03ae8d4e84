#include "log/stored/stored_topics.h"

#include "log/broker/log_directory.h"

#include <fmt/core.h>

namespace weir::log {

Status StoredTopics::open(const std::string& folder) {
  WEIR_TRY_ASSIGN(folder_, read_stored_folder(files_, folder));
  return {};
}

Result<const StoredTopic*> StoredTopics::find(const std::string& name) const {
  const auto found = folder_.topics.find(name);
  if (found != folder_.topics.end()) {
    return &found->second;
  }
  constexpr std::size_t kNamesMax = 20;
  std::string names;
  std::size_t count = 0;
  for (const auto& [other, topic] : folder_.topics) {
    if (!is_internal_topic(other) && ++count <= kNamesMax) {
      names += (names.empty() ? "" : ", ") + other;
    }
  }
  return Error(
      Errc::kUnknownTopic,
      fmt::format("topic {} is not in {}, which holds {}{}", name, folder_.path,
                  names.empty() ? "no topics" : names,
                  count > kNamesMax ? fmt::format(" and {} more", count - kNamesMax) : ""));
}

Result<TopicDescription> StoredTopics::describe(const std::string& name) const {
  WEIR_TRY_ASSIGN(const StoredTopic* topic, find(name));
  return TopicDescription{name, topic->id, topic->partitions, is_internal_topic(name),
                          topic->config};
}

PartitionOffsets StoredTopics::visible_offsets(const StoredPartition& partition) const {
  PartitionOffsets offsets = partition.offsets();
  if (isolation_ == IsolationLevel::kReadCommitted) {
    offsets.high_watermark = offsets.last_stable;
  }
  return offsets;
}

Result<std::shared_ptr<StoredPartition>> StoredTopics::partition(const TopicPartition& name) {
  WEIR_TRY_ASSIGN(const StoredTopic* topic, find(name.topic));
  if (name.partition.value() < 0 || name.partition.value() >= topic->partitions) {
    return Error(Errc::kUnknownTopic,
                 fmt::format("topic {} of {} has partitions 0 to {}, not {}", name.topic,
                             folder_.path, topic->partitions - 1, name.partition.value()));
  }
  const MutexLock lock(mutex_);
  const auto known = opened_.find(name);
  if (known != opened_.end()) {
    return known->second;
  }
  Result<std::shared_ptr<StoredPartition>> opened = open_partition(name, *topic);
  if (!opened.ok() && opened.error().code() == Errc::kIo) {
    return opened;  // the next call may do better
  }
  return opened_.emplace(name, std::move(opened)).first->second;
}

Result<std::shared_ptr<StoredPartition>> StoredTopics::open_partition(const TopicPartition& name,
                                                                      const StoredTopic& topic) {
  StoredPartition::Options options;
  options.name = name;
  const auto folder = topic.folders.find(name.partition);
  if (folder != topic.folders.end()) {
    options.path = folder->second;
  }
  const auto start = folder_.log_starts.find(name);
  options.log_start = start != folder_.log_starts.end() ? start->second : Offset(0);
  const auto index = static_cast<std::size_t>(name.partition.value());
  if (index < topic.leader_epochs.size()) {
    options.leader_epoch = topic.leader_epochs[index];
  }
  const auto policy = topic.config.find("cleanup.policy");
  options.compacted =
      folder_.cleaned.contains(name) ||
      (policy != topic.config.end() && policy->second.find("compact") != std::string::npos);
  Result<std::shared_ptr<StoredPartition>> opened =
      StoredPartition::open(files_, std::move(options));
  if (!opened.ok()) {
    return std::move(opened).error().with_context(name.to_string());
  }
  return opened;
}

}  // namespace weir::log
