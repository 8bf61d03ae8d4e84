#pragma once

#include <cstdint>

namespace weir::log {

// Settings of a topic by which old records go. Names, defaults and ranges:
// log/partition/topic_settings.h.
struct CleanupSettings {
  bool deletes = true;                                 // cleanup.policy has `delete`
  bool compacts = false;                               // cleanup.policy has `compact`
  std::int64_t retention_ms = 7LL * 24 * 3600 * 1000;  // -1: no limit
  std::int64_t retention_bytes = -1;                   // -1: no limit
  std::int64_t delete_retention_ms = 24LL * 3600 * 1000;
  std::int64_t min_compaction_lag_ms = 0;
  std::int64_t max_compaction_lag_ms = INT64_MAX;
  double min_cleanable_dirty_ratio = 0.5;
  friend bool operator==(const CleanupSettings&, const CleanupSettings&) = default;
};

}  // namespace weir::log
