#pragma once

#include <cstddef>

namespace weir::fuzz {

// The largest single allocation that an input of so many bytes may cause; each fuzzer has its own.
// The replay ends with a message at a larger one; with libFuzzer use -malloc_limit_mb.
std::size_t allocation_max(std::size_t input);

// For what holds nothing but the bytes it read: their number may be multiplied by small structures,
// never by a number that the input names.
inline std::size_t small_allocation_max(std::size_t input) {
  return (std::size_t{1} << 20U) + 128 * input;
}

}  // namespace weir::fuzz
