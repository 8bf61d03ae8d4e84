#include "apps/cli/options.h"

#include "apps/cli/exit_codes.h"

#include <weir/runtime/logger.h>
#include <weir/runtime/settings.h>

#include <CLI/CLI.hpp>
#include <fmt/core.h>

#include <algorithm>
#include <cstdlib>
#include <string>
#include <vector>

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
      ->transform(CLI::CheckedTransformer(std::map<std::string, Format>{{"text", Format::kText},
                                                                        {"json", Format::kJson}})
                      .description(""));
  app.add_flag("-v,--verbose", options.verbose, "Say more on stderr");
  app.add_flag("-q,--quiet", options.quiet, "Only errors on stderr");
  app.fallthrough();
}

namespace {

std::string full_name(const CLI::App& app) {
  const CLI::App* parent = app.get_parent();
  return parent == nullptr ? app.get_name() : full_name(*parent) + " " + app.get_name();
}

std::vector<CLI::App*> subcommands_of(CLI::App& app) {
  return app.get_subcommands([](CLI::App*) { return true; });
}

// "unknown command 'topik', did you mean topic?" where the line names a command that does not
// exist: CLI11 only says that one is required. Empty where it names none.
std::string unknown_command_message(CLI::App& app, int argc, char** argv) {
  CLI::App* at = &app;
  for (int i = 1; i < argc; ++i) {
    const std::string_view argument = argv[i];
    if (argument == "--data" || argument == "-o" || argument == "--output-format") {
      ++i;  // and its value
      continue;
    }
    if (argument.starts_with('-')) {
      continue;
    }
    const std::vector<CLI::App*> commands = subcommands_of(*at);
    const auto named = std::ranges::find(commands, argument, &CLI::App::get_name);
    if (named != commands.end()) {
      at = *named;
      continue;
    }
    if (commands.empty()) {
      return {};
    }
    std::vector<std::string> names;
    for (const CLI::App* command : commands) {
      names.push_back(command->get_name());
    }
    const std::vector<std::string_view> candidates(names.begin(), names.end());
    const std::string nearest = nearest_name(argument, candidates);
    return fmt::format("{}: unknown command '{}'{}; see {} --help\n", app.get_name(), argument,
                       nearest.empty() ? "" : fmt::format(", did you mean {}?", nearest),
                       full_name(*at));
  }
  return {};
}

// "weir: --topic is required; see weir topic create --help".
std::string failure_message(const CLI::App* app, const CLI::Error& error) {
  const CLI::App* at = app;
  while (!at->get_subcommands().empty()) {
    at = at->get_subcommands().front();
  }
  return fmt::format("{}: {}; see {} --help\n", app->get_name(), error.what(), full_name(*at));
}

}  // namespace

bool parse(CLI::App& app, int argc, char** argv, CommonOptions& options, int* exit_code) {
  app.failure_message(failure_message);
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    const std::string unknown =
        error.get_exit_code() == 0 ? std::string() : unknown_command_message(app, argc, argv);
    if (!unknown.empty()) {
      fmt::print(stderr, "{}", unknown);
      *exit_code = kUsage;
      return false;
    }
    *exit_code = app.exit(error) == 0 ? kOk : kUsage;
    return false;
  }
  set_log_level(options.verbose ? LogLevel::kDebug
                : options.quiet ? LogLevel::kError
                                : LogLevel::kInfo);
  return true;
}

Result<std::map<std::string, std::string>> parse_pairs(const std::vector<std::string>& pairs) {
  std::map<std::string, std::string> result;
  for (const std::string& pair : pairs) {
    const std::size_t equals = pair.find('=');
    if (equals == std::string::npos || equals == 0) {
      return Error(Errc::kInvalidArgument,
                   fmt::format("'{}' is no setting; write it as name=value", pair));
    }
    result[pair.substr(0, equals)] = pair.substr(equals + 1);
  }
  return result;
}

}  // namespace weir::cli
