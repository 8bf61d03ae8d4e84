#include "apps/cli/exit_codes.h"

#include <fmt/core.h>

#include <cstdio>

namespace weir::cli {

int exit_code(const Error& error) {
  switch (error.code()) {
    case Errc::kInvalidArgument:
    case Errc::kInvalidConfig:
    case Errc::kInvalidTopic:
      return kUsage;
    case Errc::kUnknownTopic:
    case Errc::kNotFound:
      return kNotFound;
    case Errc::kTimedOut:
      return kTimedOut;
    case Errc::kCorrupt:
      return kDamage;
    default:
      return kRuntimeFailure;
  }
}

int report(const char* program, const Error& error) {
  fmt::print(stderr, "{}: {}: {}\n", program, errc_name(error.code()), error.message());
  return exit_code(error);
}

}  // namespace weir::cli
