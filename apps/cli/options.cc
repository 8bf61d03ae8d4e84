#include "apps/cli/options.h"

#include "apps/cli/exit_codes.h"

#include <weir/runtime/logger.h>

#include <CLI/CLI.hpp>

#include <cstdlib>

namespace weir::cli {

void add_common_options(CLI::App& app, CommonOptions& options) {
  const char* from_environment = std::getenv("WEIR_DATA");
  options.data =
      from_environment != nullptr && *from_environment != '\0' ? from_environment : "./weir-data";
  app.add_option("--data", options.data, "Data directory (default $WEIR_DATA, else ./weir-data)")
      ->type_name("DIR");
  app.add_option("-o,--output-format", options.format,
                 "Output: text, or json with one object a line")
      ->type_name("text|json")
      ->transform(CLI::CheckedTransformer(
          std::map<std::string, Format>{{"text", Format::kText}, {"json", Format::kJson}}));
  app.add_flag("-v,--verbose", options.verbose, "Say more on stderr");
  app.add_flag("-q,--quiet", options.quiet, "Only errors on stderr");
  app.fallthrough();
}

bool parse(CLI::App& app, int argc, char** argv, CommonOptions& options, int* exit_code) {
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    *exit_code = app.exit(error) == 0 ? kOk : kUsage;
    return false;
  }
  set_log_level(options.verbose ? LogLevel::kDebug
                : options.quiet ? LogLevel::kError
                                : LogLevel::kInfo);
  return true;
}

}  // namespace weir::cli
