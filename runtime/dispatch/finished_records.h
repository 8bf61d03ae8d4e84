#pragma once

#include <weir/runtime/lane_map.h>

#include <cstdint>
#include <vector>

namespace weir::internal {

// The records that a former owner of the partition finished above the committed offset. Immutable
// but for cut().
class FinishedRecords {
 public:
  explicit FinishedRecords(LaneMap map);

  // Whether the record was finished. `session_hash` is session_hash() of its session.
  bool contains(Offset offset, std::uint64_t session_hash) const;
  // Failed attempts of a record that is not finished.
  std::uint16_t failures(Offset offset) const;
  // Nothing above it is known.
  Offset last() const { return map_.last; }
  // E4: the log ends at `end`; what the map says above it was about other records.
  void cut(Offset end);

 private:
  LaneMap map_;  // heads sorted by hash
};

}  // namespace weir::internal
