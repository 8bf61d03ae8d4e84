#include "tests/crash/killing.h"
#include "tests/crash/support/log_ledger.h"
#include "tests/runtime/observe/capture.h"
#include "tests/support/size_of_run.h"

#include <fmt/core.h>
#include <gtest/gtest.h>

#include <array>
#include <string>

// kill -9 of a process that uses the log alone, on the real disk, at named points and at any time,
// over and over on the same directory. After each the directory is compared with what was promised.
namespace weir::crash {
namespace {

constexpr std::array kLogPoints = {Point::kAppend, Point::kRoll,           Point::kSync,
                                   Point::kFlush,  Point::kCheckpointFile, Point::kClose};

class LogKilling final : public Killing {
 public:
  explicit LogKilling(std::uint64_t seed)
      : Killing("crash_log", {kLogPoints.begin(), kLogPoints.end()}, seed) {}
  void print() const {
    print_kills();
    fmt::print("acknowledged={} seen={} records_checked={}\n", acknowledged_, seen_,
               ledger_.records_checked());
  }

 private:
  std::string first_number() override { return std::to_string(++runs_ * 1'000'000); }
  std::uint64_t passes(Point point) const override;
  void take(const std::string& what, Words& words) override;
  void take_change(Words& words);
  void check(const Run& run) override;

  LogLedger ledger_;
  std::int64_t runs_ = 0;
  std::int64_t acknowledged_ = 0;
  std::int64_t seen_ = 0;
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

void LogKilling::take(const std::string& what, Words& words) {
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
  }
}

std::uint64_t LogKilling::passes(Point point) const {
  switch (point) {
    case Point::kAppend:
    case Point::kSync:
      return 200;
    case Point::kRoll:
      return 30;
    case Point::kClose:
      return static_cast<std::uint64_t>(changes_of_close());
    default:
      return 12;
  }
}

void LogKilling::check(const Run& run) {
  testing::LogCapture capture;
  log::LogDirectoryOptions options;
  options.files = &posix_file_system();
  options.clock = &system_clock();
  options.seed = rng().next();
  options.offsets_partitions = 2;
  options.wal.file_bytes_min = 16U << 10U;
  options.wal.file_bytes_max = 128U << 10U;
  options.wal.total_bytes_max = 512U << 10U;
  auto log = log::LogDirectory::open(directory(), options);
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
