#include "tests/crash/killed_process.h"
#include "tests/crash/pipeline/kill_switch.h"
#include "tests/crash/support/log_ledger.h"
#include "tests/runtime/observe/capture.h"
#include "tests/support/size_of_run.h"

#include <weir/runtime/rng.h>

#include <fmt/core.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <csignal>
#include <map>
#include <memory>
#include <string>
#include <sys/wait.h>
#include <unistd.h>
#include <vector>

// kill -9 of a process that uses the log alone, on the real disk, at named points and at any time,
// over and over on the same directory. After each the directory is compared with what was promised.
namespace weir::crash {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

constexpr const char* kProgram = "crash_log";
constexpr std::array kLogPoints = {Point::kAppend, Point::kRoll,           Point::kSync,
                                   Point::kFlush,  Point::kCheckpointFile, Point::kClose};

// The words of a report.
class Words {
 public:
  explicit Words(std::string_view line) : rest_(line) {}
  std::string text() {
    const std::size_t space = std::min(rest_.find(' '), rest_.size());
    std::string word(rest_.substr(0, space));
    rest_.remove_prefix(std::min(space + 1, rest_.size()));
    return word;
  }
  std::int64_t number() {
    const std::string word = text();
    std::int64_t value = -1;
    std::from_chars(word.data(), word.data() + word.size(), value);
    return value;
  }
  TopicPartition partition() {
    std::string topic = text();
    return {std::move(topic), PartitionId(static_cast<std::int32_t>(number()))};
  }

 private:
  std::string_view rest_;
};

class LogKilling {
 public:
  explicit LogKilling(std::uint64_t seed) : rng_(seed) {
    std::string pattern = ::testing::TempDir() + "weir-log-kill-XXXXXX";
    EXPECT_NE(::mkdtemp(pattern.data()), nullptr);
    folder_ = pattern;
  }
  // Kept for a look when the test has failed.
  ~LogKilling() {
    if (!::testing::Test::HasFailure()) {
      remove_tree(posix_file_system(), folder_).ignore("a folder in the temporary directory");
    }
  }
  LogKilling(const LogKilling&) = delete;
  LogKilling& operator=(const LogKilling&) = delete;

  void run(int kills) {
    for (int killed = 0, attempts = 0; killed < kills && !::testing::Test::HasFailure();) {
      ASSERT_LT(attempts++, 3 * kills + 20) << "points are not reached";
      killed += (killed % 2 == 0 ? kill_at_point() : kill_by_time()) ? 1 : 0;
    }
  }
  bool has_hit_every_point() const { return hits_.size() == kLogPoints.size(); }
  void print() const {
    for (const auto& [point, hits] : hits_) {
      fmt::print("kills at {:<16} {}\n", point_name(point), hits);
    }
    fmt::print("kills by time           {}\nacknowledged={} seen={} records_checked={}\n", by_time_,
               acknowledged_, seen_, ledger_.records_checked());
  }

 private:
  // What one process reported.
  struct Run {
    bool started = false;
    std::optional<Point> killed_at;
    std::optional<std::int64_t> closed;
  };

  std::vector<std::string> arguments() {
    return {folder_ + "/data", std::to_string(rng_.below(1'000'000'000)),
            std::to_string(++runs_ * 1'000'000)};
  }
  bool kill_at_point();
  bool kill_by_time();
  void take(std::string_view line, Run& run);
  void take_change(Words& words);
  void finish(KilledProcess& process, const Run& run);
  std::uint64_t draw_nth(Point point);

  Rng rng_;
  std::string folder_;
  LogLedger ledger_;
  std::map<Point, int> hits_;
  std::size_t next_point_ = 0;
  int by_time_ = 0;
  std::int64_t runs_ = 0;
  std::int64_t acknowledged_ = 0;
  std::int64_t seen_ = 0;
  std::int64_t changes_of_close_ = 60;
};

void LogKilling::take_change(Words& words) {
  LogLedger::Change change;
  change.kind = static_cast<LogLedger::Change::Kind>(words.number());
  change.topic = words.text();
  change.partitions = static_cast<std::int32_t>(words.number());
  change.fsync = words.number() == 1;
  change.partition = {change.topic, PartitionId(static_cast<std::int32_t>(words.number()))};
  change.before = Offset(words.number());
  ledger_.begin(change);
}

void LogKilling::take(std::string_view line, Run& run) {
  Words words(line);
  const std::string what = words.text();
  run.started = true;
  if (what == "try") {
    const TopicPartition partition = words.partition();
    ledger_.trying(partition, {words.text()});
  } else if (what == "ack") {
    const TopicPartition partition = words.partition();
    const Offset offset(words.number());
    ledger_.appended(partition, offset, kNoLeaderEpoch, {words.text()});
    ++acknowledged_;
  } else if (what == "saw") {
    const TopicPartition partition = words.partition();
    const Offset offset(words.number());
    ledger_.saw(partition, offset, words.text());
    ++seen_;
  } else if (what == "refused") {
    const TopicPartition partition = words.partition();
    ledger_.refused(partition, {words.text()});
  } else if (what == "begin") {
    take_change(words);
  } else if (what == "done") {
    const Result<Uuid> id = Uuid::parse(words.text());
    EXPECT_TRUE(id.ok());
    ledger_.done(id.ok() ? *id : Uuid{});
  } else if (what == "committing" || what == "committed") {
    std::string group = words.text();
    const LogLedger::Commit commit{std::move(group), words.partition()};
    what == "committed" ? ledger_.committed(commit)
                        : ledger_.committing(commit, Offset(words.number()));
  } else if (what == "kill") {
    run.killed_at = find_point(words.text());
  } else if (what == "closed") {
    run.closed = words.number();
  }
}

// How often the point is passed before it kills.
std::uint64_t LogKilling::draw_nth(Point point) {
  switch (point) {
    case Point::kAppend:
    case Point::kSync:
      return rng_.below(200);
    case Point::kRoll:
      return rng_.below(30);
    case Point::kClose:
      return rng_.below(static_cast<std::uint64_t>(changes_of_close_));
    default:
      return rng_.below(12);
  }
}

bool LogKilling::kill_at_point() {
  const Point point = kLogPoints[next_point_];
  const std::uint64_t nth = draw_nth(point);
  const std::uint64_t moment = rng_.below(kMoments);
  std::vector<std::string> words = arguments();
  words.insert(words.end(),
               {std::string(point_name(point)), std::to_string(nth), std::to_string(moment)});
  SCOPED_TRACE(fmt::format("point {} nth {} moment {}", point_name(point), nth, moment));
  Run run;
  KilledProcess process(kProgram, words, folder_ + "/diagnostics");
  const auto pause = process.read(seconds(60), [&](std::string_view line) { take(line, run); });
  EXPECT_EQ(pause, KilledProcess::Pause::kEnded) << "the process hangs";
  finish(process, run);
  if (run.closed.has_value()) {
    changes_of_close_ = std::max<std::int64_t>(*run.closed, 1);
  }
  if (run.killed_at != point) {
    return false;
  }
  ++hits_[point];
  next_point_ = (next_point_ + 1) % kLogPoints.size();
  return true;
}

// At any time, also while it starts and recovers.
bool LogKilling::kill_by_time() {
  SCOPED_TRACE("by time");
  Run run;
  KilledProcess process(kProgram, arguments(), folder_ + "/diagnostics");
  const auto line = [&](std::string_view text) { take(text, run); };
  process.read(milliseconds(rng_.below(400)), line);
  process.kill();
  EXPECT_EQ(process.read(seconds(60), line), KilledProcess::Pause::kEnded);
  finish(process, run);
  ++by_time_;
  return true;
}

void LogKilling::finish(KilledProcess& process, const Run& run) {
  const int status = process.wait();
  if (run.closed.has_value()) {
    EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 0);
  } else {
    EXPECT_TRUE(WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL)
        << "ended by itself with status " << status << ", see " << folder_ << "/diagnostics";
  }
  testing::LogCapture capture;
  log::LogDirectoryOptions options;
  options.files = &posix_file_system();
  options.clock = &system_clock();
  options.seed = rng_.next();
  options.offsets_partitions = 2;
  options.wal.file_bytes_min = 16U << 10U;
  options.wal.file_bytes_max = 128U << 10U;
  options.wal.total_bytes_max = 512U << 10U;
  auto log = log::LogDirectory::open(folder_ + "/data", options);
  ASSERT_TRUE(log.ok()) << log.error().to_string();
  if (run.started) {
    EXPECT_EQ((*log)->recovery().was_clean, run.closed.has_value());
  }
  ledger_.check(**log, posix_file_system(), run.closed ? Ending::kClosed : Ending::kKilled);
  for (const auto& [level, text] : capture.lines()) {
    EXPECT_EQ(text.find("durable bytes damaged"), std::string::npos) << text;
    EXPECT_EQ(text.find("is not served"), std::string::npos) << text;
  }
  // No close(): the next start recovers once more.
}

TEST(LogKill, LosesNothingThatWasAppended) {
  const std::uint64_t seed = weir::testing::seed_of_run();
  SCOPED_TRACE(fmt::format("WEIR_TEST_SEED={}", seed));
  fmt::print("seed={}\n", seed);
  LogKilling killing(seed);
  killing.run(weir::testing::is_full_run() ? 200 : 20);
  killing.print();
  EXPECT_TRUE(killing.has_hit_every_point());
}

}  // namespace
}  // namespace weir::crash
