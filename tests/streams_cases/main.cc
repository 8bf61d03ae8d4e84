// Replays cases that Kafka Streams recorded: tests/data/streams/README.md.
#include "tests/streams_cases/case_file.h"
#include "tests/streams_cases/runner.h"

#include <weir/runtime/file_system.h>
#include <weir/runtime/logger.h>

#include <CLI/CLI.hpp>
#include <fmt/core.h>
#include <fmt/format.h>

#include <algorithm>
#include <cstdio>
#include <fnmatch.h>
#include <map>
#include <set>
#include <string>
#include <string_view>
#include <vector>

namespace weir::streams_cases {
namespace {

constexpr int kFailed = 1;
constexpr int kCannotRun = 2;
constexpr std::string_view kDifferencesFile = "differences.jsonl";

struct Options {
  std::vector<std::string> paths;
  std::string filter;
  bool verbose = false;
};

// A substring, or a pattern of the whole name if it has a character of one.
bool matches(const std::string& name, const std::string& filter) {
  if (filter.find_first_of("*?[") == std::string::npos) {
    return name.find(filter) != std::string::npos;
  }
  return fnmatch(filter.c_str(), name.c_str(), 0) == 0;
}

class Program {
 public:
  explicit Program(Options options) : options_(std::move(options)) {}

  Status run() {
    for (const std::string& path : options_.paths) {
      WEIR_TRY_ASSIGN(const FileInfo info, files_.info(path));
      if (info.kind == FileKind::kDirectory) {
        WEIR_TRY(run_folder(path));
      } else {
        WEIR_TRY_ASSIGN(const Differences differences, read_differences(files_, beside(path)));
        WEIR_TRY(run_file(path, differences));
      }
    }
    return counts_.empty() ? Error(Errc::kInvalidArgument,
                                   options_.filter.empty()
                                       ? "there is no case"
                                       : fmt::format("no case matches '{}'", options_.filter))
                           : Status();
  }

  void print_totals() {
    fmt::print("{} passed, {} failed, {} skipped", counts_[Outcome::kPassed],
               counts_[Outcome::kFailed], counts_[Outcome::kSkipped]);
    if (counts_[Outcome::kDifferent] > 0) {
      fmt::print(", {} different", counts_[Outcome::kDifferent]);
    }
    fmt::print("\n");
  }
  bool any_failed() { return counts_[Outcome::kFailed] > 0; }

 private:
  static std::string beside(const std::string& file) {
    const std::size_t slash = file.rfind('/');
    return (slash == std::string::npos ? "" : file.substr(0, slash + 1)) +
           std::string(kDifferencesFile);
  }

  Status run_folder(const std::string& folder) {
    WEIR_TRY_ASSIGN(const std::vector<DirectoryEntry> entries, files_.list(folder));
    std::vector<std::string> names;
    for (const DirectoryEntry& entry : entries) {
      if (entry.name.ends_with(".jsonl") && entry.name != kDifferencesFile) {
        names.push_back(entry.name);
      }
    }
    if (names.empty()) {
      return Error(Errc::kNotFound, fmt::format("{} has no case file (*.jsonl)", folder));
    }
    std::sort(names.begin(), names.end());
    WEIR_TRY_ASSIGN(const Differences differences,
                    read_differences(files_, join_path(folder, std::string(kDifferencesFile))));
    for (const std::string& name : names) {
      WEIR_TRY(run_file(join_path(folder, name), differences));
    }
    for (const auto& [name, difference] : differences) {
      if (!names_.contains(name)) {
        return Error(Errc::kNotFound,
                     fmt::format("{}: no file has a case '{}'", difference.place, name));
      }
    }
    return {};
  }

  Status run_file(const std::string& path, const Differences& differences) {
    WEIR_TRY_ASSIGN(CaseFile file, read_case_file(files_, path));
    for (Case& c : file.cases) {
      if (!names_.insert(c.name).second) {
        return Error(Errc::kCorrupt, fmt::format("{}: case '{}' is there twice", c.place, c.name));
      }
      if (const auto found = differences.find(c.name); found != differences.end()) {
        WEIR_TRY(apply(found->second, c));
      }
      if (matches(c.name, options_.filter)) {
        count(c.name, c.place, run_case(c));
      }
    }
    for (const BytesRow& row : file.bytes) {
      if (matches(row.what, options_.filter)) {
        count(row.what, row.place, check_bytes(row));
      }
    }
    if (options_.verbose && file.described_in_words > 0) {
      fmt::print("not replayed: {} topologies of {} described in words\n", file.described_in_words,
                 path);
    }
    return {};
  }

  void count(const std::string& name, const std::string& place, const CaseResult& result) {
    ++counts_[result.outcome];
    if (result.outcome == Outcome::kFailed) {
      fmt::print("FAILED {} ({})\n{}", name, place, result.text);
      if (!result.text.ends_with('\n')) {
        fmt::print("\n");
      }
    } else if (options_.verbose && result.outcome == Outcome::kSkipped) {
      fmt::print("skipped {}: {}\n", name, result.text);
    } else if (options_.verbose && result.outcome == Outcome::kDifferent) {
      fmt::print("different {}: {}\n", name, result.text);
    }
  }

  const Options options_;
  FileSystem& files_ = posix_file_system();
  std::map<Outcome, std::size_t> counts_;
  std::set<std::string> names_;
};

int run(int argc, char** argv) {
  Options options;
  CLI::App app("Replays recorded cases of Kafka Streams and compares everything that comes out",
               "streams_cases");
  app.add_option("FILE_OR_DIR", options.paths, "Case files, or folders of them")->required();
  app.add_option("--filter", options.filter, "Only cases whose name has this, or matches *?[]")
      ->type_name("NAME");
  app.add_flag("-v,--verbose", options.verbose, "Say why a case is skipped or different");
  app.footer(
      "Exit code: 0 none failed, 1 some failed, 2 a file cannot be read or no case was run.\n"
      "Example:\n  streams_cases tests/data/streams --filter 'agg-*' -v");
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    return app.exit(error) == 0 ? 0 : kCannotRun;
  }
  set_log_level(LogLevel::kError);  // drops are expected, and counted
  Program program(std::move(options));
  const Status done = program.run();
  if (!done.ok()) {
    std::fflush(stdout);
    fmt::print(stderr, "streams_cases: {}\n", done.error().message());
    return kCannotRun;
  }
  program.print_totals();
  return program.any_failed() ? kFailed : 0;
}

}  // namespace
}  // namespace weir::streams_cases

int main(int argc, char** argv) {
  return weir::streams_cases::run(argc, argv);
}
