#include "apps/word_count/words.h"

#include <array>

namespace weir::word_count {
namespace {

// What a byte becomes inside a word; 0 for bytes between words.
constexpr std::array<char, 256> make_table() {
  std::array<char, 256> table{};
  for (unsigned byte = 0; byte < table.size(); ++byte) {
    const bool upper = byte >= 'A' && byte <= 'Z';
    const bool other = (byte >= 'a' && byte <= 'z') || (byte >= '0' && byte <= '9') ||
                       byte == '_' || byte >= 0x80U;
    if (upper) {
      table[byte] = static_cast<char>(byte - 'A' + 'a');
    } else if (other) {
      table[byte] = static_cast<char>(byte);
    }
  }
  return table;
}
constexpr std::array<char, 256> kTable = make_table();

char lower(char byte) {
  return kTable[static_cast<unsigned char>(byte)];
}

}  // namespace

bool is_word_byte(char byte) {
  return lower(byte) != 0;
}

std::vector<std::string> words(std::string_view line) {
  std::vector<std::string> result;
  result.reserve(line.size() / 6 + 1);
  const char* at = line.data();
  const char* const end = at + line.size();
  while (at != end) {
    while (at != end && lower(*at) == 0) {
      ++at;
    }
    const char* const begin = at;
    while (at != end && lower(*at) != 0) {
      ++at;
    }
    if (at != begin) {
      std::string& word = result.emplace_back(begin, at);
      for (char& byte : word) {
        byte = lower(byte);
      }
    }
  }
  return result;
}

}  // namespace weir::word_count
