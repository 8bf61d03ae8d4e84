#include "log/compaction/cleanable_range.h"

#include "log/record/batch_header.h"

#include <algorithm>

namespace weir::log {
namespace {

// now - lag without overflow: a lag may say "any".
Timestamp before(Timestamp now, std::int64_t lag) {
  Timestamp result = 0;
  return __builtin_sub_overflow(now, lag, &result) ? INT64_MIN : result;
}

// Time index entries are the larger ones.
std::uint64_t index_bytes(std::uint64_t size_bytes, const GroupLimits& limits) {
  constexpr std::uint64_t kEntryBytes = 12;
  const std::uint64_t apart =
      std::max<std::uint64_t>(limits.index_interval_bytes + 1, kBatchHeaderBytes);
  return (size_bytes / apart + 1) * kEntryBytes;
}

}  // namespace

CleanableRange cleanable_range(std::span<const SegmentFacts> sealed,
                               const CleanupSettings& settings, Offset limit,
                               std::optional<Offset> checkpoint, Timestamp now) {
  CleanableRange range;
  if (sealed.empty()) {
    return range;
  }
  const Offset start = sealed.front().base;
  const Offset last = sealed.back().end;
  range.first_dirty =
      checkpoint && *checkpoint >= start && *checkpoint <= last ? *checkpoint : start;
  range.end = start;
  const Timestamp young = before(now, settings.min_compaction_lag_ms);
  const Timestamp overdue = before(now, settings.max_compaction_lag_ms);
  bool is_overdue = false;
  for (const SegmentFacts& segment : sealed) {
    const bool is_dirty = segment.end > range.first_dirty;
    const bool is_young = settings.min_compaction_lag_ms > 0 && segment.largest_timestamp > young;
    if (segment.end > limit || (is_dirty && is_young)) {
      break;
    }
    range.end = segment.end;
    (is_dirty ? range.dirty_bytes : range.clean_bytes) += segment.size_bytes;
    is_overdue |= is_dirty && segment.first_timestamp > 0 && segment.first_timestamp < overdue;
  }
  if (range.end <= range.first_dirty) {
    range.dirty_bytes = 0;
  }
  range.is_due = range.dirty_bytes > 0 &&
                 (is_overdue || range.dirty_ratio() > settings.min_cleanable_dirty_ratio);
  return range;
}

std::vector<std::size_t> group_segments(std::span<const SegmentFacts> segments,
                                        const GroupLimits& limits) {
  std::vector<std::size_t> groups;
  std::uint64_t bytes = 0;
  std::uint64_t entries = 0;
  Offset base;
  for (const SegmentFacts& segment : segments) {
    const std::uint64_t own = index_bytes(segment.size_bytes, limits);
    const bool fits = !groups.empty() && bytes + segment.size_bytes <= limits.segment_bytes &&
                      entries + own <= limits.index_bytes_max &&
                      segment.end.value() - 1 - base.value() <= INT32_MAX;
    if (fits) {
      ++groups.back();
      bytes += segment.size_bytes;
      entries += own;
    } else {
      groups.push_back(1);
      bytes = segment.size_bytes;
      entries = own;
      base = segment.base;
    }
  }
  return groups;
}

}  // namespace weir::log
