#pragma once

#include "log/partition/cleanup_settings.h"

#include <weir/runtime/types.h>

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

namespace weir::log {

// What is to be known of one sealed segment.
struct SegmentFacts {
  Offset base;
  Offset end;  // base of the next one
  std::uint64_t size_bytes = 0;
  Timestamp first_timestamp = kNoTimestamp;    // of the first batch; asked for with a longest lag
  Timestamp largest_timestamp = kNoTimestamp;  // asked for with a shortest lag
};

// Offsets that a pass may compact, and how worthwhile that is (Kafka's LogToClean).
struct CleanableRange {
  Offset first_dirty;
  Offset end;  // first offset that may not be touched: the base of a segment
  std::uint64_t clean_bytes = 0;
  std::uint64_t dirty_bytes = 0;
  bool is_due = false;  // dirtier than min.cleanable.dirty.ratio, or past max.compaction.lag.ms

  double dirty_ratio() const {
    const std::uint64_t all = clean_bytes + dirty_bytes;
    return all == 0 ? 0 : static_cast<double>(dirty_bytes) / static_cast<double>(all);
  }
};

// Decides it (Kafka's LogCleanerManager.cleanableOffsets, grabFilthiestCompactedLog). Pure.
//
// `sealed`:     all segments but the active one, rising.
// `limit`:      nothing at or above it may go: the least of last stable offset, high watermark and
//               what is durable for sure.
// `checkpoint`: up to where the log was compacted before; what lies below the log start or above
//               the last segment is none, as in a log that lost its end.
CleanableRange cleanable_range(std::span<const SegmentFacts> sealed,
                               const CleanupSettings& settings, Offset limit,
                               std::optional<Offset> checkpoint, Timestamp now);

// How many neighbours become one segment each, in order (Kafka's groupSegmentsBySize): as many as
// stay within segment.bytes, and within the reach of an index entry from the first base.
// `index_bytes_max`: segment.index.bytes; an index has at most an entry for each
// `index_interval_bytes` of a segment.
struct GroupLimits {
  std::uint64_t segment_bytes = 0;
  std::uint64_t index_bytes_max = 0;
  std::uint64_t index_interval_bytes = 0;
};
std::vector<std::size_t> group_segments(std::span<const SegmentFacts> segments,
                                        const GroupLimits& limits);

}  // namespace weir::log
