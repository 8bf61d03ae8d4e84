#include "bench/report.h"

#include <fmt/core.h>
#include <nlohmann/json.hpp>

#include <cmath>
#include <cstdio>

namespace weir::bench {
namespace {

// Three digits, or all before the point; a whole number stays whole.
std::string number_text(double value) {
  if (value == std::floor(value) || std::abs(value) >= 1000) {
    return fmt::format("{:.0f}", value);
  }
  const int decimals = std::abs(value) >= 100 ? 0 : std::abs(value) >= 10 ? 1 : 2;
  return fmt::format("{:.{}f}", value, decimals);
}

}  // namespace

void Report::line(std::string_view job, std::string_view metric, double value,
                  std::string_view unit, std::optional<double> ratio, std::string_view against) {
  const std::string ratio_text = ratio ? fmt::format("{:.3f}", *ratio) : std::string();
  if (json_) {
    nlohmann::ordered_json object;
    object["job"] = job;
    object["metric"] = metric;
    object["value"] = value;
    object["unit"] = unit;
    object["ratio"] = ratio ? nlohmann::ordered_json(*ratio) : nlohmann::ordered_json();
    object["against"] = against;
    fmt::print("{}\n", object.dump());
  } else {
    fmt::print("{}\t{}\t{}\t{}\t{}\t{}\n", job, metric, number_text(value), unit, ratio_text,
               against);
  }
  std::fflush(stdout);
}

}  // namespace weir::bench
