#pragma once

#include <weir/runtime/result.h>

namespace weir::cli {

// Exit codes of every program here (docs/cli.md).
enum ExitCode : int {
  kOk = 0,
  kRuntimeFailure = 1,
  kUsage = 2,
  kNotFound = 3,       // topic, application, store or key
  kTimedOut = 4,       // also: cannot connect
  kDrainDeadline = 5,  // the deadline cut work that was not committed
  kDamage = 6,         // damaged data was found
  kInterrupted = 130,  // a second signal
};

int exit_code(const Error& error);

// Prints "<program>: <message>" to stderr; returns the exit code.
int report(const char* program, const Error& error);

}  // namespace weir::cli
