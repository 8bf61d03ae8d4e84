#pragma once

#include <cstdint>
#include <cstring>
#include <type_traits>

// Big-endian integers, as in all of Kafka's formats.

namespace weir {

template <class T>
inline T load_be(const char* in) {
  std::make_unsigned_t<T> raw;
  std::memcpy(&raw, in, sizeof(raw));
  if constexpr (sizeof(T) == 2) {
    raw = __builtin_bswap16(raw);
  } else if constexpr (sizeof(T) == 4) {
    raw = __builtin_bswap32(raw);
  } else if constexpr (sizeof(T) == 8) {
    raw = __builtin_bswap64(raw);
  }
  return static_cast<T>(raw);
}

// Returns the byte behind what was written.
template <class T>
inline char* store_be(char* out, T value) {
  auto raw = static_cast<std::make_unsigned_t<T>>(value);
  if constexpr (sizeof(T) == 2) {
    raw = __builtin_bswap16(raw);
  } else if constexpr (sizeof(T) == 4) {
    raw = __builtin_bswap32(raw);
  } else if constexpr (sizeof(T) == 8) {
    raw = __builtin_bswap64(raw);
  }
  std::memcpy(out, &raw, sizeof(raw));
  return out + sizeof(raw);
}

}  // namespace weir
