#include "tests/crash/killed_process.h"
#include "tests/crash/pipeline/kill_switch.h"
#include "tests/crash/support/ledger.h"
#include "tests/runtime/observe/capture.h"
#include "tests/support/size_of_run.h"

#include <weir/log/embedded_log.h>
#include <weir/runtime/rng.h>

#include <fmt/core.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <csignal>
#include <memory>
#include <string>
#include <sys/wait.h>
#include <unistd.h>

// kill -9 of a pipeline on the real disk, at named points and at any time, over and over on the
// same directory. After each the log and the store are compared with what was promised.
namespace weir::crash {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

constexpr const char* kProgram = "crash_pipeline";

std::int64_t to_number(std::string_view text) {
  std::int64_t number = -1;
  std::from_chars(text.data(), text.data() + text.size(), number);
  return number;
}

class Folder {
 public:
  Folder() {
    std::string pattern = ::testing::TempDir() + "weir-kill-XXXXXX";
    EXPECT_NE(::mkdtemp(pattern.data()), nullptr);
    path_ = pattern;
  }
  // Kept for a look when the test has failed.
  ~Folder() {
    if (!::testing::Test::HasFailure()) {
      remove_tree(posix_file_system(), path_).ignore("a folder in the temporary directory");
    }
  }
  Folder(const Folder&) = delete;
  Folder& operator=(const Folder&) = delete;
  std::string operator/(const char* name) const { return join_path(path_, name); }

 private:
  std::string path_;
};

class Killing {
 public:
  explicit Killing(std::uint64_t seed)
      : rng_(seed),
        ledger_({.state_dir = join_path(folder_ / "data", "state")}),
        diagnostics_(folder_ / "diagnostics") {}

  void run(int kills);
  void drain();
  void print() const;
  bool has_hit_every_point() const {
    return std::find(hits_.begin(), hits_.end(), 0) == hits_.end();
  }

 private:
  // What one process reported.
  struct Run {
    int acknowledgements = 0;
    int commits = 0;
    std::optional<Point> killed_at;
    std::optional<std::uint64_t> closed;
  };

  bool kill_at_point();
  bool kill_by_time();
  void kill_early();
  void read_beside();
  std::vector<std::string> arguments();
  void take(std::string_view line, Run& run);
  // The process has ended, by SIGKILL or after a clean close.
  void expect_end(KilledProcess& process, const Run& run);
  void check(const Run& run);
  std::string last_diagnostics() const;
  std::uint64_t draw_nth(Point point);

  Rng rng_;
  Folder folder_;
  Ledger ledger_;
  const std::string diagnostics_;
  std::array<int, kPipelinePoints> hits_{};
  std::size_t next_point_ = 0;
  int by_time_ = 0;
  int early_ = 0;
  int beside_ = 0;
  int checks_ = 0;
  int commits_ = 0;
  std::int64_t runs_ = 0;
  std::uint64_t changes_of_close_ = 60;
};

void Killing::take(std::string_view line, Run& run) {
  const std::size_t space = line.find(' ');
  const std::string_view what = line.substr(0, space);
  const std::string_view rest = space == std::string_view::npos ? "" : line.substr(space + 1);
  if (what == "ack") {
    ++run.acknowledgements;
    ledger_.acknowledged(to_number(rest));
  } else if (what == "commit") {
    ++run.commits;
    ++commits_;
    const std::size_t first = rest.find(' ');
    const std::size_t last = rest.rfind(' ');
    const auto partition =
        static_cast<std::int32_t>(to_number(rest.substr(first + 1, last - first - 1)));
    ledger_.committed({std::string(rest.substr(0, first)), PartitionId(partition)},
                      Offset(to_number(rest.substr(last + 1))));
  } else if (what == "kill") {
    run.killed_at = find_point(rest);
  } else if (what == "closed") {
    run.closed = static_cast<std::uint64_t>(to_number(rest));
  }
}

std::vector<std::string> Killing::arguments() {
  return {"run", folder_ / "data", std::to_string(++runs_ * 1'000'000)};
}

// How often the point is passed before it kills; as many as come in about half a second.
std::uint64_t Killing::draw_nth(Point point) {
  switch (point) {
    case Point::kAppend:
    case Point::kSync:
      return rng_.below(60);
    case Point::kSstBuild:
      return rng_.below(30);
    case Point::kRoll:
    case Point::kCheckpointFile:
    case Point::kOldRemoved:
      return rng_.below(3);
    case Point::kClose:
      return rng_.below(changes_of_close_);
    default:
      return rng_.below(10);
  }
}

bool Killing::kill_at_point() {
  const auto point = static_cast<Point>(next_point_);
  const std::uint64_t nth = draw_nth(point);
  const auto moment = rng_.below(kMoments);
  std::vector<std::string> words = arguments();
  words.insert(words.end(),
               {std::string(point_name(point)), std::to_string(nth), std::to_string(moment)});
  SCOPED_TRACE(fmt::format("point {} nth {} moment {}", point_name(point), nth, moment));
  Run run;
  KilledProcess process(kProgram, words, diagnostics_);
  const auto pause = process.read(seconds(60), [&](std::string_view line) { take(line, run); });
  EXPECT_EQ(pause, KilledProcess::Pause::kEnded) << "the process hangs";
  expect_end(process, run);
  check(run);
  if (run.closed.has_value()) {
    changes_of_close_ = std::max<std::uint64_t>(*run.closed, 1);
  }
  if (run.killed_at != point || run.acknowledgements == 0 || run.commits == 0) {
    return false;
  }
  ++hits_[next_point_];
  next_point_ = (next_point_ + 1) % kPipelinePoints;
  return true;
}

bool Killing::kill_by_time() {
  SCOPED_TRACE("by time");
  Run run;
  KilledProcess process(kProgram, arguments(), diagnostics_);
  const auto line = [&](std::string_view text) { take(text, run); };
  const auto pause =
      process.read(seconds(60), line, [&] { return run.acknowledgements > 0 && run.commits > 0; });
  EXPECT_EQ(pause, KilledProcess::Pause::kStopped) << "the process commits nothing";
  if (rng_.chance(1, 3)) {
    read_beside();
  }
  process.read(milliseconds(rng_.below(150)), line);
  process.kill();
  EXPECT_EQ(process.read(seconds(60), line), KilledProcess::Pause::kEnded);
  expect_end(process, run);
  check(run);
  ++by_time_;
  return true;
}

// The store can be opened from outside while checkpoints come and go under it.
void Killing::read_beside() {
  log::EmbeddedLogOptions options;
  options.read_only = true;
  auto log = log::EmbeddedLog::open(folder_ / "data", options);
  ASSERT_TRUE(log.ok()) << log.error().to_string();
  ledger_.check_beside(**log, posix_file_system());
  ++beside_;
}

// While it starts and recovers; counts as no kill, but its traces stay for the next start.
void Killing::kill_early() {
  SCOPED_TRACE("early");
  Run run;
  KilledProcess process(kProgram, arguments(), diagnostics_);
  const auto line = [&](std::string_view text) { take(text, run); };
  process.read(milliseconds(rng_.below(250)), line);
  process.kill();
  EXPECT_EQ(process.read(seconds(60), line), KilledProcess::Pause::kEnded);
  expect_end(process, run);
  check(run);  // the first one too: what it did before its first commit is done again
  ++early_;
}

void Killing::expect_end(KilledProcess& process, const Run& run) {
  const int status = process.wait();
  if (run.closed.has_value()) {
    EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 0);
  } else {
    EXPECT_TRUE(WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL)
        << "ended by itself with status " << status << ":\n"
        << last_diagnostics();
  }
}

// What the processes wrote to stderr, its end.
std::string Killing::last_diagnostics() const {
  constexpr std::size_t kBytes = 4000;
  constexpr std::size_t kFileMax = 1U << 30U;
  const Result<std::string> read = read_file(posix_file_system(), diagnostics_, kFileMax);
  const std::string text = read.ok() ? *read : read.error().to_string();
  return text.substr(text.size() - std::min(text.size(), kBytes)) + "in " + diagnostics_;
}

void Killing::check(const Run& run) {
  log::EmbeddedLogOptions options;
  options.background = false;
  options.offsets_partitions = 2;
  std::unique_ptr<log::EmbeddedLog> log;
  {
    testing::LogCapture capture;
    auto opened = log::EmbeddedLog::open(folder_ / "data", options);
    ASSERT_TRUE(opened.ok()) << opened.error().to_string();
    log = std::move(*opened);
    const auto lines = capture.lines();
    const bool reported = std::any_of(lines.begin(), lines.end(), [](const auto& line) {
      return line.second.find("recovered after an unclean end") != std::string::npos;
    });
    if (run.commits > 0) {  // it was open for long enough to leave something
      EXPECT_EQ(reported, !run.closed.has_value());
    }
  }
  constexpr int kWholeEvery = 25;
  ledger_.check_after_crash(*log, posix_file_system(), checks_++ % kWholeEvery == 0);
  // No close(): the next start recovers once more.
}

void Killing::run(int kills) {
  for (int killed = 0, attempts = 0; killed < kills && !::testing::Test::HasFailure();) {
    ASSERT_LT(attempts++, 3 * kills + 20) << "points are not reached";
    if (rng_.chance(1, 6)) {
      kill_early();
    }
    killed += (killed % 2 == 0 ? kill_at_point() : kill_by_time()) ? 1 : 0;
  }
}

void Killing::drain() {
  Run run;
  KilledProcess process(kProgram, {"drain", folder_ / "data"}, diagnostics_);
  const auto pause = process.read(seconds(120), [&](std::string_view line) { take(line, run); });
  EXPECT_EQ(pause, KilledProcess::Pause::kEnded) << "the drain hangs";
  ASSERT_TRUE(run.closed.has_value()) << last_diagnostics();
  expect_end(process, run);
  testing::LogCapture capture;
  log::EmbeddedLogOptions options;
  options.background = false;
  auto log = log::EmbeddedLog::open(folder_ / "data", options);
  ASSERT_TRUE(log.ok()) << log.error().to_string();
  for (const auto& [level, line] : capture.lines()) {
    EXPECT_EQ(line.find("recovered after an unclean end"), std::string::npos) << line;
  }
  ledger_.check_drained(**log, posix_file_system());
}

void Killing::print() const {
  int at_points = 0;
  for (std::size_t i = 0; i < kPipelinePoints; ++i) {
    fmt::print("kills at {:<18} {}\n", point_name(static_cast<Point>(i)), hits_[i]);
    at_points += hits_[i];
  }
  fmt::print("kills by time             {}\n", by_time_);
  fmt::print(
      "kills={} during_start={} read_beside={} acknowledged={} lines={} commits={} repeated={} "
      "repeated_max={}\n",
      at_points + by_time_, early_, beside_, ledger_.acknowledged_lines(), ledger_.lines(),
      commits_, ledger_.repeated(), ledger_.allowed());
}

TEST(CrashKill, LosesNothingAcknowledgedAndRepeatsOnlyWhatIsBehindTheLastCommit) {
  const std::uint64_t seed = weir::testing::seed_of_run();
  SCOPED_TRACE(fmt::format("WEIR_TEST_SEED={}", seed));
  fmt::print("seed={}\n", seed);
  Killing killing(seed);
  // Each point and as many by time.
  constexpr int kEachOnce = 2 * static_cast<int>(kPipelinePoints);
  killing.run(weir::testing::is_full_run() ? 10 * kEachOnce : kEachOnce);
  killing.drain();
  killing.print();
  EXPECT_TRUE(killing.has_hit_every_point());
}

}  // namespace
}  // namespace weir::crash
