#pragma once

#include <weir/runtime/result.h>
#include <weir/runtime/types.h>

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace weir {

// Which records at or above a committed offset are finished already, so that a restart does not run
// them again (session-workers 2.4). Two forms say it, each shorter in some case: every unfinished
// offset, or the first unfinished offset of every session that has one. The second is enough
// because a session's finished records are a prefix of its records (2.11 P4), and its size depends
// on the number of unfinished sessions, not on how many records wait behind each.
//
// Immutable once built. An offset in [base, last] that the form does not name is finished, also one
// that does not exist (compaction, markers).
struct LaneMap {
  enum class Form { kOffsets, kSessions };
  struct Head {
    std::uint64_t session_hash = 0;  // the low 40 bits of session_hash()
    Offset first_unfinished;
    friend bool operator==(const Head&, const Head&) = default;
  };
  struct Attempts {
    Offset offset;
    std::uint8_t count = 0;  // failed ones, 255 or more: 255
    friend bool operator==(const Attempts&, const Attempts&) = default;
  };

  Form form = Form::kOffsets;
  Offset base;                     // the committed offset that it belongs to
  Offset last;                     // the highest offset that it speaks of; base - 1: none
  std::uint16_t extractor = 0;     // kSessions: how sessions were made; another way: no use
  std::vector<Offset> unfinished;  // kOffsets; ascending
  std::vector<Head> heads;         // kSessions; ascending by offset
  // Records that failed often, with what they have used of their attempts; ascending.
  std::vector<Attempts> attempts;

  friend bool operator==(const LaneMap&, const LaneMap&) = default;
};

inline constexpr std::uint64_t kSessionHashMask = (1ULL << 40U) - 1;
inline constexpr std::size_t kLaneMapAttemptsMax = 16;

// The form (offsets as deltas or as bitmap, sessions) that reaches the highest offset within
// `bytes_max`, of equal ones the shortest; empty when none says anything. What does not fit is cut
// off at the end (`last` moves down): those records run again after a crash, nothing is lost.
// Requires: `forms` describe the same records.
std::string encode_lane_map(std::span<const LaneMap> forms, std::size_t bytes_max);
// Errors: kCorrupt, kUnsupported (a form of a later version). Bounds: allocates by the length of
// `bytes`, whatever they say.
Result<LaneMap> decode_lane_map(std::string_view bytes);

}  // namespace weir
