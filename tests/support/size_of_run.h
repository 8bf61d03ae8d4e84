#pragma once

#include "tests/support/sanitizer.h"

#include <weir/runtime/rng.h>

#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <optional>

// How much a random or exhaustive test does, and from which seed.
//
//   WEIR_TEST_FULL=1    the large counts (scripts/test --full)
//   WEIR_TEST_SEED=N    the seed that a failure printed

namespace weir::testing {

inline bool is_full_run() {
  return std::getenv("WEIR_TEST_FULL") != nullptr;
}

#if defined(WEIR_TEST_ASAN) || defined(WEIR_TEST_TSAN)
inline constexpr bool kIsSanitized = true;
#else
inline constexpr bool kIsSanitized = false;
#endif

// A fifth of the usual rounds, at least one, under a sanitizer: each costs five to twenty times as
// much there, and what a sanitizer finds does not hide in the last rounds.
template <class Count>
Count rounds(Count usual, Count full) {
  if (is_full_run()) {
    return full;
  }
  return kIsSanitized ? std::max<Count>(usual / 5, 1) : usual;
}

// The opposite: of many places, in order, only each so-manieth is tried.
template <class Count>
Count apart(Count usual) {
  if (is_full_run()) {
    return 1;
  }
  return kIsSanitized ? usual * 5 : usual;
}

// What WEIR_TEST_SEED says, if it says anything.
inline std::optional<std::uint64_t> given_seed() {
  const char* given = std::getenv("WEIR_TEST_SEED");
  return given != nullptr ? std::optional(std::strtoull(given, nullptr, 10)) : std::nullopt;
}

// Another one in each run; short enough to be typed again.
inline std::uint64_t seed_of_run() {
  return given_seed().value_or(entropy_seed() % 1'000'000'000);
}

}  // namespace weir::testing
