#pragma once

#include "log/partition/cleanup_settings.h"

#include <weir/runtime/types.h>

#include <cstdint>
#include <optional>
#include <span>

namespace weir::log {

// One segment as retention sees it.
struct RetainedSegment {
  Offset base;
  Offset end;  // base of the next one; of the active one the log end
  std::uint64_t size_bytes = 0;
  // Of its batches, or when its file was last written if they have none; nullopt: not asked for,
  // because an older segment stays for its age.
  std::optional<Timestamp> largest_timestamp;
};

enum class RetentionReason { kNone, kTime, kSize };

struct RetentionDecision {
  Offset log_start;           // the log may begin here
  bool rolls_active = false;  // all of the active segment goes: another is made first
  RetentionReason reason = RetentionReason::kNone;  // of the last segment that goes
  Timestamp newest = kNoTimestamp;                  // its largest timestamp, with kTime
};

// Whether a segment that was last written at `largest_timestamp` is too old.
bool is_expired(Timestamp largest_timestamp, const CleanupSettings& settings, Timestamp now);

// Where the log may begin (Kafka's UnifiedLog.deleteOldSegments): the oldest segments go, one after
// the other, as long as the next is too old (retention.ms) or what is left without it has still
// retention.bytes. Only segments wholly below the high watermark go, and never because one behind
// them is old. Without `delete` in cleanup.policy nothing does. Pure.
RetentionDecision decide_retention(std::span<const RetainedSegment> segments,
                                   const CleanupSettings& settings, Offset log_start,
                                   Offset high_watermark, Timestamp now);

}  // namespace weir::log
