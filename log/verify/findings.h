#pragma once

#include <weir/log/log_verify.h>

#include <cstddef>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace weir::log {

// The findings of one partition, up to a limit.
// Threading: confined to its owner.
class Findings {
 public:
  // `undecided_from`: a write-ahead log beside the files decides at the next start about offsets
  // from there on and about files without offsets: what is wrong with them is a note.
  explicit Findings(std::size_t max, std::optional<Offset> undecided_from = std::nullopt)
      : max_(max), undecided_from_(undecided_from) {}

  void add(VerifyFinding finding);
  // Without a place in the file.
  void note(const std::string& file, std::string what) {
    add({.severity = VerifySeverity::kNote, .file = file, .what = std::move(what)});
  }
  void damage(const std::string& file, std::string what) {
    add({.severity = VerifySeverity::kDamage, .file = file, .what = std::move(what)});
  }

  std::uint64_t damage_count() const { return damage_; }
  std::uint64_t note_count() const { return notes_; }
  // Once: what there is, and a last one that says how many were left out. `folder` is its file.
  std::vector<VerifyFinding> take(const std::string& folder);

 private:
  std::size_t max_;
  std::optional<Offset> undecided_from_;
  std::uint64_t damage_ = 0;
  std::uint64_t notes_ = 0;
  std::uint64_t left_out_damage_ = 0;
  std::uint64_t left_out_notes_ = 0;
  std::vector<VerifyFinding> findings_;
};

}  // namespace weir::log
