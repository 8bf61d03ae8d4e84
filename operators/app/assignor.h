#pragma once

#include "operators/task/task_id.h"

#include <cstddef>
#include <vector>

namespace weir::internal {

// Which thread runs which task: index i is thread i. Pure; the same input gives the same answer on
// every instance. Threads differ by at most one task, and the partitions of one sub-topology are
// spread first.
std::vector<std::vector<TaskId>> assign_tasks(std::vector<TaskId> tasks, std::size_t threads);

}  // namespace weir::internal
