#include "log/client/offset_reset.h"

#include <fmt/core.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <cstring>
#include <optional>

namespace weir::log {
namespace {

constexpr std::string_view kByDuration = "by_duration:";
constexpr double kSecondsMax = 100.0 * 366 * 24 * 3600;  // fits Duration

// One "<number><unit>" off the front of `rest`; nullopt when there is none. `units` are those that
// may still come, in order.
std::optional<double> take_part(std::string_view& rest, std::string_view& units) {
  double number = 0;
  const char* const end = rest.data() + rest.size();
  const auto [stop, failure] = std::from_chars(rest.data(), end, number, std::chars_format::fixed);
  if (failure != std::errc() || stop == end || rest.front() == '-') {
    return std::nullopt;
  }
  const std::size_t unit = units.find(*stop);
  const bool fraction = std::memchr(rest.data(), '.', rest.size()) != nullptr &&
                        std::find(rest.data(), stop, '.') != stop;
  if (unit == std::string_view::npos || (fraction && *stop != 'S')) {
    return std::nullopt;
  }
  rest.remove_prefix(static_cast<std::size_t>(stop - rest.data()) + 1);
  const double seconds = *stop == 'D' ? 86'400 : *stop == 'H' ? 3600 : *stop == 'M' ? 60 : 1;
  units.remove_prefix(unit + 1);
  return number * seconds;
}

// ISO 8601 as java.time.Duration reads it, without signs: PnDTnHnMn.nS.
std::optional<Duration> parse_duration(std::string_view text) {
  if (text.size() < 3 || text.front() != 'P') {
    return std::nullopt;
  }
  text.remove_prefix(1);
  double seconds = 0;
  std::string_view days = "D";
  if (text.front() != 'T') {
    const std::optional<double> part = take_part(text, days);
    if (!part) {
      return std::nullopt;
    }
    seconds += *part;
  }
  if (!text.empty()) {
    if (text.front() != 'T' || text.size() == 1) {
      return std::nullopt;
    }
    text.remove_prefix(1);
    std::string_view units = "HMS";
    while (!text.empty()) {
      const std::optional<double> part = take_part(text, units);
      if (!part) {
        return std::nullopt;
      }
      seconds += *part;
    }
  }
  if (seconds > kSecondsMax) {
    return std::nullopt;
  }
  return std::chrono::milliseconds(std::llround(seconds * 1000));
}

}  // namespace

Result<OffsetReset> OffsetReset::parse(std::string_view text) {
  if (text == "earliest") {
    return OffsetReset{Kind::kEarliest, {}};
  }
  if (text == "latest") {
    return OffsetReset{Kind::kLatest, {}};
  }
  if (text == "none") {
    return OffsetReset{Kind::kNone, {}};
  }
  if (text.substr(0, kByDuration.size()) == kByDuration) {
    if (const auto ago = parse_duration(text.substr(kByDuration.size()))) {
      return OffsetReset{Kind::kByDuration, *ago};
    }
    return Error(
        Errc::kInvalidConfig,
        fmt::format("auto.offset.reset={}: a duration is written PnDTnHnMn.nS, for example "
                    "by_duration:P1DT12H, and is not negative or over 100 years",
                    text));
  }
  return Error(Errc::kInvalidConfig,
               fmt::format("auto.offset.reset={}: it is earliest, latest, none or "
                           "by_duration:PnDTnHnMn.nS",
                           text));
}

Result<ResetPosition> find_reset_position(Admin& admin, const TopicPartition& partition,
                                          const OffsetReset& reset, const Clock& clock,
                                          IsolationLevel isolation) {
  WEIR_ASSERT(reset.kind != OffsetReset::Kind::kNone);
  if (reset.kind == OffsetReset::Kind::kByDuration) {
    const auto ago = std::chrono::duration_cast<std::chrono::milliseconds>(reset.ago).count();
    WEIR_TRY_ASSIGN(const std::optional<Offset> found,
                    admin.offset_for_time(partition, std::max<Timestamp>(0, clock.now() - ago)));
    if (found) {
      return ResetPosition{*found, kNoLeaderEpoch};
    }
  }
  WEIR_TRY_ASSIGN(const PartitionOffsets at, admin.offsets(partition));
  if (reset.kind == OffsetReset::Kind::kEarliest) {
    return ResetPosition{at.log_start, kNoLeaderEpoch};
  }
  return ResetPosition{end_of(at, isolation), at.leader_epoch};
}

}  // namespace weir::log
