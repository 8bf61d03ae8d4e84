#include "operators/app/assignor.h"

#include <weir/runtime/assert.h>

#include <algorithm>

namespace weir::internal {

std::vector<std::vector<TaskId>> assign_tasks(std::vector<TaskId> tasks, std::size_t threads) {
  WEIR_ASSERT(threads > 0);
  std::sort(tasks.begin(), tasks.end());
  std::vector<std::vector<TaskId>> by_thread(threads);
  for (std::size_t i = 0; i < tasks.size(); ++i) {
    by_thread[i % threads].push_back(tasks[i]);
  }
  return by_thread;
}

}  // namespace weir::internal
