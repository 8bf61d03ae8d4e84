#pragma once

#include <weir/runtime/clock.h>
#include <weir/runtime/thread_annotations.h>

#include <atomic>
#include <chrono>
#include <cstdint>

namespace weir::log {

// Wakes one waiter when something it registered for moved: a partition's high watermark, a topic.
// Edge-triggered with a generation, so that a notification between the check and the wait is not
// lost:
//
//   const auto seen = notifier.generation();
//   if (!ready()) notifier.wait(seen, timeout);
//
// Threading: thread-safe.
class Notifier {
 public:
  void notify();
  std::uint64_t generation() const { return generation_.load(); }
  // Returns when generation() != seen or the timeout passed.
  void wait(std::uint64_t seen, Duration timeout);

 private:
  Mutex mutex_;
  CondVar changed_;
  // Both in one total order: who waits counts itself before it looks at the generation, who
  // notifies raises that before it looks for waiters.
  std::atomic<std::uint64_t> generation_{0};
  std::atomic<std::uint32_t> waiting_{0};
};

}  // namespace weir::log
