#pragma once

#include "log/stored/read_only_files.h"
#include "log/stored/stored_folder.h"
#include "log/stored/stored_partition.h"

#include <weir/log/stored_log.h>
#include <weir/runtime/thread_annotations.h>

#include <map>
#include <memory>

namespace weir::log {

// The topics of a folder and the partitions that were opened so far.
// Threading: thread-safe; opening is serialised and done under the lock, as every reader waits for
// its result.
class StoredTopics {
 public:
  StoredTopics(FileSystem& files, IsolationLevel isolation)
      : files_(files), isolation_(isolation) {}

  Status open(const std::string& folder);
  const StoredFolder& folder() const { return folder_; }
  IsolationLevel isolation() const { return isolation_; }

  // Errors: kUnknownTopic (names the topics that there are).
  Result<const StoredTopic*> find(const std::string& name) const;
  Result<TopicDescription> describe(const std::string& name) const;
  Result<std::shared_ptr<StoredPartition>> partition(const TopicPartition& name);
  // As readers see them: with kReadCommitted the high watermark is the last stable offset.
  PartitionOffsets visible_offsets(const StoredPartition& partition) const;

 private:
  Result<std::shared_ptr<StoredPartition>> open_partition(const TopicPartition& name,
                                                          const StoredTopic& topic);

  ReadOnlyFiles files_;
  const IsolationLevel isolation_;
  StoredFolder folder_;
  Mutex mutex_;
  std::map<TopicPartition, Result<std::shared_ptr<StoredPartition>>> opened_
      WEIR_GUARDED_BY(mutex_);
};

// Admin over a folder: answers what is asked, refuses changes.
class StoredAdmin final : public Admin {
 public:
  explicit StoredAdmin(StoredTopics& topics) : topics_(topics) {}

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

 private:
  Error refused(std::string_view action) const;
  StoredTopics& topics_;
};

}  // namespace weir::log
