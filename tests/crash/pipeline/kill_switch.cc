#include "tests/crash/pipeline/kill_switch.h"

#include <fmt/core.h>

#include <array>
#include <csignal>
#include <cstdlib>
#include <unistd.h>

namespace weir::crash {
namespace {

constexpr std::array<std::string_view, kPoints> kNames = {"append",
                                                          "roll",
                                                          "sync",
                                                          "flush",
                                                          "checkpoint-file",
                                                          "changelog-written",
                                                          "sink-flushed",
                                                          "offsets-committed",
                                                          "promoted",
                                                          "sst-build",
                                                          "ingest",
                                                          "old-removed",
                                                          "close",
                                                          "swap",
                                                          "segment-removed"};

}  // namespace

std::string_view point_name(Point point) {
  return kNames.at(static_cast<std::size_t>(point));
}

std::optional<Point> find_point(std::string_view name) {
  for (std::size_t i = 0; i < kPoints; ++i) {
    if (kNames.at(i) == name) {
      return static_cast<Point>(i);
    }
  }
  return std::nullopt;
}

KillSwitch::Plan plan_of(const std::string& point, const std::string& nth,
                         const std::string& moment) {
  return {find_point(point), std::strtoull(nth.c_str(), nullptr, 10),
          static_cast<Moment>(std::strtol(moment.c_str(), nullptr, 10))};
}

bool KillSwitch::is_due(std::optional<Point> point, bool changes_disk) {
  if (closing_ && changes_disk) {
    ++close_operations_;
  }
  if (!plan_.point.has_value() || !is_armed()) {
    return false;
  }
  const bool here = *plan_.point == Point::kClose ? closing_ && changes_disk : point == plan_.point;
  return here && passed_.fetch_add(1) == plan_.nth;
}

void KillSwitch::die() const {
  report(fmt::format("kill {}", point_name(*plan_.point)));
  for (;;) {
    ::kill(::getpid(), SIGKILL);
  }
}

void report(std::string_view line) {
  const std::string text = std::string(line) + "\n";
  if (::write(STDOUT_FILENO, text.data(), text.size()) != static_cast<ssize_t>(text.size())) {
    ::_exit(3);  // nobody listens
  }
}

}  // namespace weir::crash
