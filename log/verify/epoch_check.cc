#include "log/verify/epoch_check.h"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>
#include <utility>

namespace weir::log {

std::optional<LeaderEpoch> EpochCheck::expected(Offset offset) const {
  const auto later = std::find_if(epochs_.begin(), epochs_.end(),
                                  [&](const EpochStart& entry) { return entry.start > offset; });
  return later == epochs_.begin() ? std::nullopt : std::optional(std::prev(later)->epoch);
}

void EpochCheck::add(const std::string& file, const WalkedBatch& batch) {
  const BatchHeader& header = batch.header;
  if (epochs_.empty()) {
    if (header.leader_epoch < last_) {
      findings_.add({.severity = VerifySeverity::kDamage,
                     .file = file,
                     .position = batch.position,
                     .end_position = batch.position + header.size_bytes(),
                     .first_offset = header.base_offset,
                     .next_offset = header.next_offset(),
                     .what = fmt::format("leader epoch {} falls back behind {}",
                                         header.leader_epoch.value(), last_.value())});
    }
    last_ = header.leader_epoch;
    return;
  }
  const std::optional<LeaderEpoch> wanted = expected(header.base_offset);
  if (wanted && *wanted != header.leader_epoch) {
    contradict(file, batch, *wanted);
  } else {
    end_run(header.leader_epoch);
  }
}

void EpochCheck::contradict(const std::string& file, const WalkedBatch& batch,
                            LeaderEpoch expected) {
  const BatchHeader& header = batch.header;
  if (run_ && run_->epoch == header.leader_epoch && run_->finding.file == file &&
      run_->finding.end_position == batch.position) {
    run_->finding.end_position = batch.position + header.size_bytes();
    run_->finding.next_offset = header.next_offset();
    return;
  }
  end_run(header.leader_epoch);
  run_ = Run{{.severity = VerifySeverity::kDamage,
              .file = file,
              .position = batch.position,
              .end_position = batch.position + header.size_bytes(),
              .first_offset = header.base_offset,
              .next_offset = header.next_offset(),
              .what = fmt::format("leader epoch {}, leader-epoch-checkpoint says {}",
                                  header.leader_epoch.value(), expected.value())},
             header.leader_epoch,
             header.leader_epoch > epochs_.back().epoch};
}

void EpochCheck::end_run(std::optional<LeaderEpoch> next) {
  if (!run_) {
    return;
  }
  const Run run = *std::exchange(run_, std::nullopt);
  const bool goes_on = !next || *next >= run.epoch;
  VerifyFinding finding = run.finding;
  if (run.is_newest && goes_on && !clean_) {
    finding.severity = VerifySeverity::kNote;
    finding.what += ": a crash kept it out, a start adds it";
  }
  findings_.add(std::move(finding));
}

}  // namespace weir::log
