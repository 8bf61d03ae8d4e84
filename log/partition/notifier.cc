#include "log/partition/notifier.h"

#include <algorithm>

namespace weir::log {

void Notifier::notify() {
  generation_.fetch_add(1);
  if (waiting_.load() == 0) {
    return;
  }
  {
    const MutexLock lock(mutex_);  // whoever counted itself waits now, or has seen the generation
  }
  changed_.notify_all();
}

void Notifier::wait(std::uint64_t seen, Duration timeout) {
  // A caller that says "for ever" must not overflow the deadline.
  constexpr Duration kLongest = std::chrono::hours(24);
  const MutexLock lock(mutex_);
  waiting_.fetch_add(1);
  while (generation_.load() == seen) {
    // A spurious wake-up starts the time-out again: rather late than early.
    if (!changed_.wait_for(mutex_, std::min(timeout, kLongest))) {
      break;
    }
  }
  waiting_.fetch_sub(1);
}

}  // namespace weir::log
