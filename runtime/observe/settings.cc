#include <weir/runtime/settings.h>

#include <fmt/core.h>

#include <algorithm>
#include <charconv>
#include <system_error>

namespace weir {

namespace {

// What a message repeats of a user's text; the rest is cut.
constexpr std::size_t kQuotedMax = 128;

std::string quoted(std::string_view text) {
  if (text.size() <= kQuotedMax) {
    return fmt::format("\"{}\"", text);
  }
  return fmt::format("\"{}...\"", text.substr(0, kQuotedMax));
}

// Names up to 7 characters may be off by one edit, longer ones by one more for each 4 characters.
std::size_t near_distance(std::size_t size) {
  return std::max<std::size_t>(1, size / 4);
}

// Damerau-Levenshtein distance in its "optimal string alignment" form: insert, delete, replace,
// swap two neighbours. O(a * b).
std::size_t edit_distance(std::string_view a, std::string_view b) {
  std::vector<std::size_t> two_back(b.size() + 1);
  std::vector<std::size_t> last(b.size() + 1);
  std::vector<std::size_t> row(b.size() + 1);
  for (std::size_t j = 0; j <= b.size(); ++j) {
    last[j] = j;
  }
  for (std::size_t i = 1; i <= a.size(); ++i) {
    row[0] = i;
    for (std::size_t j = 1; j <= b.size(); ++j) {
      const std::size_t replaced = last[j - 1] + (a[i - 1] == b[j - 1] ? 0 : 1);
      row[j] = std::min({last[j] + 1, row[j - 1] + 1, replaced});
      if (i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1]) {
        row[j] = std::min(row[j], two_back[j - 2] + 1);
      }
    }
    two_back.swap(last);
    last.swap(row);
  }
  return last[b.size()];
}

std::size_t difference(std::size_t a, std::size_t b) {
  return a > b ? a - b : b - a;
}

bool is_plain_decimal(std::string_view text) {
  if (!text.empty() && text.front() == '-') {
    text.remove_prefix(1);
  }
  return !text.empty() &&
         std::all_of(text.begin(), text.end(), [](char c) { return c >= '0' && c <= '9'; });
}

}  // namespace

std::string nearest_name(std::string_view name, std::span<const std::string_view> candidates) {
  std::string_view nearest;
  std::size_t nearest_distance = SIZE_MAX;
  for (const std::string_view candidate : candidates) {
    const std::size_t allowed = near_distance(candidate.size());
    if (difference(name.size(), candidate.size()) > allowed) {
      continue;  // the distance is at least the difference in length
    }
    const std::size_t distance = edit_distance(name, candidate);
    if (distance <= allowed && distance < nearest_distance) {
      nearest = candidate;
      nearest_distance = distance;
    }
  }
  return std::string(nearest);
}

namespace internal {

std::string range_text(std::int64_t min, std::int64_t max) {
  if (min == INT64_MIN && max == INT64_MAX) {
    return "any 64-bit number";
  }
  if (max == INT64_MAX) {
    return fmt::format("{} or more", min);
  }
  if (min == INT64_MIN) {
    return fmt::format("{} or less", max);
  }
  return fmt::format("{} to {}", min, max);
}

std::vector<std::string> unknown_key_problems(const std::map<std::string, std::string>& given,
                                              std::span<const std::string_view> known) {
  std::vector<std::string> problems;
  for (const auto& [key, value] : given) {
    if (std::find(known.begin(), known.end(), key) != known.end()) {
      continue;
    }
    const std::string suggestion = nearest_name(key, known);
    problems.push_back(
        suggestion.empty()
            ? fmt::format("{} is not a setting; remove it", quoted(key))
            : fmt::format("{} is not a setting; did you mean \"{}\"?", quoted(key), suggestion));
  }
  return problems;
}

Result<std::int64_t> parse_number(std::string_view name, std::string_view text, std::int64_t min,
                                  std::int64_t max) {
  if (!is_plain_decimal(text)) {
    return Error(Errc::kInvalidConfig, fmt::format("{}={} is not a number; give plain digits, {}",
                                                   name, quoted(text), range_text(min, max)));
  }
  std::int64_t value = 0;
  const auto [end, problem] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (problem != std::errc() || value < min || value > max) {
    return Error(Errc::kInvalidConfig, fmt::format("{}={} is out of range; give {}", name,
                                                   quoted(text), range_text(min, max)));
  }
  return value;
}

Result<bool> parse_flag(std::string_view name, std::string_view text) {
  if (text == "true") {
    return true;
  }
  if (text == "false") {
    return false;
  }
  return Error(Errc::kInvalidConfig,
               fmt::format("{}={} is not a flag; give true or false", name, quoted(text)));
}

Status check_choice(std::string_view name, std::string_view text, std::string_view one_of) {
  if (one_of.empty()) {
    return {};
  }
  std::vector<std::string_view> choices;
  for (std::string_view rest = one_of; !rest.empty();) {
    const std::size_t comma = std::min(rest.find(','), rest.size());
    choices.push_back(rest.substr(0, comma));
    rest.remove_prefix(std::min(comma + 1, rest.size()));
  }
  if (std::find(choices.begin(), choices.end(), text) != choices.end()) {
    return {};
  }
  const std::string suggestion = nearest_name(text, choices);
  std::string message = fmt::format("{}={} is not one of {}", name, quoted(text), one_of);
  if (!suggestion.empty()) {
    message += fmt::format("; did you mean \"{}\"?", suggestion);
  }
  return Error(Errc::kInvalidConfig, std::move(message));
}

Error settings_error(std::string_view part, const std::vector<std::string>& problems) {
  WEIR_ASSERT(!problems.empty());
  if (problems.size() == 1) {
    return {Errc::kInvalidConfig, fmt::format("{}: {}", part, problems.front())};
  }
  std::string message = fmt::format("{}: {} settings are not valid", part, problems.size());
  for (const std::string& problem : problems) {
    message += fmt::format("\n  {}", problem);
  }
  return {Errc::kInvalidConfig, std::move(message)};
}

}  // namespace internal

}  // namespace weir
