#include "log/partition/notifier.h"

#include <algorithm>

namespace weir::log {

void Notifier::notify() {
  const MutexLock lock(mutex_);
  ++generation_;
  changed_.notify_all();
}

std::uint64_t Notifier::generation() const {
  const MutexLock lock(mutex_);
  return generation_;
}

void Notifier::wait(std::uint64_t seen, Duration timeout) {
  // A caller that says "for ever" must not overflow the deadline.
  constexpr Duration kLongest = std::chrono::hours(24);
  const MutexLock lock(mutex_);
  while (generation_ == seen) {
    // A spurious wake-up starts the time-out again: rather late than early.
    if (!changed_.wait_for(mutex_, std::min(timeout, kLongest))) {
      return;
    }
  }
}

}  // namespace weir::log
