#pragma once

#include <weir/runtime/clock.h>

#include <atomic>

namespace weir::testing {

// A clock that moves only when told. Threading: thread-safe.
class ManualClock : public Clock {
 public:
  // `now`: wall time to start at, milliseconds.
  explicit ManualClock(Timestamp now = 1'700'000'000'000) : now_(now) {}

  Timestamp now() const override { return now_.load(); }
  MonotonicTime monotonic() const override { return MonotonicTime(nanoseconds_.load()); }
  void advance(Duration by) {
    const std::int64_t before = nanoseconds_.fetch_add(by.count());
    now_.fetch_add((before + by.count()) / 1'000'000 - before / 1'000'000);
  }
  // Lets the wall clock jump, also back.
  void set_now(Timestamp now) { now_.store(now); }

 private:
  std::atomic<Timestamp> now_;
  std::atomic<std::int64_t> nanoseconds_{0};
};

}  // namespace weir::testing
