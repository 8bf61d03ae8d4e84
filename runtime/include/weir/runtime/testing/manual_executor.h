#pragma once

#include <weir/runtime/executor.h>
#include <weir/runtime/testing/manual_clock.h>

#include <cstddef>
#include <memory>

namespace weir::testing {

// Runs tasks only in run_ready(), on the caller's thread, by a manual clock.
class ManualExecutor : public Executor {
 public:
  explicit ManualExecutor(const ManualClock& clock);
  ~ManualExecutor() override;

  void post(Task task) override;
  TimerId post_after(Duration delay, Task task) override;
  bool cancel(TimerId timer) override;

  // Runs posted tasks and due timers, also those that they post, in order of due time, then of
  // posting. Returns how many ran.
  std::size_t run_ready();

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace weir::testing
