#include "log/partition/topic_settings.h"
#include "log/stored/stored_topics.h"

#include <fmt/core.h>

namespace weir::log {

Error StoredAdmin::refused(std::string_view action) const {
  return {Errc::kReadOnly,
          fmt::format("cannot {}: {} is only read", action, topics_.folder().path)};
}

Result<TopicDescription> StoredAdmin::create_topic(const TopicSpec& spec) {
  return refused(fmt::format("make topic {}", spec.name));
}

Result<std::vector<TopicDescription>> StoredAdmin::list_topics() {
  std::vector<TopicDescription> topics;
  for (const auto& [name, topic] : topics_.folder().topics) {
    WEIR_TRY_ASSIGN(TopicDescription description, topics_.describe(name));
    topics.push_back(std::move(description));
  }
  return topics;
}

Result<TopicDescription> StoredAdmin::describe_topic(const std::string& name) {
  return topics_.describe(name);
}

Status StoredAdmin::delete_topic(const std::string& name) {
  return refused(fmt::format("delete topic {}", name));
}

Result<PartitionOffsets> StoredAdmin::offsets(const TopicPartition& partition) {
  WEIR_TRY_ASSIGN(const std::shared_ptr<StoredPartition> log, topics_.partition(partition));
  return topics_.visible_offsets(*log);
}

Result<std::optional<Offset>> StoredAdmin::offset_for_time(const TopicPartition& partition,
                                                           Timestamp time) {
  WEIR_TRY_ASSIGN(const std::shared_ptr<StoredPartition> log, topics_.partition(partition));
  WEIR_TRY_ASSIGN(std::optional<Offset> found, log->offset_for_time(time));
  if (found && *found >= topics_.visible_offsets(*log).high_watermark) {
    found.reset();
  }
  return found;
}

Result<std::optional<Offset>> StoredAdmin::epoch_end_offset(const TopicPartition& partition,
                                                            LeaderEpoch epoch) {
  WEIR_TRY_ASSIGN(const std::shared_ptr<StoredPartition> log, topics_.partition(partition));
  return log->epoch_end_offset(epoch);
}

// Whoever wrote the folder may have compacted it, up to where is not known.
Result<std::optional<Offset>> StoredAdmin::tombstone_horizon(const TopicPartition& partition) {
  WEIR_TRY(topics_.partition(partition).status());
  return std::optional<Offset>();
}

Status StoredAdmin::delete_records(const TopicPartition& partition, Offset /*before*/) {
  return refused(fmt::format("delete records of {}", partition.to_string()));
}

Status StoredAdmin::grow_topic(const std::string& name, std::int32_t /*partitions*/,
                               OrderedGrowth /*ordered*/) {
  return refused(fmt::format("add partitions to {}", name));
}

Status StoredAdmin::alter_topic(const std::string& name, const TopicConfig& /*set*/,
                                const std::vector<std::string>& /*remove*/) {
  return refused(fmt::format("change the settings of {}", name));
}

Result<std::vector<TopicSetting>> StoredAdmin::topic_settings(const std::string& name) {
  WEIR_TRY_ASSIGN(const StoredTopic* topic, topics_.find(name));
  return list_topic_settings(topic->config);
}

Result<std::vector<std::string>> StoredAdmin::list_groups() {
  return Error(Errc::kUnsupported,
               fmt::format("groups of {} are not known; its topic __consumer_offsets, if it is "
                           "there, has their offsets as records",
                           topics_.folder().path));
}

Result<std::vector<PartitionOffset>> StoredAdmin::group_offsets(const std::string& /*group*/) {
  return list_groups().error();
}

Status StoredAdmin::delete_group_offsets(const std::string& group,
                                         std::span<const TopicPartition> /*partitions*/) {
  return refused(fmt::format("delete offsets of group {}", group));
}

}  // namespace weir::log
