#pragma once

#include <weir/runtime/types.h>

#include <chrono>

namespace weir {

using Duration = std::chrono::nanoseconds;
// Time since an arbitrary start; never goes back.
using MonotonicTime = std::chrono::duration<std::int64_t, std::nano>;

// Port: time. Nothing outside runtime/io asks the system for it.
// Threading: thread-safe.
class Clock {
 public:
  virtual ~Clock() = default;
  // Wall clock, milliseconds since 1970-01-01 UTC. May jump.
  virtual Timestamp now() const = 0;
  virtual MonotonicTime monotonic() const = 0;
};

// The machine's clock. Lives for the whole process.
Clock& system_clock();

}  // namespace weir
