#pragma once

#include <weir/runtime/clock.h>
#include <weir/runtime/rng.h>

#include <cstdint>

namespace weir {

// What happens to a record whose attempts are used up (session-workers 2.7).
enum class OnExhausted {
  kDeadLetter,  // dead-letter topic, then the session goes on behind the hole
  kBlock,       // tried again at the longest back-off, for ever; the session waits
  kStop,        // the whole program stops, the record is not finished
  kDrop,        // finished without effect, and counted
  kQuarantine,  // dead-letter topic, and every later record of the session follows it in order
};

// When a failed record is tried again. Immutable value.
struct RetryPolicy {
  Duration backoff_base = std::chrono::milliseconds(50);
  double backoff_multiplier = 2;  // KIP-580: base times multiplier to the failures before
  Duration backoff_max = std::chrono::seconds(30);
  double jitter = 0.2;              // the factor is uniform in [1 - jitter, 1 + jitter]
  std::uint32_t attempts_max = 10;  // the first included; 0: no bound
  Duration elapsed_max = std::chrono::minutes(2);  // since the first failure; 0: no bound
  OnExhausted on_exhausted = OnExhausted::kDeadLetter;

  // Time from the `failures`th failure (from 1) to the next attempt. Draws from `rng` only when
  // there is jitter and a back-off.
  Duration backoff(std::uint32_t failures, Rng& rng) const;
  bool is_exhausted(std::uint32_t failures, Duration since_first_failure) const {
    return (attempts_max != 0 && failures >= attempts_max) ||
           (elapsed_max != Duration::zero() && since_first_failure >= elapsed_max);
  }
};

}  // namespace weir
