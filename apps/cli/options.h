#pragma once

#include "apps/cli/output.h"

#include <weir/runtime/result.h>

#include <map>
#include <string>
#include <vector>

namespace CLI {
class App;
}

namespace weir::cli {

// What every program and command takes, anywhere on the line.
struct CommonOptions {
  std::string data;  // --data, else $WEIR_DATA, else ./weir-data
  Format format = Format::kText;
  bool verbose = false;
  bool quiet = false;
};

// Adds --data, -o, -v and -q.
void add_common_options(CLI::App& app, CommonOptions& options);
// Parses; true to go on, else *exit_code is what the program returns (help 0, mistakes 2).
bool parse(CLI::App& app, int argc, char** argv, CommonOptions& options, int* exit_code);

// "k=v" pairs as a map. Errors: kInvalidArgument names the one without '='.
Result<std::map<std::string, std::string>> parse_pairs(const std::vector<std::string>& pairs);

}  // namespace weir::cli
