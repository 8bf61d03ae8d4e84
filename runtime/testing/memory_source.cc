#include "runtime/testing/memory_log.h"

#include <fmt/core.h>

#include <algorithm>
#include <utility>

namespace weir::testing::memory {

namespace {

constexpr Duration kTimeoutMax = std::chrono::hours(24 * 365);

class Source final : public RecordSource {
 public:
  Source(Log& log, const SourceOptions& options) : log_(log), options_(options) {}

  Status assign(std::vector<TopicPartition> partitions) override {
    MutexLock lock(log_.mutex);
    assignments_.clear();
    cursor_ = 0;
    for (TopicPartition& partition : partitions) {
      Assignment& made = assignments_.emplace_back();
      made.partition = std::move(partition);
      bind(made);
    }
    return {};
  }

  Status seek(std::uint32_t assignment, Offset offset) override {
    if (assignment >= assignments_.size() || offset < Offset(0)) {
      return Error(Errc::kInvalidArgument,
                   fmt::format("seek of assignment {} to offset {}: there are {} assignments and "
                               "offsets start at 0",
                               assignment, offset.value(), assignments_.size()));
    }
    MutexLock lock(log_.mutex);
    Assignment& target = assignments_[assignment];
    target.position = offset;
    target.failed = false;
    bind(target);
    return {};
  }

  Offset position(std::uint32_t assignment) const override {
    return assignment < assignments_.size() ? assignments_[assignment].position : kNoOffset;
  }

  void pause(std::uint32_t assignment) override { set_paused(assignment, true); }
  void resume(std::uint32_t assignment) override { set_paused(assignment, false); }

  Result<std::vector<RecordBlock>> poll(Duration timeout) override {
    // The timeout runs on the machine's clock: a manual one would never end it.
    const MonotonicTime deadline = system_clock().monotonic() + std::min(timeout, kTimeoutMax);
    MutexLock lock(log_.mutex);
    WEIR_TRY(log_.take_fault(MemoryBackend::FaultPoint::kPoll));
    std::vector<RecordBlock> blocks = collect();
    while (blocks.empty() && !woken_) {
      const Duration left = deadline - system_clock().monotonic();
      if (left <= Duration(0)) {
        break;
      }
      log_.changed.wait_for(log_.mutex, left);
      blocks = collect();
    }
    woken_ = false;
    return blocks;
  }

  void wakeup() override {
    MutexLock lock(log_.mutex);
    woken_ = true;
    log_.changed.notify_all();
  }

 private:
  struct Assignment {
    TopicPartition partition;
    Uuid topic_id;  // zero until the topic is seen, and after it was deleted
    Offset position = kNoOffset;
    bool paused = false;
    bool failed = false;  // idle until seek()
  };

  void set_paused(std::uint32_t assignment, bool paused) {
    if (assignment < assignments_.size()) {
      assignments_[assignment].paused = paused;
    }
  }

  // Ties the assignment to the topic that has the name now, so that one made anew is noticed.
  void bind(Assignment& assignment) WEIR_REQUIRES(log_.mutex) {
    if (assignment.topic_id.is_zero()) {
      const Topic* topic = log_.find_topic(assignment.partition.topic);
      assignment.topic_id = topic == nullptr ? Uuid{} : topic->id;
    }
  }

  // Round robin: the next poll starts behind the partition that was served last.
  std::vector<RecordBlock> collect() WEIR_REQUIRES(log_.mutex) {
    std::vector<RecordBlock> blocks;
    std::size_t left = std::max<std::size_t>(options_.poll_bytes_max, 1);
    const std::size_t count = assignments_.size();
    const std::size_t start = cursor_;
    for (std::size_t i = 0; i < count && left > 0; ++i) {
      const std::size_t index = (start + i) % count;
      const std::size_t before = blocks.size();
      const std::size_t taken = collect_partition(index, left, blocks);
      left -= std::min(left, taken);
      if (blocks.size() > before) {
        cursor_ = (index + 1) % count;
      }
    }
    return blocks;
  }

  // Adds whole batches of one assignment until its share is used up. Returns their bytes.
  std::size_t collect_partition(std::size_t index, std::size_t bytes_left,
                                std::vector<RecordBlock>& blocks) WEIR_REQUIRES(log_.mutex) {
    Assignment& assignment = assignments_[index];
    if (assignment.paused || assignment.failed || assignment.position == kNoOffset) {
      return 0;
    }
    bind(assignment);
    if (assignment.topic_id.is_zero()) {
      return 0;  // not made yet
    }
    Topic* const topic = log_.find_topic(assignment.partition.topic, assignment.topic_id);
    if (topic == nullptr) {
      blocks.push_back(fail(
          index, Error(Errc::kUnknownTopic,
                       fmt::format("topic {} with id {} was deleted; seek to "
                                   "read the topic that has the name now",
                                   assignment.partition.topic, assignment.topic_id.to_string()))));
      assignment.topic_id = Uuid{};
      return 0;
    }
    const std::int32_t partition_index = assignment.partition.partition.value();
    if (partition_index < 0 ||
        static_cast<std::size_t>(partition_index) >= topic->partitions.size()) {
      return 0;  // the topic may still grow
    }
    const Partition& partition = topic->partitions[static_cast<std::size_t>(partition_index)];
    if (assignment.position < partition.log_start || assignment.position > partition.log_end) {
      blocks.push_back(fail(
          index, Error(Errc::kOffsetOutOfRange,
                       fmt::format("offset {} of {} is outside the log, which holds {} to {}; seek "
                                   "into it",
                                   assignment.position.value(), assignment.partition.to_string(),
                                   partition.log_start.value(), partition.log_end.value()))));
      return 0;
    }
    const std::size_t share =
        std::min(bytes_left, std::max<std::size_t>(options_.partition_bytes_max, 1));
    std::size_t taken = 0;
    for (std::size_t i = partition.find_batch(assignment.position);
         i < partition.batches.size() && taken < share; ++i) {
      blocks.push_back(make_block(index, partition, partition.batches[i]));
      assignment.position = blocks.back().next_offset;
      // A batch of null keys and values has no bytes, yet takes part of the share.
      taken += std::max(partition.batches[i]->bytes.size(), partition.batches[i]->records.size());
    }
    return taken;
  }

  RecordBlock make_block(std::size_t index, const Partition& partition,
                         const std::shared_ptr<const Batch>& batch) const {
    RecordBlock block;
    block.assignment = static_cast<std::uint32_t>(index);
    block.topic_id = assignments_[index].topic_id;
    block.leader_epoch = LeaderEpoch(0);
    block.next_offset = batch->next();
    block.high_watermark = partition.log_end;
    block.last_stable_offset = partition.log_end;
    // The position may be inside the batch, after seek().
    const Offset position = assignments_[index].position;
    const auto first = std::partition_point(
        batch->records.begin(), batch->records.end(),
        [position](const RecordView& record) { return record.offset < position; });
    block.records.assign(first, batch->records.end());
    block.owner = batch;
    return block;
  }

  RecordBlock fail(std::size_t index, Error error) {
    Assignment& assignment = assignments_[index];
    assignment.failed = true;
    RecordBlock block;
    block.assignment = static_cast<std::uint32_t>(index);
    block.topic_id = assignment.topic_id;
    block.next_offset = assignment.position;
    block.status = std::move(error);
    return block;
  }

  Log& log_;
  const SourceOptions options_;
  std::vector<Assignment> assignments_;  // confined to the caller's thread
  std::size_t cursor_ = 0;
  bool woken_ WEIR_GUARDED_BY(log_.mutex) = false;
};

}  // namespace

std::unique_ptr<RecordSource> make_source(Log& log, const SourceOptions& options) {
  return std::make_unique<Source>(log, options);
}

}  // namespace weir::testing::memory
