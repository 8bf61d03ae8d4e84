#include "tests/crash/killing.h"

#include "tests/crash/killed_process.h"

#include <weir/runtime/file_system.h>

#include <fmt/core.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <charconv>
#include <chrono>
#include <csignal>
#include <sys/wait.h>
#include <unistd.h>
#include <utility>

namespace weir::crash {

using std::chrono::milliseconds;
using std::chrono::seconds;

std::string Words::text() {
  const std::size_t space = std::min(rest_.find(' '), rest_.size());
  std::string word(rest_.substr(0, space));
  rest_.remove_prefix(std::min(space + 1, rest_.size()));
  return word;
}

std::int64_t Words::number() {
  const std::string word = text();
  std::int64_t value = -1;
  std::from_chars(word.data(), word.data() + word.size(), value);
  return value;
}

TopicPartition Words::partition() {
  std::string topic = text();
  return {std::move(topic), PartitionId(static_cast<std::int32_t>(number()))};
}

Killing::Killing(std::string program, std::vector<Point> points, std::uint64_t seed)
    : program_(std::move(program)), points_(std::move(points)), rng_(seed) {
  std::string pattern = ::testing::TempDir() + "weir-kill-XXXXXX";
  EXPECT_NE(::mkdtemp(pattern.data()), nullptr);
  folder_ = pattern;
}

Killing::~Killing() {
  if (!::testing::Test::HasFailure()) {
    remove_tree(posix_file_system(), folder_).ignore("a folder in the temporary directory");
  }
}

void Killing::run(int kills) {
  for (int killed = 0, attempts = 0; killed < kills && !::testing::Test::HasFailure();) {
    ASSERT_LT(attempts++, 3 * kills + 20) << "points are not reached";
    killed += (killed % 2 == 0 ? kill_at_point() : kill_by_time()) ? 1 : 0;
  }
}

void Killing::run_to_end() {
  Run run;
  KilledProcess process(program_, arguments(), folder_ + "/diagnostics");
  const auto pause =
      process.read(seconds(300), [&](std::string_view line) { take_line(line, run); });
  EXPECT_EQ(pause, KilledProcess::Pause::kEnded) << "the process hangs";
  EXPECT_TRUE(run.closed.has_value()) << "see " << folder_ << "/diagnostics";
  finish(process, run);
}

void Killing::print_kills() const {
  for (const auto& [point, hits] : hits_) {
    fmt::print("kills at {:<16} {}\n", point_name(point), hits);
  }
  fmt::print("kills by time           {}\n", by_time_);
}

std::vector<std::string> Killing::arguments() {
  return {directory(), std::to_string(rng_.below(1'000'000'000)), first_number()};
}

bool Killing::kill_at_point() {
  const Point point = points_[next_point_];
  const std::uint64_t nth = rng_.below(passes(point));
  const std::uint64_t moment = rng_.below(kMoments);
  std::vector<std::string> words = arguments();
  words.insert(words.end(),
               {std::string(point_name(point)), std::to_string(nth), std::to_string(moment)});
  SCOPED_TRACE(fmt::format("point {} nth {} moment {}", point_name(point), nth, moment));
  Run run;
  KilledProcess process(program_, words, folder_ + "/diagnostics");
  const auto pause =
      process.read(seconds(60), [&](std::string_view line) { take_line(line, run); });
  EXPECT_EQ(pause, KilledProcess::Pause::kEnded) << "the process hangs";
  finish(process, run);
  if (run.closed.has_value()) {
    changes_of_close_ = std::max<std::int64_t>(*run.closed, 1);
  }
  if (run.killed_at != point) {
    return false;
  }
  ++hits_[point];
  next_point_ = (next_point_ + 1) % points_.size();
  return true;
}

// At any time, also while it starts and recovers.
bool Killing::kill_by_time() {
  SCOPED_TRACE("by time");
  Run run;
  KilledProcess process(program_, arguments(), folder_ + "/diagnostics");
  const auto line = [&](std::string_view text) { take_line(text, run); };
  process.read(milliseconds(rng_.below(400)), line);
  process.kill();
  EXPECT_EQ(process.read(seconds(60), line), KilledProcess::Pause::kEnded);
  finish(process, run);
  ++by_time_;
  return true;
}

void Killing::take_line(std::string_view line, Run& run) {
  Words words(line);
  const std::string what = words.text();
  run.started = true;
  if (what == "kill") {
    run.killed_at = find_point(words.text());
  } else if (what == "closed") {
    run.closed = words.number();
  } else {
    take(what, words);
  }
}

void Killing::finish(KilledProcess& process, const Run& run) {
  const int status = process.wait();
  if (run.closed.has_value()) {
    EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 0);
  } else {
    EXPECT_TRUE(WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL)
        << "ended by itself with status " << status << ", see " << folder_ << "/diagnostics";
  }
  check(run);
}

}  // namespace weir::crash
