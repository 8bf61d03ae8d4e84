#pragma once

#include "log/segment/segment_scan.h"

#include <weir/runtime/result.h>
#include <weir/runtime/types.h>

#include <optional>
#include <string>
#include <vector>

namespace weir::log {

// Where each leader epoch of a partition starts: rising in both fields (reference R 2.8, Kafka's
// LeaderEpochFileCache). Kept in the file `leader-epoch-checkpoint`
// (docs/formats/leader_epoch_checkpoint.md).
//
// Threading: confined to its owner.
class LeaderEpochCache {
 public:
  static constexpr std::string_view kFileName = "leader-epoch-checkpoint";

  // `epoch` begins at `start`. Entries that it contradicts (same or later epoch, same or later
  // start) are dropped. False when the last entry says so already. Requires: epoch >= 0.
  bool assign(LeaderEpoch epoch, Offset start);
  // Drops entries that start at or behind `end`: the log was cut there.
  void truncate_from_end(Offset end);
  // The log now starts at `start`: the epoch that holds it starts there, earlier ones are dropped.
  void truncate_from_start(Offset start);

  bool empty() const { return entries_.empty(); }
  LeaderEpoch latest() const { return empty() ? kNoLeaderEpoch : entries_.back().epoch; }
  const std::vector<EpochStart>& entries() const { return entries_; }
  // End of the largest epoch <= `epoch`: where the next one starts, or `log_end` for the latest;
  // nullopt for an epoch behind the latest, or when nothing is known.
  std::optional<Offset> end_offset(LeaderEpoch epoch, Offset log_end) const;

  std::string encode() const;
  // Zero bytes mean no entries. Errors: kCorrupt.
  static Result<LeaderEpochCache> parse(std::string_view text);

 private:
  std::vector<EpochStart> entries_;
};

}  // namespace weir::log
