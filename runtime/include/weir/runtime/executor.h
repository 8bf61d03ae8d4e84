#pragma once

#include <weir/runtime/clock.h>

#include <functional>
#include <memory>

namespace weir {

// Port: runs tasks later or at a time, on threads that are not the caller's.
// Threading: thread-safe. Tasks of one executor made with one thread run one at a time, in order.
class Executor {
 public:
  using Task = std::function<void()>;
  using TimerId = std::uint64_t;

  virtual ~Executor() = default;
  virtual void post(Task task) = 0;
  // Runs `task` once, not before `delay` has passed. Returns an id for cancel().
  virtual TimerId post_after(Duration delay, Task task) = 0;
  // True if the timer had not started; its task then never runs.
  virtual bool cancel(TimerId timer) = 0;
};

// Boost.Asio io_context on `threads` threads of its own. The destructor finishes posted tasks,
// drops timers that are not due, and joins.
std::unique_ptr<Executor> make_asio_executor(int threads);

// Calls `handler` on a private thread with the number of each SIGINT or SIGTERM that arrives while
// the returned object lives. The previous disposition comes back when it is destroyed. One at a
// time.
class SignalWatch {
 public:
  virtual ~SignalWatch() = default;
};
std::unique_ptr<SignalWatch> watch_termination_signals(std::function<void(int)> handler);

}  // namespace weir
