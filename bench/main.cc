// Measures Weir: a figure a line. What the jobs are, and how they are measured: README.md.
#include "bench/jobs.h"
#include "bench/runner.h"

#include <weir/runtime/file_system.h>
#include <weir/runtime/logger.h>
#include <weir/runtime/settings.h>

#include <CLI/CLI.hpp>
#include <fmt/core.h>

#include <algorithm>
#include <array>
#include <cstdlib>
#include <filesystem>
#include <string>
#include <unistd.h>
#include <vector>

namespace weir::bench {
namespace {

constexpr int kFailed = 1;
constexpr int kUsage = 2;

const std::array kJobs{
    Job{"append", "records into a partition", append_cases},
    Job{"replay", "records from files: read, CRC, decode", replay_cases},
    Job{"tail", "records that were just appended", tail_cases},
    Job{"compression", "records written and read with every codec", compression_cases},
    Job{"compaction", "one pass over a partition", compaction_cases},
    Job{"many-topics", "small topics: made, reopened, recovered", many_topics_cases},
    Job{"many-consumers", "200 groups that read one partition", many_consumers_cases},
    Job{"groups", "a group of 100 members over 1,000 partitions rebalances", group_cases},
    Job{"transactions", "commits over 1, 10 and 100 partitions, 1 and 16 at once",
        transaction_cases},
    Job{"durable", "records of 1 KiB acknowledged on disk, one by one", durable_cases},
    Job{"restart", "1,000 partitions after a kill", restart_cases},
    Job{"partitions", "10,000 partitions in one process", partitions_cases},
    Job{"store-hot", "get and update of resident keys", store_hot_cases},
    Job{"store-cold", "get behind a restart, from RocksDB", store_cold_cases},
    Job{"store-big", "updates of ten times more keys than the memory holds", store_big_cases},
    Job{"scan", "a range of keys in order", scan_cases},
    Job{"restore", "a store from its changelog", restore_cases},
    Job{"count", "the count operator alone", count_cases},
    Job{"word-count", "lines to counts through every topic, as shipped", word_count_cases},
    Job{"averages", "quotes to average prices, as shipped", averages_cases},
    Job{"sessions", "lanes in memory: order per session with retries", sessions_cases},
};

struct Options {
  std::vector<std::string> jobs;
  std::string format = "text";
  RunOptions run;
  bool no_instructions = false;
  std::string count;  // CASE/CONTENDER
};

Result<std::vector<const Job*>> chosen_jobs(const std::vector<std::string>& names) {
  std::vector<std::string_view> known;
  for (const Job& job : kJobs) {
    known.push_back(job.name);
  }
  std::vector<const Job*> jobs;
  for (const std::string& name : names) {
    const auto found =
        std::find_if(kJobs.begin(), kJobs.end(), [&](const Job& job) { return job.name == name; });
    if (found == kJobs.end()) {
      const std::string near = nearest_name(name, known);
      return Error(Errc::kInvalidArgument,
                   fmt::format("there is no job '{}'{}; --help lists them", name,
                               near.empty() ? "" : fmt::format(" (did you mean {}?)", near)));
    }
    jobs.push_back(&*found);
  }
  if (jobs.empty()) {
    for (const Job& job : kJobs) {
      jobs.push_back(&job);
    }
  }
  return jobs;
}

Status execute(const std::vector<const Job*>& jobs, const Options& options) {
  if (!options.count.empty()) {
    const std::size_t slash = options.count.find('/');
    return count_once(*jobs.front(), options.count.substr(0, slash),
                      options.count.substr(std::min(slash, options.count.size() - 1) + 1),
                      options.run);
  }
  Report report(options.format == "json");
  for (const Job* job : jobs) {
    WEIR_TRY(measure(*job, options.run, report));
  }
  return {};
}

int run(int argc, char** argv) {
  Options options;
  std::string about = "Measures Weir. Jobs, all when none is named:\n";
  for (const Job& job : kJobs) {
    about += fmt::format("  {:<15}{}\n", job.name, job.about);
  }
  CLI::App app(about, "weir_bench");
  app.add_option("JOB", options.jobs, "Jobs to run");
  app.add_option("-o,--output", options.format, "text or json")
      ->check(CLI::IsMember({"text", "json"}));
  app.add_option("--records", options.run.records,
                 "Records of every run, and two rounds only: a quick look")
      ->check(CLI::Range(std::uint64_t{100}, std::uint64_t{1} << 32U));
  app.add_option("--case", options.run.only_case, "Only this case (20k.memory) of the jobs");
  app.add_flag("--alone", options.run.alone, "Weir only, nothing to compare with: for a profiler");
  app.add_flag("--no-instructions", options.no_instructions, "Do not count instructions");
  app.add_option("--folder", options.run.folder,
                 "Where a folder for the data of the runs is made (default: $TMPDIR)");
  app.add_option("--count", options.count, "One run for callgrind")->group("");
  app.footer("Examples:\n  weir_bench append replay\n  weir_bench word-count -o json");
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    return app.exit(error) == 0 ? 0 : kUsage;
  }
  const Result<std::vector<const Job*>> jobs = chosen_jobs(options.jobs);
  if (!jobs.ok()) {
    fmt::print(stderr, "weir_bench: {}\n", jobs.error().message());
    return kUsage;
  }
  set_log_level(LogLevel::kWarn);
  options.run.instructions = !options.no_instructions;
  const std::filesystem::path place = options.run.folder.empty()
                                          ? std::filesystem::temp_directory_path()
                                          : std::filesystem::path(options.run.folder);
  options.run.folder = (place / fmt::format("weir-bench-{}", static_cast<long>(getpid()))).string();
  const Status done = execute(*jobs, options);
  remove_tree(posix_file_system(), options.run.folder).ignore("what is left is only data");
  if (!done.ok()) {
    fmt::print(stderr, "weir_bench: {}\n", done.error().message());
    return kFailed;
  }
  return 0;
}

}  // namespace
}  // namespace weir::bench

int main(int argc, char** argv) {
  return weir::bench::run(argc, argv);
}
