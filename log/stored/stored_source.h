#pragma once

#include "log/partition/notifier.h"
#include "log/stored/stored_topics.h"

#include <atomic>
#include <vector>

namespace weir::log {

// RecordSource over a folder. Aborted records, control batches and lost offsets give blocks without
// records that move the position. Nothing is ever added to a folder: a poll at the end waits out
// its timeout. Threading: confined to one thread at a time, except wakeup().
class StoredSource final : public RecordSource {
 public:
  StoredSource(StoredTopics& topics, const SourceOptions& options);

  Status assign(std::vector<TopicPartition> partitions) override;
  Status seek(std::uint32_t assignment, Offset offset) override;
  Offset position(std::uint32_t assignment) const override;
  void pause(std::uint32_t assignment) override;
  void resume(std::uint32_t assignment) override;
  Result<std::vector<RecordBlock>> poll(Duration timeout) override;
  void wakeup() override;

 private:
  struct Assigned {
    TopicPartition name;
    Uuid topic_id;
    std::shared_ptr<StoredPartition> log;  // null until the first poll
    Offset position = kNoOffset;           // unset
    bool paused = false;
    bool failed = false;  // reported; idle until seek()
  };

  void collect(std::vector<RecordBlock>& blocks);
  Status read(std::uint32_t index, std::size_t bytes_max, std::vector<RecordBlock>& blocks,
              std::size_t* bytes);
  Result<RecordBlock> block_of(const Assigned& assigned, FetchedBatch& batch) const;
  Offset end_of(const Assigned& assigned) const;

  StoredTopics& topics_;
  const SourceOptions options_;
  const bool committed_only_;
  std::vector<Assigned> assigned_;
  std::size_t next_ = 0;  // round robin
  Notifier notifier_;
  std::atomic<bool> woken_{false};
};

}  // namespace weir::log
