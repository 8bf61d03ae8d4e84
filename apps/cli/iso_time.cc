#include "apps/cli/iso_time.h"

#include <fmt/core.h>

#include <charconv>
#include <chrono>
#include <optional>

namespace weir::cli {
namespace {

Error no_time(std::string_view text) {
  return {Errc::kInvalidArgument,
          fmt::format("'{}' is no date; write it as 2026-03-01 or 2026-03-01T12:30:15Z",
                      text.substr(0, 64))};
}

// Reads fields of fixed width from the front of a text.
class Fields {
 public:
  explicit Fields(std::string_view rest) : rest_(rest) {}

  bool number(std::size_t digits, int low, int high, int& value) {
    if (rest_.size() < digits || !is_digit(rest_[0])) {
      return false;
    }
    const char* const end = rest_.data() + digits;
    const auto [stop, error] = std::from_chars(rest_.data(), end, value);
    if (error != std::errc() || stop != end || value < low || value > high) {
      return false;
    }
    rest_.remove_prefix(digits);
    return true;
  }
  bool skip(char c) {
    if (!rest_.starts_with(c)) {
      return false;
    }
    rest_.remove_prefix(1);
    return true;
  }
  // Digits behind a point as milliseconds.
  bool fraction(int& milliseconds) {
    std::size_t digits = 0;
    for (int scale = 100; digits < rest_.size() && is_digit(rest_[digits]); scale /= 10) {
      milliseconds += scale * (rest_[digits++] - '0');
    }
    rest_.remove_prefix(digits);
    return digits > 0;
  }
  bool at_end() const { return rest_.empty(); }

 private:
  static bool is_digit(char c) { return c >= '0' && c <= '9'; }
  std::string_view rest_;
};

// Minutes that the zone is ahead of UTC; nullopt when the rest is no zone.
std::optional<int> zone_minutes(Fields& in) {
  if (in.at_end() || (in.skip('Z') && in.at_end())) {
    return 0;
  }
  const bool ahead = in.skip('+');
  int hours = 0;
  int minutes = 0;
  if ((!ahead && !in.skip('-')) || !in.number(2, 0, 14, hours)) {
    return std::nullopt;
  }
  static_cast<void>(in.skip(':'));
  if ((!in.at_end() && !in.number(2, 0, 59, minutes)) || !in.at_end()) {
    return std::nullopt;
  }
  const int total = hours * 60 + minutes;
  return ahead ? total : -total;
}

// Time of day and zone.
std::optional<std::chrono::milliseconds> time_of_day(Fields& in) {
  int hour = 0;
  int minute = 0;
  int second = 0;
  int millisecond = 0;
  if (!in.number(2, 0, 23, hour) || !in.skip(':') || !in.number(2, 0, 59, minute)) {
    return std::nullopt;
  }
  if (in.skip(':') &&
      (!in.number(2, 0, 59, second) || (in.skip('.') && !in.fraction(millisecond)))) {
    return std::nullopt;
  }
  const std::optional<int> zone = zone_minutes(in);
  if (!zone) {
    return std::nullopt;
  }
  return std::chrono::hours(hour) + std::chrono::minutes(minute - *zone) +
         std::chrono::seconds(second) + std::chrono::milliseconds(millisecond);
}

}  // namespace

Result<Timestamp> parse_iso_time(std::string_view text) {
  Fields in(text);
  int year = 0;
  int month = 0;
  int day = 0;
  if (!in.number(4, 0, 9999, year) || !in.skip('-') || !in.number(2, 1, 12, month) ||
      !in.skip('-') || !in.number(2, 1, 31, day)) {
    return no_time(text);
  }
  const std::chrono::year_month_day date{std::chrono::year(year),
                                         std::chrono::month(static_cast<unsigned>(month)),
                                         std::chrono::day(static_cast<unsigned>(day))};
  if (!date.ok()) {
    return no_time(text);
  }
  std::chrono::milliseconds since_1970 = std::chrono::sys_days(date).time_since_epoch();
  if (!in.at_end()) {
    std::optional<std::chrono::milliseconds> time;
    if (in.skip('T') || in.skip('t') || in.skip(' ')) {
      time = time_of_day(in);
    }
    if (!time) {
      return no_time(text);
    }
    since_1970 += *time;
  }
  return Timestamp{since_1970.count()};
}

Result<Timestamp> parse_time(std::string_view text) {
  Timestamp value = 0;
  const char* const end = text.data() + text.size();
  const auto [stop, error] = std::from_chars(text.data(), end, value);
  if (error == std::errc() && stop == end && value >= 0) {
    return value;
  }
  Result<Timestamp> time = parse_iso_time(text);
  return time.ok() ? time
                   : Result<Timestamp>(Error(
                         Errc::kInvalidArgument,
                         fmt::format("{}, or as milliseconds since 1970", time.error().message())));
}

}  // namespace weir::cli
