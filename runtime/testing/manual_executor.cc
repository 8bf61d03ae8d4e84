#include <weir/runtime/assert.h>
#include <weir/runtime/testing/manual_executor.h>
#include <weir/runtime/thread_annotations.h>

#include <algorithm>
#include <compare>
#include <map>
#include <optional>
#include <utility>

namespace weir::testing {

namespace {

// "Never" in practice, and far from overflowing the clock.
constexpr Duration kDelayMax = std::chrono::hours(24 * 365 * 10);

}  // namespace

// A posted task is a timer that is due at once: one queue gives one order.
struct ManualExecutor::State {
  explicit State(const ManualClock& the_clock) : clock(the_clock) {}

  struct Place {
    MonotonicTime due;
    TimerId id = 0;  // rises with every post
    friend auto operator<=>(const Place&, const Place&) = default;
  };

  TimerId add(MonotonicTime due, Task task) {
    WEIR_ASSERT(task != nullptr);
    MutexLock lock(mutex);
    const TimerId id = next_id++;
    queue.emplace(Place{due, id}, std::move(task));
    return id;
  }

  std::optional<Task> take_due() {
    const MonotonicTime now = clock.monotonic();
    MutexLock lock(mutex);
    if (queue.empty() || queue.begin()->first.due > now) {
      return std::nullopt;
    }
    return std::move(queue.extract(queue.begin()).mapped());
  }

  const ManualClock& clock;
  Mutex mutex;
  std::map<Place, Task> queue WEIR_GUARDED_BY(mutex);
  TimerId next_id WEIR_GUARDED_BY(mutex) = 1;
};

ManualExecutor::ManualExecutor(const ManualClock& clock) : state_(std::make_unique<State>(clock)) {}

ManualExecutor::~ManualExecutor() = default;

void ManualExecutor::post(Task task) {
  state_->add(state_->clock.monotonic(), std::move(task));
}

Executor::TimerId ManualExecutor::post_after(Duration delay, Task task) {
  return state_->add(state_->clock.monotonic() + std::clamp(delay, Duration(0), kDelayMax),
                     std::move(task));
}

bool ManualExecutor::cancel(TimerId timer) {
  // Outside the lock when it is destroyed: what a task owns may post from its destructor.
  std::map<State::Place, Task>::node_type dropped;
  MutexLock lock(state_->mutex);
  const auto found = std::find_if(state_->queue.begin(), state_->queue.end(),
                                  [timer](const auto& entry) { return entry.first.id == timer; });
  if (found == state_->queue.end()) {
    return false;
  }
  dropped = state_->queue.extract(found);
  return true;
}

std::size_t ManualExecutor::run_ready() {
  std::size_t ran = 0;
  while (const std::optional<Task> task = state_->take_due()) {
    (*task)();
    ++ran;
  }
  return ran;
}

}  // namespace weir::testing
