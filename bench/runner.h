#pragma once

#include "bench/harness.h"
#include "bench/report.h"

#include <cstdint>
#include <optional>
#include <string>

namespace weir::bench {

struct RunOptions {
  std::optional<std::uint64_t> records;  // items of every run; then two rounds
  std::string only_case;                 // of every job; empty: all
  bool alone = false;                    // Weir only: for a profiler
  bool instructions = true;              // with valgrind, when it is installed
  std::string folder;                    // for data; made, and removed, by the program
};

// Measures every case of `job` and reports its figures. Errors: those of the contenders.
Status measure(const Job& job, const RunOptions& options, Report& report);

// Runs one contender once under callgrind: what measure() starts itself for.
Status count_once(const Job& job, const std::string& case_name, const std::string& contender,
                  const RunOptions& options);

}  // namespace weir::bench
