#include "bench/runner.h"

#include <weir/runtime/file_system.h>

#include <fmt/core.h>

#include <algorithm>
#include <array>
#include <cstdio>
#include <filesystem>
#include <map>
#include <memory>
#include <utility>
#include <vector>

namespace weir::bench {
namespace {

struct Sample {
  double cpu_ns = 0;  // an item
  double rate = 0;    // items a second of wall time
  std::uint64_t peak_rss_bytes = 0;
};

double median(std::vector<double> values) {
  std::sort(values.begin(), values.end());
  const std::size_t middle = values.size() / 2;
  return values.size() % 2 == 1 ? values[middle] : (values[middle - 1] + values[middle]) / 2;
}

std::uint64_t items_of(const Case& which, const Contender& contender, const RunOptions& options) {
  const double items = static_cast<double>(options.records.value_or(which.items)) * contender.share;
  return std::max<std::uint64_t>(static_cast<std::uint64_t>(items), 10);
}

Status run_in_folder(const Contender& contender, std::uint64_t items, const RunOptions& options,
                     bool counting, bool many_files, const std::function<void(const Run&)>& take) {
  FileSystem& files = posix_file_system();
  static int number = 0;
  const std::string folder = join_path(options.folder, fmt::format("run-{}", number++));
  WEIR_TRY(files.create_directories(folder));
  Run run(items, folder, counting);
  Status done = contender.run(run);
  Status removed = many_files ? Status() : remove_tree(files, folder);
  WEIR_TRY(std::move(done));
  take(run);
  return removed;
}

bool has_valgrind() {
  // NOLINTNEXTLINE(concurrency-mt-unsafe): nothing else runs now
  static const bool found = std::system("valgrind --version >/dev/null 2>&1") == 0;
  return found;
}

// "==123== Collected : 4567" is the last thing that callgrind says.
std::optional<std::uint64_t> collected_in(std::FILE* output, std::string* last_words) {
  std::optional<std::uint64_t> collected;
  std::array<char, 4096> line{};
  while (std::fgets(line.data(), static_cast<int>(line.size()), output) != nullptr) {
    const std::string_view text(line.data());
    if (const std::size_t at = text.find("Collected :"); at != std::string_view::npos) {
      collected = std::strtoull(line.data() + at + 11, nullptr, 10);
    }
    *last_words = text;
  }
  return collected;
}

Result<std::uint64_t> count_in_child(const std::string& job, const Case& which,
                                     const Contender& contender, std::uint64_t items,
                                     const RunOptions& options) {
  const std::string self = std::filesystem::read_symlink("/proc/self/exe").string();
  const std::string command = fmt::format(
      "valgrind --tool=callgrind --instr-atstart=no --callgrind-out-file=/dev/null '{}' {} "
      "--count {}/{} --records {} --folder '{}' 2>&1 >/dev/null",
      self, job, which.name, contender.name, items, options.folder);
  std::FILE* child = popen(command.c_str(), "r");  // NOLINT: our own words only
  if (child == nullptr) {
    return Error(Errc::kIo, "cannot start valgrind");
  }
  std::string last_words;
  const std::optional<std::uint64_t> collected = collected_in(child, &last_words);
  if (pclose(child) != 0 || !collected) {
    return Error(Errc::kInternal,
                 fmt::format("callgrind run of {} {} failed: {}", job, which.name, last_words));
  }
  return *collected;
}

// The difference of two sizes: what a run costs once, whatever its size, falls out.
Result<double> instructions_an_item(const std::string& job, const Case& which,
                                    const Contender& contender, const RunOptions& options) {
  RunOptions sized = options;
  const double items = static_cast<double>(options.records.value_or(which.counted));
  const auto large =
      std::max<std::uint64_t>(static_cast<std::uint64_t>(items * contender.share), 20);
  const std::uint64_t small = large / 2;
  WEIR_TRY_ASSIGN(const std::uint64_t more, count_in_child(job, which, contender, large, sized));
  WEIR_TRY_ASSIGN(const std::uint64_t less, count_in_child(job, which, contender, small, sized));
  return (static_cast<double>(more) - static_cast<double>(less)) /
         static_cast<double>(large - small);
}

class CaseReport {
 public:
  CaseReport(const std::string& job, const Case& which, Report& report)
      : job_(job), case_(which), report_(report), samples_(which.contenders.size()) {}

  void add(std::size_t contender, const Run& run) {
    const auto items = static_cast<double>(run.items());
    samples_[contender].push_back(
        {run.cpu_ns() / items, items * 1e9 / std::max(run.wall_ns(), 1.0), run.peak_rss_bytes()});
    if (contender == 0) {
      notes_ = run.notes();
    }
  }

  void write_costs() const {
    for (std::size_t i = 0; i < samples_.size(); ++i) {
      write_contender(i);
    }
    for (const Run::Note& note : notes_) {
      report_.line(job_, metric(0, note.name), note.value, note.unit);
    }
    for (const Elsewhere& other : case_.elsewhere) {
      report_.line(job_, fmt::format("{}.{}.cpu", case_.name, other.name), other.cpu_ns,
                   "ns/" + case_.unit, {}, other.source);
    }
  }

  void write_instructions(std::size_t contender, double instructions) const {
    report_.line(job_, metric(contender, "instructions"), instructions,
                 "instructions/" + case_.unit);
  }

 private:
  std::string metric(std::size_t contender, std::string_view figure) const {
    return fmt::format("{}.{}.{}", case_.name, case_.contenders[contender].name, figure);
  }

  std::vector<double> cpu(std::size_t contender) const {
    std::vector<double> values;
    for (const Sample& sample : samples_[contender]) {
      values.push_back(sample.cpu_ns);
    }
    return values;
  }

  void write_contender(std::size_t i) const {
    const std::string unit = "ns/" + case_.unit;
    const std::vector<double> costs = cpu(i);
    const double middle = median(costs);
    if (i == 0 && case_.budget_ns) {
      report_.line(job_, metric(i, "cpu"), middle, unit, middle / *case_.budget_ns,
                   fmt::format("budget {}", *case_.budget_ns));
    } else {
      report_.line(job_, metric(i, "cpu"), middle, unit);
    }
    for (std::size_t other = 1; i == 0 && other < samples_.size(); ++other) {
      const std::vector<double> theirs = cpu(other);
      std::vector<double> ratios;
      for (std::size_t round = 0; round < costs.size(); ++round) {
        ratios.push_back(costs[round] / theirs[round]);
      }
      report_.line(job_, metric(i, "cpu"), middle, unit, median(ratios),
                   case_.contenders[other].name);
    }
    report_.line(job_, metric(i, "cpu_min"), *std::min_element(costs.begin(), costs.end()), unit);
    report_.line(job_, metric(i, "cpu_max"), *std::max_element(costs.begin(), costs.end()), unit);
    std::vector<double> rates;
    std::uint64_t peak = 0;
    for (const Sample& sample : samples_[i]) {
      rates.push_back(sample.rate);
      peak = std::max(peak, sample.peak_rss_bytes);
    }
    report_.line(job_, metric(i, "rate"), median(rates), case_.unit + "s/s");
    if (case_.show_rss && peak != 0) {
      report_.line(job_, metric(i, "peak_rss"), static_cast<double>(peak >> 20U), "MiB");
    }
  }

  const std::string& job_;
  const Case& case_;
  Report& report_;
  std::vector<std::vector<Sample>> samples_;
  std::vector<Run::Note> notes_;
};

Status measure_case(const std::string& job, const Case& which, const RunOptions& options,
                    Report& report) {
  CaseReport figures(job, which, report);
  const int rounds = options.records ? std::min(2, which.rounds) : which.rounds;
  for (int round = 0; round < rounds; ++round) {
    for (std::size_t i = 0; i < which.contenders.size(); ++i) {
      const Contender& contender = which.contenders[i];
      Status done = run_in_folder(contender, items_of(which, contender, options), options, false,
                                  which.many_files, [&](const Run& run) { figures.add(i, run); });
      if (!done.ok()) {
        return std::move(done).error().with_context(
            fmt::format("{} {} {}", job, which.name, contender.name));
      }
    }
  }
  figures.write_costs();
  if (options.instructions && which.counted != 0) {
    WEIR_TRY_ASSIGN(const double instructions,
                    instructions_an_item(job, which, which.contenders.front(), options));
    figures.write_instructions(0, instructions);
  }
  return {};
}

}  // namespace

Status measure(const Job& job, const RunOptions& options, Report& report) {
  RunOptions with = options;
  if (with.instructions && !has_valgrind()) {
    fmt::print(stderr, "weir_bench: no instruction counts: valgrind is not installed\n");
    with.instructions = false;
  }
  for (Case& which : job.cases()) {
    if (!options.only_case.empty() && options.only_case != which.name) {
      continue;
    }
    if (options.alone) {
      which.contenders.erase(which.contenders.begin() + 1, which.contenders.end());
    }
    WEIR_TRY(measure_case(job.name, which, with, report));
  }
  return {};
}

Status count_once(const Job& job, const std::string& case_name, const std::string& contender,
                  const RunOptions& options) {
  for (const Case& which : job.cases()) {
    for (const Contender& one : which.contenders) {
      if (which.name == case_name && one.name == contender) {
        return run_in_folder(one, *options.records, options, true, false, [](const Run&) {});
      }
    }
  }
  return Error(Errc::kInvalidArgument,
               fmt::format("job {} has no case {}/{}", job.name, case_name, contender));
}

}  // namespace weir::bench
