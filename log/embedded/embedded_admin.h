#pragma once

#include "log/broker/log_directory.h"

namespace weir::log {

// Admin over a directory. Threading: thread-safe.
class EmbeddedAdmin : public Admin {
 public:
  explicit EmbeddedAdmin(LogDirectory& directory) : directory_(directory) {}

  Result<TopicDescription> create_topic(const TopicSpec& spec) override;
  Result<std::vector<TopicDescription>> list_topics() override;
  Result<TopicDescription> describe_topic(const std::string& name) override;
  Status delete_topic(const std::string& name) override;
  Result<PartitionOffsets> offsets(const TopicPartition& partition) override;
  Result<std::optional<Offset>> offset_for_time(const TopicPartition& partition,
                                                Timestamp time) override;
  Result<std::optional<Offset>> epoch_end_offset(const TopicPartition& partition,
                                                 LeaderEpoch epoch) override;
  Result<std::optional<Offset>> tombstone_horizon(const TopicPartition& partition) override;
  Status delete_records(const TopicPartition& partition, Offset before) override;
  Status grow_topic(const std::string& name, std::int32_t partitions,
                    OrderedGrowth ordered) override;
  Status alter_topic(const std::string& name, const TopicConfig& set,
                     const std::vector<std::string>& remove) override;
  Result<std::vector<TopicSetting>> topic_settings(const std::string& name) override;
  Result<std::vector<std::string>> list_groups() override;
  Result<std::vector<PartitionOffset>> group_offsets(const std::string& group) override;
  Status delete_group_offsets(const std::string& group,
                              std::span<const TopicPartition> partitions) override;
  Result<GroupDescription> describe_group(const std::string& group) override;
  Status delete_group(const std::string& group) override;

 private:
  Status refresh_offsets();
  Result<std::shared_ptr<Partition>> open(const TopicPartition& partition);
  LogDirectory& directory_;
};

}  // namespace weir::log
