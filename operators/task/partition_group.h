#pragma once

#include <weir/operators/error_policies.h>
#include <weir/runtime/record.h>
#include <weir/runtime/types.h>

#include <cstddef>
#include <deque>
#include <optional>
#include <span>
#include <vector>

namespace weir::internal {

// The FIFOs of a task, one per input partition, and the choice of the next record: the head with
// the smallest timestamp over all FIFOs that have one (streams-features TIME-1 to TIME-3).
//
// Records are taken as runs: as many of one partition as would be chosen one after the other.
// Pure: no clock, no I/O. Threading: confined to the task.
// Bounds: the caller pauses a partition whose buffered() is over its limit (TIME-7).
class PartitionGroup {
 public:
  // Records of one partition, in order; valid until take().
  struct Run {
    std::size_t partition = 0;
    std::span<const RecordView> records;
  };

  // Returns the partition's index. `partition_time`: as committed, kNoTimestamp at first.
  std::size_t add_partition(Timestamp partition_time,
                            InvalidTimestamp policy = InvalidTimestamp::kFail);
  std::size_t size() const { return fifos_.size(); }

  // Where reading starts.
  void set_position(std::size_t partition, Offset offset, LeaderEpoch epoch);
  // Takes a block with ok status. Returns how many records were left out for their timestamps;
  // their places are passed over.
  std::size_t add(std::size_t partition, RecordBlock block);
  // The topic was deleted: nothing of it is waiting any more and its time starts again.
  void reset(std::size_t partition);

  // At most `records_max` (more than 0); nullopt when nothing waits. Errors: kInvalidTimestamp, the
  // head has a negative timestamp (TIME-2).
  Result<std::optional<Run>> next(std::size_t records_max) const;
  // The first `count` records of the last run were processed.
  void take(std::size_t partition, std::size_t count);

  std::size_t buffered(std::size_t partition) const { return fifos_[partition].buffered; }
  bool empty() const;
  // What to commit: the head's offset, or the position behind everything that was read (F 2.17).
  Offset position(std::size_t partition) const;
  // That of the head's block, or of the last one read.
  LeaderEpoch leader_epoch(std::size_t partition) const;
  // Highest timestamp of a record that became head.
  Timestamp partition_time(std::size_t partition) const { return fifos_[partition].time; }
  // Highest timestamp of a record taken, over all partitions; at first that of the commits.
  Timestamp stream_time() const { return stream_time_; }

 private:
  struct Fifo {
    std::deque<RecordBlock> blocks;  // none is used up
    std::size_t head = 0;            // index in the first block
    std::size_t buffered = 0;
    Timestamp time = kNoTimestamp;
    Offset position = kNoOffset;  // behind the last block
    LeaderEpoch epoch = kNoLeaderEpoch;
    InvalidTimestamp policy = InvalidTimestamp::kFail;
    Timestamp newest = kNoTimestamp;  // highest of all that was read
  };
  static void mend_timestamps(Fifo& fifo, RecordViews& records);
  static const RecordView& head_of(const Fifo& fifo) {
    return fifo.blocks.front().records[fifo.head];
  }
  static void raise_time(Fifo& fifo);

  std::vector<Fifo> fifos_;
  Timestamp stream_time_ = kNoTimestamp;
};

}  // namespace weir::internal
