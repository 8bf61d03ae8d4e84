#pragma once

#include <weir/runtime/bytes.h>

#include <cstdint>
#include <cstring>

// Kafka's variable-length integers (org.apache.kafka.common.utils.ByteUtils): 7 bits a byte, low
// first, high bit = more; signed ones zigzag. At most 5 bytes for 32 bits, 10 for 64.

namespace weir {

inline constexpr std::uint32_t zigzag32(std::int32_t v) {
  return (static_cast<std::uint32_t>(v) << 1U) ^ static_cast<std::uint32_t>(v >> 31);
}
inline constexpr std::uint64_t zigzag64(std::int64_t v) {
  return (static_cast<std::uint64_t>(v) << 1U) ^ static_cast<std::uint64_t>(v >> 63);
}
inline constexpr std::int32_t unzigzag32(std::uint32_t v) {
  return static_cast<std::int32_t>((v >> 1U) ^ (0U - (v & 1U)));
}
inline constexpr std::int64_t unzigzag64(std::uint64_t v) {
  return static_cast<std::int64_t>((v >> 1U) ^ (0ULL - (v & 1ULL)));
}

inline constexpr std::size_t uvarint_size(std::uint64_t v) {
  std::size_t n = 1;
  while (v >= 0x80U) {
    v >>= 7U;
    ++n;
  }
  return n;
}
inline constexpr std::size_t varint_size(std::int32_t v) {
  return uvarint_size(zigzag32(v));
}
inline constexpr std::size_t varlong_size(std::int64_t v) {
  return uvarint_size(zigzag64(v));
}

// Writes at `out`, which has room for 10 bytes; returns the end.
inline char* write_uvarint(char* out, std::uint64_t v) {
  while (v >= 0x80U) {
    *out++ = static_cast<char>(v | 0x80U);
    v >>= 7U;
  }
  *out++ = static_cast<char>(v);
  return out;
}
inline char* write_varint(char* out, std::int32_t v) {
  return write_uvarint(out, zigzag32(v));
}
inline char* write_varlong(char* out, std::int64_t v) {
  return write_uvarint(out, zigzag64(v));
}

// Read from [in, end). Null when the bytes end inside the number or it is longer than legal
// (32 bits: 5 bytes; 64 bits: 10 bytes); else the end of the number.
inline const char* read_uvarint64(const char* in, const char* end, std::uint64_t* v) {
  std::uint64_t value = 0;
  for (unsigned shift = 0; shift < 70; shift += 7) {
    if (in == end) {
      return nullptr;
    }
    const auto byte = static_cast<unsigned char>(*in++);
    value |= static_cast<std::uint64_t>(byte & 0x7fU) << (shift & 63U);
    if (byte < 0x80U) {
      *v = value;
      return in;
    }
  }
  return nullptr;
}
inline const char* read_uvarint32(const char* in, const char* end, std::uint32_t* v) {
  std::uint32_t value = 0;
  for (unsigned shift = 0; shift < 35; shift += 7) {
    if (in == end) {
      return nullptr;
    }
    const auto byte = static_cast<unsigned char>(*in++);
    value |= static_cast<std::uint32_t>(byte & 0x7fU) << (shift & 31U);
    if (byte < 0x80U) {
      *v = value;
      return in;
    }
  }
  return nullptr;
}
inline const char* read_varint(const char* in, const char* end, std::int32_t* v) {
  if (in != end && static_cast<unsigned char>(*in) < 0x80U) [[likely]] {
    *v = unzigzag32(static_cast<unsigned char>(*in));
    return in + 1;
  }
  std::uint32_t raw = 0;
  in = read_uvarint32(in, end, &raw);
  if (in != nullptr) {
    *v = unzigzag32(raw);
  }
  return in;
}
inline const char* read_varlong(const char* in, const char* end, std::int64_t* v) {
  std::uint64_t raw = 0;
  in = read_uvarint64(in, end, &raw);
  if (in != nullptr) {
    *v = unzigzag64(raw);
  }
  return in;
}

}  // namespace weir
