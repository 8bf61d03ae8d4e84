#pragma once

#include <string>
#include <string_view>

namespace weir::testing {

// "0a ff" -> two bytes. Characters that are no hex digits are skipped.
inline std::string from_hex(std::string_view text) {
  std::string bytes;
  int high = -1;
  for (const char c : text) {
    const int digit = c >= '0' && c <= '9'   ? c - '0'
                      : c >= 'a' && c <= 'f' ? c - 'a' + 10
                      : c >= 'A' && c <= 'F' ? c - 'A' + 10
                                             : -1;
    if (digit < 0) {
      continue;
    }
    if (high < 0) {
      high = digit;
    } else {
      bytes.push_back(static_cast<char>(high * 16 + digit));
      high = -1;
    }
  }
  return bytes;
}

inline std::string to_hex(std::string_view bytes) {
  constexpr std::string_view kDigits = "0123456789abcdef";
  std::string text;
  for (const char c : bytes) {
    text.push_back(kDigits[static_cast<unsigned char>(c) >> 4U]);
    text.push_back(kDigits[static_cast<unsigned char>(c) & 15U]);
  }
  return text;
}

}  // namespace weir::testing
