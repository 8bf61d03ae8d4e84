#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace weir::word_count {

// Letters, digits, underscore and every byte from 0x80 up, so that any language in UTF-8 counts.
bool is_word_byte(char byte);

// The words of a line, ASCII letters in lower case.
std::vector<std::string> words(std::string_view line);

}  // namespace weir::word_count
