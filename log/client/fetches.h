#pragma once

#include "log/client/offset_reset.h"

#include <weir/log/consumer.h>

#include <deque>
#include <memory>
#include <optional>
#include <set>
#include <vector>

namespace weir::log {

// The partitions of one consumer: where each stands, and what was fetched of it but not given out.
// The source runs ahead of the positions.
//
// Threading: confined to its owner. Ownership: `source` outlives it.
class Fetches {
 public:
  struct Assigned {
    const TopicPartition* name = nullptr;
    Offset position = kNoOffset;                // next record to give; kNoOffset: to be found
    LeaderEpoch leader_epoch = kNoLeaderEpoch;  // of the record before it
    Uuid topic_id;                              // of what was fetched; zero: unknown yet
    std::optional<OffsetReset> start;           // where to find the position; nullopt: committed
    std::optional<Offset> committed;            // as this consumer knows it
    bool paused = false;
    Status failure;  // until it is sought; then it stays idle

    struct Fetched {
      std::shared_ptr<const RecordBlock> block;
      std::size_t given = 0;  // records of it
    };
    std::deque<Fetched> fetched;
  };

  explicit Fetches(RecordSource& source) : source_(source) {}

  // Those that were assigned before keep what they have, save what was fetched.
  Status assign(const std::vector<TopicPartition>& partitions);
  const std::vector<Assigned>& all() const { return assigned_; }
  Assigned& at(std::uint32_t index) { return assigned_[index]; }
  std::optional<std::uint32_t> find(const TopicPartition& partition) const;

  // Forgets what was fetched and any failure.
  Status seek(std::uint32_t index, Offset offset, LeaderEpoch epoch);
  // Leaves the position to be found at `start`.
  void seek_later(std::uint32_t index, const OffsetReset& start);
  void pause(std::uint32_t index);
  void resume(std::uint32_t index);

  // Keeps what a poll of the source gave. Requires: block.status.ok(). Errors: kUnknownTopic when
  // the block is of another topic of that name than what was fetched before.
  Status add(RecordBlock block);
  // Up to `records_max` records of partitions that are not paused, and moves their positions.
  std::vector<ConsumerBatch> take(std::size_t records_max);
  // Of a partition that is not paused; ok when there is none.
  Status failure() const;

 private:
  // Returns how many records it took.
  static std::size_t take_from(Assigned& from, std::size_t records_max,
                               std::vector<ConsumerBatch>& batches);

  RecordSource& source_;
  // Every name ever assigned, so that batches may point at them: bounded by the topics' partitions.
  std::set<TopicPartition> names_;
  std::vector<Assigned> assigned_;
  std::size_t next_ = 0;  // takes round robin, a partition's fetched batches at a time
};

}  // namespace weir::log
