#include "log/segment/segment_names.h"

#include <weir/runtime/assert.h>

#include <fmt/format.h>

#include <charconv>

namespace weir::log {
namespace {

constexpr std::size_t kDigits = 20;

}  // namespace

std::string segment_file_name(Offset base, std::string_view suffix) {
  WEIR_ASSERT(base >= Offset(0));
  return fmt::format("{:020d}{}", base.value(), suffix);
}

std::optional<Offset> parse_log_file_name(std::string_view name) {
  return parse_segment_file_name(name, kLogSuffix);
}

std::optional<Offset> parse_segment_file_name(std::string_view name, std::string_view suffix) {
  if (name.size() != kDigits + suffix.size() || name.substr(kDigits) != suffix) {
    return std::nullopt;
  }
  std::int64_t base = 0;
  const char* const end = name.data() + kDigits;
  const auto [stop, error] = std::from_chars(name.data(), end, base);
  if (error != std::errc() || stop != end || base < 0) {
    return std::nullopt;
  }
  return Offset(base);
}

}  // namespace weir::log
