#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

// The functions that the recorded topologies were given, over our types. A null is an empty
// optional.

namespace weir::streams_cases {

using Text = std::string;
using MaybeText = std::optional<std::string>;
using Long = std::int64_t;
using MaybeLong = std::optional<std::int64_t>;

// Java's string conversion: "null" for a null.
Text printed(const MaybeText& value);

// agg + "+" + v
Text concat(const Text& aggregate, const MaybeText& value);
// (agg * 31 + v) mod 1000003; a null counts as 13. Java's %: the sign of the left side.
Long poly(Long aggregate, const MaybeLong& value);

// (agg * 17 + v + 7) mod 1000003
Long poly_sub(Long aggregate, Long value);
// What session windows merge with: a & b, (a * 7 + b) mod 1000003.
Text merge_texts(const Text& left, const Text& right);
Long merge_polys(Long left, Long right);
// jn: l + "-" + r
Text joined(const MaybeText& left, const MaybeText& right);
// What stands before the first `separator`; null and nothing before it give null. Foreign keys
// ('|'), keys of a global table (':').
MaybeText part_before(const MaybeText& value, char separator);

// "g:n": both parts, an empty one is null. "PAIR-NULL": no pair.
using MaybePair = std::optional<std::pair<MaybeText, MaybeText>>;
MaybePair group_and_text(const Text& value);
std::optional<std::pair<MaybeText, MaybeLong>> group_and_number(const Text& value);

// group: first. Null and empty have no first character.
MaybeText first_character(const MaybeText& value);
MaybeText first_digit(const MaybeLong& value);

bool is_null_or_starts_with_a(const MaybeText& value);
// ASCII letters only, which are all that the cases have.
Text upper_case(Text text);
Text lower_case(Text text);
// Java's split(",", -1): empty parts stay.
std::vector<Text> split_at_commas(std::string_view text);
// Java's split(","): empty parts at the end are left out; the empty text is one empty part.
std::vector<Text> java_split_at_commas(std::string_view text);
// The words of a line: lower case, Java's split("\\W+"). A leading separator gives an empty first
// word, trailing empty words are left out, the empty text is one empty word.
std::vector<Text> java_words(const Text& line);

}  // namespace weir::streams_cases
