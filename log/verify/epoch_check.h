#pragma once

#include "log/dump/segment_walk.h"
#include "log/segment/segment_scan.h"
#include "log/verify/findings.h"

#include <optional>
#include <string>
#include <vector>

namespace weir::log {

// Leader epochs of a partition's batches: they never fall, and are those of
// leader-epoch-checkpoint. The field has no CRC. Without that file only a fall is seen, and nobody
// can say which side of it is wrong.
//
// Threading: confined to its owner. Ownership: borrows `findings`.
class EpochCheck {
 public:
  // `epochs`: the checkpoint's entries; none when it is missing or not readable. Unless the log was
  // closed cleanly a crash may have kept the newest epoch out of it.
  EpochCheck(std::vector<EpochStart> epochs, bool clean, Findings& findings)
      : epochs_(std::move(epochs)), clean_(clean), findings_(findings) {}

  void add(const std::string& file, const WalkedBatch& batch);
  // Behind the last batch.
  void finish() { end_run(std::nullopt); }

 private:
  // Neighbours that contradict the checkpoint with the same epoch.
  struct Run {
    VerifyFinding finding;
    LeaderEpoch epoch;
    bool is_newest = false;  // above all of the checkpoint
  };

  std::optional<LeaderEpoch> expected(Offset offset) const;
  void contradict(const std::string& file, const WalkedBatch& batch, LeaderEpoch expected);
  // `next`: the epoch that the log goes on with; none at its end.
  void end_run(std::optional<LeaderEpoch> next);

  const std::vector<EpochStart> epochs_;
  const bool clean_;
  Findings& findings_;
  std::optional<Run> run_;
  LeaderEpoch last_ = kNoLeaderEpoch;  // of the batch before
};

}  // namespace weir::log
