#pragma once

#include "operators/app/app_core.h"

#include <weir/operators/app.h>

#include <map>
#include <memory>
#include <set>
#include <string>
#include <vector>

namespace weir::internal {

// Input topics in the order in which records reach them: stage 0 are those that no sub-topology of
// the plan writes, then those that the readers of earlier stages write. Names as in the plan; a
// topic stands in the first stage that it belongs to. Pure.
std::vector<std::set<std::string>> drain_stages(const Plan& plan);

// Waits stage by stage: once the captured ends of a stage are committed, all that its records
// caused stands in the topics of the next one, whose ends are captured then.
// Threading: thread-safe, as DrainWatch.
class StagedDrainWatch final : public DrainWatch {
 public:
  // Captures the ends of the first stage. Borrows `core`. Errors: Admin's.
  static Result<std::unique_ptr<StagedDrainWatch>> make(AppCore& core);
  Result<bool> done() override;

 private:
  explicit StagedDrainWatch(AppCore& core);
  Status capture();

  AppCore& core_;
  Mutex mutex_;
  std::vector<std::set<std::string>> stages_ WEIR_GUARDED_BY(mutex_);
  std::size_t stage_ WEIR_GUARDED_BY(mutex_) = 0;
  std::map<TopicPartition, Offset> ends_ WEIR_GUARDED_BY(mutex_);
};

}  // namespace weir::internal
