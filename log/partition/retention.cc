#include "log/partition/retention.h"

#include <algorithm>

namespace weir::log {

bool is_expired(Timestamp largest_timestamp, const CleanupSettings& settings, Timestamp now) {
  Timestamp age = 0;
  return settings.retention_ms >= 0 && !__builtin_sub_overflow(now, largest_timestamp, &age) &&
         age > settings.retention_ms;
}

RetentionDecision decide_retention(std::span<const RetainedSegment> segments,
                                   const CleanupSettings& settings, Offset log_start,
                                   Offset high_watermark, Timestamp now) {
  RetentionDecision decision;
  decision.log_start = log_start;
  if (!settings.deletes) {
    return decision;
  }
  std::uint64_t left = 0;
  for (const RetainedSegment& segment : segments) {
    left += segment.size_bytes;
  }
  for (const RetainedSegment& segment : segments) {
    const bool is_active = &segment == &segments.back();
    if (segment.end > high_watermark || (is_active && segment.size_bytes == 0)) {
      break;
    }
    const bool is_old =
        segment.largest_timestamp && is_expired(*segment.largest_timestamp, settings, now);
    const bool is_too_much =
        settings.retention_bytes >= 0 &&
        left - segment.size_bytes >= static_cast<std::uint64_t>(settings.retention_bytes);
    if (!is_old && !is_too_much && segment.end > log_start) {
      break;
    }
    left -= segment.size_bytes;
    if (segment.end > decision.log_start) {
      decision.log_start = segment.end;
      decision.rolls_active = is_active;
      decision.reason = is_old ? RetentionReason::kTime : RetentionReason::kSize;
      decision.newest = is_old ? *segment.largest_timestamp : kNoTimestamp;
    }
  }
  return decision;
}

}  // namespace weir::log
