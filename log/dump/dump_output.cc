#include "log/dump/dump_output.h"

#include <algorithm>
#include <cstdint>

namespace weir::log {
namespace {

struct CodePoint {
  std::uint32_t value = 0;
  std::size_t bytes = 0;  // 0: no well-formed UTF-8
};

// The code point at the start of `in` (RFC 3629: shortest form, no surrogates, up to U+10FFFF).
// Requires: !in.empty().
CodePoint read_utf8(ByteView in) {
  const auto first = static_cast<unsigned char>(in[0]);
  if (first < 0x80) {
    return {first, 1};
  }
  const std::size_t size = first < 0xc2   ? 0
                           : first < 0xe0 ? 2
                           : first < 0xf0 ? 3
                           : first < 0xf5 ? 4
                                          : 0;
  if (size == 0 || in.size() < size) {
    return {};
  }
  std::uint32_t value = first & (0x7fU >> size);
  for (std::size_t i = 1; i < size; ++i) {
    const auto next = static_cast<unsigned char>(in[i]);
    if ((next & 0xc0U) != 0x80) {
      return {};
    }
    value = (value << 6U) | (next & 0x3fU);
  }
  constexpr std::uint32_t kSmallest[] = {0, 0, 0x80, 0x800, 0x10000};
  const bool is_surrogate = value >= 0xd800 && value <= 0xdfff;
  return value < kSmallest[size] || is_surrogate || value > 0x10ffff ? CodePoint{}
                                                                     : CodePoint{value, size};
}

// Printable ASCII at the start, at most 4 KiB of it.
std::size_t plain_prefix(ByteView bytes) {
  const std::size_t limit = std::min<std::size_t>(bytes.size(), 4096);
  std::size_t size = 0;
  while (size < limit && bytes[size] >= 0x20 && bytes[size] < 0x7f) {
    ++size;
  }
  return size;
}

// Not control characters, nor what breaks or turns around a line on a terminal.
bool is_printable(std::uint32_t value) {
  const bool is_control = value < 0x20 || (value >= 0x7f && value < 0xa0);
  const bool is_format =
      (value >= 0x2028 && value <= 0x202e) || (value >= 0x2066 && value <= 0x2069);
  return !is_control && !is_format;
}

}  // namespace

void DumpOutput::printable(ByteView bytes) {
  constexpr std::string_view kDigits = "0123456789abcdef";
  while (!bytes.empty()) {
    const std::size_t plain = plain_prefix(bytes);
    buffer_ += bytes.substr(0, plain);
    bytes.remove_prefix(plain);
    flush_full();
    if (bytes.empty()) {
      break;
    }
    const CodePoint point = read_utf8(bytes);
    const std::size_t size = point.bytes == 0 ? 1 : point.bytes;
    if (point.bytes != 0 && is_printable(point.value)) {
      buffer_ += bytes.substr(0, size);
    } else {
      for (const char byte : bytes.substr(0, size)) {
        const auto value = static_cast<unsigned char>(byte);
        buffer_ += "\\x";
        buffer_ += kDigits[value >> 4U];
        buffer_ += kDigits[value & 15U];
      }
    }
    bytes.remove_prefix(size);
    flush_full();
  }
}

void DumpOutput::flush() {
  if (!buffer_.empty()) {
    write_(buffer_);
    buffer_.clear();
  }
}

}  // namespace weir::log
