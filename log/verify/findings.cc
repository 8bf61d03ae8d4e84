#include "log/verify/findings.h"

#include <fmt/format.h>

namespace weir::log {

VerifyTotals& VerifyTotals::operator+=(const VerifyTotals& other) {
  partitions += other.partitions;
  segments += other.segments;
  batches += other.batches;
  records += other.records;
  bytes += other.bytes;
  damage += other.damage;
  notes += other.notes;
  return *this;
}

void Findings::add(VerifyFinding finding) {
  if (undecided_from_ && finding.severity == VerifySeverity::kDamage &&
      (!finding.first_offset || *finding.first_offset >= *undecided_from_)) {
    finding.severity = VerifySeverity::kNote;
    finding.what += "; not flushed when the log ended, a start takes it from the write-ahead log";
  }
  const bool is_damage = finding.severity == VerifySeverity::kDamage;
  ++(is_damage ? damage_ : notes_);
  if (findings_.size() >= max_) {
    ++(is_damage ? left_out_damage_ : left_out_notes_);
    return;
  }
  findings_.push_back(std::move(finding));
}

std::vector<VerifyFinding> Findings::take(const std::string& folder) {
  if (left_out_damage_ + left_out_notes_ > 0) {
    findings_.push_back(
        {.severity = left_out_damage_ > 0 ? VerifySeverity::kDamage : VerifySeverity::kNote,
         .file = folder,
         .what = fmt::format("{} more of damage and {} more notes are left out", left_out_damage_,
                             left_out_notes_)});
  }
  return std::move(findings_);
}

}  // namespace weir::log
