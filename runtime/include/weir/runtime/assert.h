#pragma once

namespace weir::internal {

// Prints the condition and its place to stderr and aborts. For our own broken promises only.
[[noreturn]] void assertion_failed(const char* condition, const char* file, int line) noexcept;

}  // namespace weir::internal

// Checks an invariant of this library, in release builds too. Input from a user, a file or a peer
// is never asserted: it is answered with an Error.
#define WEIR_ASSERT(condition)                                            \
  do {                                                                    \
    if (!(condition)) [[unlikely]] {                                      \
      ::weir::internal::assertion_failed(#condition, __FILE__, __LINE__); \
    }                                                                     \
  } while (false)
