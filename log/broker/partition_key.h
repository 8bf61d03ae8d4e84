#pragma once

#include <weir/runtime/types.h>

#include <utility>

namespace weir::log {

// Topic id and partition: a topic of the same name that is made anew is another one.
using PartitionKey = std::pair<Uuid, PartitionId>;

}  // namespace weir::log
