// Settings of the topics of a directory: what is in force, and changes while partitions are open.
#include "log/broker/log_directory.h"
#include "log/metadata/config_records.h"
#include "log/partition/topic_settings.h"

#include <weir/runtime/logger.h>

#include <fmt/core.h>

#include <algorithm>

namespace weir::log {
namespace {

bool is_known(const std::string& key) {
  const auto properties = topic_properties();
  return std::any_of(properties.begin(), properties.end(),
                     [&key](const auto& property) { return property.name == key; });
}

// Every mistake of a change at once. What is stored already is not judged again: it may come from a
// newer version, and can be removed.
Status check_change(const TopicImage& topic, const TopicConfig& set,
                    const std::vector<std::string>& remove) {
  std::vector<std::string> problems;
  TopicConfig judged = set;
  for (const std::string& key : remove) {
    if (set.contains(key)) {
      problems.push_back(fmt::format("{} is to be set and to be removed; choose one", key));
    } else if (!is_known(key) && !topic.config.contains(key)) {
      judged[key];  // named below with the nearest setting
    }
  }
  const auto durability = set.find("weir.durability");
  if (is_internal_topic(topic.name) && durability != set.end() && durability->second != "fsync") {
    problems.emplace_back("weir.durability of the log's own topics is fsync");
  }
  return parse_topic_settings(topic.name, judged, std::move(problems)).status();
}

// What brings the topic's settings to what is asked; empty when nothing changes.
std::vector<MetadataRecord> change_records(const TopicImage& topic, const TopicConfig& set,
                                           const std::vector<std::string>& remove) {
  std::vector<MetadataRecord> records;
  const auto add = [&](const std::string& key, const std::optional<std::string>& value) {
    const auto changes = config_records(topic.name, topic.config, key, value);
    records.insert(records.end(), changes.begin(), changes.end());
  };
  for (const auto& [key, value] : set) {
    add(key, value);
  }
  for (const std::string& key : remove) {
    add(key, std::nullopt);
  }
  return records;
}

Status set_all(const std::vector<std::shared_ptr<Partition>>& partitions,
               const PartitionSettings& settings) {
  Status first;
  for (const std::shared_ptr<Partition>& partition : partitions) {
    Status set = partition->set_settings(settings);
    if (!set.ok() && first.ok()) {
      first = std::move(set);
    }
  }
  return first;
}

}  // namespace

PartitionSettings LogDirectory::settings_of(const TopicImage& topic) const {
  PartitionSettings result;
  const Result<TopicSettings> settings = parse_topic_settings(topic.name, topic.config);
  if (settings.ok()) {
    result = partition_settings(*settings);
  } else {
    // They were legal when they were written, perhaps by a newer version: defaults serve, data
    // stays.
    WEIR_WARN("topic settings ignored topic={} error=\"{}\"", topic.name,
              settings.error().message());
  }
  if (is_internal_topic(topic.name)) {
    result.durability = DurabilityMode::kFsync;
  }
  return result;
}

std::vector<std::shared_ptr<Partition>> LogDirectory::opened_partitions(
    const TopicImage& topic) const {
  const MutexLock lock(state_mutex_);
  std::vector<std::shared_ptr<Partition>> partitions;
  for (std::size_t i = 0; i < topic.leader_epochs.size(); ++i) {
    const auto found = opened_.find({topic.name, PartitionId(static_cast<std::int32_t>(i))});
    if (found != opened_.end() && found->second.partition) {
      partitions.push_back(found->second.partition);
    }
  }
  return partitions;
}

Status LogDirectory::alter_topic(const std::string& name, const TopicConfig& set,
                                 const std::vector<std::string>& remove) {
  WEIR_TRY(check_writable(fmt::format("change the settings of {}", name)));
  const MutexLock change(change_mutex_);
  // No partition is opened with settings that are about to change.
  const MutexLock opening(open_mutex_);
  WEIR_TRY_ASSIGN(const TopicImage topic, image_to_change(name, "change the settings of"));
  WEIR_TRY(check_change(topic, set, remove));
  const std::vector<MetadataRecord> records = change_records(topic, set, remove);
  if (records.empty()) {
    return {};
  }
  const PartitionSettings before = settings_of(topic);
  TopicImage changed = topic;
  for (const auto& [key, value] : set) {
    changed.config[key] = value;
  }
  for (const std::string& key : remove) {
    changed.config.erase(key);
  }
  const PartitionSettings after = settings_of(changed);
  const std::vector<std::shared_ptr<Partition>> partitions = opened_partitions(topic);
  // A start after a crash takes damage in an fsync log for rot: all must be on disk before the
  // topic is called one. The other way the promise is kept until the change is durable.
  const bool stricter =
      before.durability == DurabilityMode::kMemory && after.durability == DurabilityMode::kFsync;
  if (stricter) {
    PartitionSettings synced = before;
    synced.durability = DurabilityMode::kFsync;
    WEIR_TRY(set_all(partitions, synced));
    // Else what the write-ahead log does not have would be judged by that after a crash.
    WEIR_TRY(write_recovery_points());
  }
  if (Status written = append_metadata(records); !written.ok()) {
    set_all(partitions, before).ignore("a partition that fails says so at its next append");
    return written;
  }
  Status done = set_all(partitions, after);
  topics_changed();
  return done;
}

Result<std::vector<TopicSetting>> LogDirectory::topic_settings(const std::string& name) const {
  WEIR_TRY_ASSIGN(const TopicImage topic, image_of(name));
  return list_topic_settings(topic.config);
}

// Kafka's POLICY_VIOLATION: a compacted topic keeps the last value of every key.
Status LogDirectory::check_policy_deletes(const std::string& name) const {
  WEIR_TRY_ASSIGN(const TopicImage topic, image_of(name));
  const Result<TopicSettings> settings = parse_topic_settings(topic.name, topic.config);
  if (settings.ok() && settings->cleanup_policy == "compact") {
    return Error(
        Errc::kInvalidConfig,
        fmt::format("records of {} cannot be deleted: its cleanup.policy is compact, which "
                    "keeps the last value of every key; set it to compact,delete",
                    name));
  }
  return {};
}

}  // namespace weir::log
