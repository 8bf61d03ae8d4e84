#pragma once

#include "log/broker/log_directory.h"
#include "log/partition/await.h"

#include <weir/runtime/backend.h>

#include <atomic>
#include <memory>
#include <vector>

namespace weir::log {

// RecordSource over partitions of this process's directory: hands out whole batches as they lie in
// memory or on disk; with read_committed without records of aborted transactions. Threading:
// confined to one thread at a time, except wakeup().
class EmbeddedSource : public RecordSource {
 public:
  EmbeddedSource(LogDirectory& directory, const SourceOptions& options);
  ~EmbeddedSource() override;

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
    std::shared_ptr<Partition> log;  // null while the topic does not exist
    std::unique_ptr<WatermarkWaiter> waiter;
    Offset position = kNoOffset;  // unset
    bool paused = false;
    bool failed = false;  // reported; idle until seek()
  };

  FetchIsolation isolation() const {
    return options_.read_committed ? FetchIsolation::kCommitted : FetchIsolation::kHighWatermark;
  }
  bool wants_records(const Assigned& assigned) const;
  void resolve(Assigned& assigned, std::vector<RecordBlock>& blocks);
  void resolve_all(std::vector<RecordBlock>& blocks);
  Status collect(std::vector<RecordBlock>& blocks);
  Status read(std::uint32_t index, std::size_t bytes_max, std::vector<RecordBlock>& blocks,
              std::size_t* bytes);
  void fail(std::uint32_t index, Error error, std::vector<RecordBlock>& blocks);

  LogDirectory& directory_;
  const SourceOptions options_;
  std::shared_ptr<Notifier> notifier_;
  std::vector<Assigned> assigned_;
  std::uint64_t topics_seen_ = 0;
  std::size_t next_ = 0;  // round robin
  std::atomic<bool> woken_{false};
};

}  // namespace weir::log
