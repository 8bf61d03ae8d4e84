#include "tests/streams_cases/functions.h"

#include <algorithm>
#include <utility>

namespace weir::streams_cases {

namespace {

constexpr Long kModulus = 1'000'003;
constexpr Long kNullCountsAs = 13;

bool is_word_character(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_';
}

}  // namespace

Text printed(const MaybeText& value) {
  return value.value_or("null");
}

Text concat(const Text& aggregate, const MaybeText& value) {
  return aggregate + "+" + printed(value);
}

Long poly(Long aggregate, const MaybeLong& value) {
  return (aggregate * 31 + value.value_or(kNullCountsAs)) % kModulus;
}

Long poly_sub(Long aggregate, Long value) {
  return (aggregate * 17 + value + 7) % kModulus;
}

Text merge_texts(const Text& left, const Text& right) {
  return left + "&" + right;
}

Long merge_polys(Long left, Long right) {
  return (left * 7 + right) % kModulus;
}

Text joined(const MaybeText& left, const MaybeText& right) {
  return printed(left) + "-" + printed(right);
}

MaybeText part_before(const MaybeText& value, char separator) {
  if (!value.has_value()) {
    return std::nullopt;
  }
  Text part = value->substr(0, value->find(separator));
  return part.empty() ? std::nullopt : MaybeText(std::move(part));
}

MaybeText first_character(const MaybeText& value) {
  return !value.has_value() || value->empty() ? std::nullopt : MaybeText(value->substr(0, 1));
}

MaybeText first_digit(const MaybeLong& value) {
  return value.has_value() ? first_character(std::to_string(*value)) : std::nullopt;
}

bool is_null_or_starts_with_a(const MaybeText& value) {
  return !value.has_value() || value->starts_with('a');
}

Text upper_case(Text text) {
  std::transform(text.begin(), text.end(), text.begin(), [](char c) {
    return c >= 'a' && c <= 'z' ? static_cast<char>(c - 'a' + 'A') : c;
  });
  return text;
}

Text lower_case(Text text) {
  std::transform(text.begin(), text.end(), text.begin(), [](char c) {
    return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c;
  });
  return text;
}

std::vector<Text> split_at_commas(std::string_view text) {
  std::vector<Text> parts(1);
  for (const char c : text) {
    if (c == ',') {
      parts.emplace_back();
    } else {
      parts.back() += c;
    }
  }
  return parts;
}

std::vector<Text> java_words(const Text& line) {
  std::vector<Text> words(1);
  bool in_separator = false;
  for (const char c : lower_case(line)) {
    if (!is_word_character(c)) {
      in_separator = true;
      continue;
    }
    if (std::exchange(in_separator, false)) {
      words.emplace_back();
    }
    words.back() += c;
  }
  return words;
}

std::vector<Text> java_split_at_commas(std::string_view text) {
  std::vector<Text> parts = split_at_commas(text);
  while (parts.size() > 1 && parts.back().empty()) {
    parts.pop_back();
  }
  if (!text.empty() && parts.back().empty()) {
    parts.clear();
  }
  return parts;
}

MaybePair group_and_text(const Text& value) {
  if (value == "PAIR-NULL") {
    return std::nullopt;
  }
  const auto part = [](Text text) { return text.empty() ? std::nullopt : MaybeText(text); };
  const std::size_t colon = value.find(':');
  return std::pair(part(value.substr(0, colon)), part(value.substr(colon + 1)));
}

std::optional<std::pair<MaybeText, MaybeLong>> group_and_number(const Text& value) {
  const MaybePair pair = group_and_text(value);
  if (!pair.has_value()) {
    return std::nullopt;
  }
  return std::pair(pair->first,
                   pair->second.has_value() ? MaybeLong(std::stoll(*pair->second)) : std::nullopt);
}

}  // namespace weir::streams_cases
