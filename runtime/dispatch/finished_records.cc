#include "runtime/dispatch/finished_records.h"

#include <algorithm>
#include <utility>

namespace weir::internal {

FinishedRecords::FinishedRecords(LaneMap map) : map_(std::move(map)) {
  // Two sessions of one 40-bit hash: both run again from the earlier head.
  std::sort(map_.heads.begin(), map_.heads.end(), [](const auto& a, const auto& b) {
    return std::pair(a.session_hash, a.first_unfinished) <
           std::pair(b.session_hash, b.first_unfinished);
  });
}

bool FinishedRecords::contains(Offset offset, std::uint64_t session_hash) const {
  if (offset < map_.base || offset > map_.last) {
    return false;
  }
  if (map_.form == LaneMap::Form::kOffsets) {
    return !std::binary_search(map_.unfinished.begin(), map_.unfinished.end(), offset);
  }
  const std::uint64_t hash = session_hash & kSessionHashMask;
  const auto head = std::lower_bound(
      map_.heads.begin(), map_.heads.end(), hash,
      [](const LaneMap::Head& entry, std::uint64_t wanted) { return entry.session_hash < wanted; });
  return head == map_.heads.end() || head->session_hash != hash || offset < head->first_unfinished;
}

std::uint16_t FinishedRecords::failures(Offset offset) const {
  for (const LaneMap::Attempts& entry : map_.attempts) {
    if (entry.offset == offset) {
      return entry.count;
    }
  }
  return 0;
}

void FinishedRecords::cut(Offset end) {
  map_.last = std::min(map_.last, end.plus(-1));
  std::erase_if(map_.attempts, [&](const LaneMap::Attempts& entry) { return entry.offset >= end; });
}

}  // namespace weir::internal
