#pragma once

#include "tests/crash/pipeline/kill_switch.h"

#include <weir/runtime/result.h>

#include <cstdint>
#include <functional>
#include <string>

namespace weir::crash {

// The command line of a program that is killed: DIRECTORY SEED NUMBER [POINT NTH MOMENT].
struct KilledArguments {
  std::string directory;
  std::uint64_t seed = 0;
  std::int64_t number = 0;
  KillSwitch::Plan plan;
};

// What main() does: 2 for another command line, 1 with a line when `run` fails. `number` names the
// third word in the line that shows how it is used.
int run_killed(int argc, char** argv, const char* program, const char* number,
               const std::function<Status(const KilledArguments&)>& run);

}  // namespace weir::crash
