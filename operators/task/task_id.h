#pragma once

#include <weir/runtime/types.h>

#include <compare>
#include <cstdint>
#include <string>

namespace weir::internal {

// "<sub-topology>_<partition>" (TOP-3).
struct TaskId {
  std::uint32_t sub_topology = 0;
  PartitionId partition;

  friend auto operator<=>(const TaskId&, const TaskId&) = default;
  std::string to_string() const {
    return std::to_string(sub_topology) + "_" + std::to_string(partition.value());
  }
};

}  // namespace weir::internal
