#include "tests/crash/pipeline/killed_program.h"

#include <fmt/core.h>

#include <cstdlib>
#include <optional>
#include <vector>

namespace weir::crash {
namespace {

std::optional<KilledArguments> read(const std::vector<std::string>& given) {
  if (given.size() != 3 && given.size() != 6) {
    return std::nullopt;
  }
  KilledArguments arguments;
  arguments.directory = given[0];
  arguments.seed = std::strtoull(given[1].c_str(), nullptr, 10);
  arguments.number = std::strtoll(given[2].c_str(), nullptr, 10);
  if (given.size() == 6) {
    arguments.plan = plan_of(given[3], given[4], given[5]);
    if (!arguments.plan.point.has_value()) {
      return std::nullopt;
    }
  }
  return arguments;
}

}  // namespace

int run_killed(int argc, char** argv, const char* program, const char* number,
               const std::function<Status(const KilledArguments&)>& run) {
  const auto arguments = read({argv + 1, argv + argc});
  if (!arguments.has_value()) {
    fmt::print(stderr, "usage: {} DIRECTORY SEED {} [POINT NTH MOMENT]\n", program, number);
    return 2;
  }
  const Status done = run(*arguments);
  if (!done.ok()) {
    fmt::print(stderr, "{}: {}\n", program, done.error().to_string());
    return 1;
  }
  return 0;
}

}  // namespace weir::crash
