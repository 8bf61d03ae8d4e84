#pragma once

#include "log/record/batch_header.h"
#include "log/segment/offset_index.h"
#include "log/segment/time_index.h"

namespace weir::log {

// Both indexes of one segment and Kafka's rule for when they get an entry, which was replayed over
// 43 segments that a Kafka broker wrote: a batch gets one when more than index.interval.bytes were
// appended since the batch of the last entry, so never the first of a segment.
//
// Threading: confined to its owner.
class SegmentIndexes {
 public:
  explicit SegmentIndexes(Offset base) : offsets_(base), times_(base) {}
  // As read from files: resume_scan() tells the rest.
  SegmentIndexes(OffsetIndex offsets, TimeIndex times);

  // The batch `header` stands at `position`. Batches are added in order; one that the loaded files
  // cover already changes nothing.
  void add(const BatchHeader& header, std::uint64_t position, std::int64_t interval_bytes);
  // The segment is rolled or closed: the time index gets its last entry. Repeating it is harmless.
  void finish() { times_.append(largest_timestamp_, largest_offset_); }
  // A batch may not be added: the segment must roll (one slot of the time index is for finish()).
  bool full(std::int64_t segment_index_bytes) const;

  const OffsetIndex& offsets() const { return offsets_; }
  const TimeIndex& times() const { return times_; }
  // Of the batches added; kNoTimestamp when none had one.
  Timestamp largest_timestamp() const { return largest_timestamp_; }
  // maxTimestamp of the segment's first batch: segment.ms counts from it.
  Timestamp first_timestamp() const { return first_timestamp_; }
  void set_first_timestamp(Timestamp timestamp) { first_timestamp_ = timestamp; }

 private:
  void note(const BatchHeader& header, std::uint64_t position);

  OffsetIndex offsets_;
  TimeIndex times_;
  Timestamp largest_timestamp_ = kNoTimestamp;
  Offset largest_offset_;
  Timestamp first_timestamp_ = kNoTimestamp;
};

}  // namespace weir::log
