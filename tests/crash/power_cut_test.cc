#include "tests/crash/support/ledger.h"
#include "tests/runtime/observe/capture.h"
#include "tests/support/size_of_run.h"

#include <weir/log/embedded_log.h>
#include <weir/runtime/rng.h>
#include <weir/runtime/testing/manual_clock.h>
#include <weir/runtime/testing/manual_executor.h>
#include <weir/runtime/testing/memory_file_system.h>

#include <fmt/core.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <memory>
#include <string>
#include <utility>
#include <vector>

// The power goes at any write, sync, rename or removal of a whole machine: log, word count, store
// and RocksDB on one disk in memory that loses what was not synced.
namespace weir::crash {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;
using weir::testing::ManualClock;
using weir::testing::ManualExecutor;
using weir::testing::MemoryFileSystem;

constexpr int kShards = 4;
constexpr const char* kStateDirectory = "data/state";

class Machine {
 public:
  explicit Machine(std::uint64_t seed)
      : rng_(seed),
        purges_(rng_.chance(1, 4)),
        store_mode_(rng_.chance(1, 4) ? "direct" : "hot"),
        files_(MemoryFileSystem::Options{.seed = seed}),
        executor_(clock_),
        ledger_({.state_dir = kStateDirectory, .purges = purges_}) {}

  MemoryFileSystem& files() { return files_; }
  const Ledger& ledger() const { return ledger_; }

  // Everything from an empty disk to the clean close; stops at the first failure.
  Status live() {
    WEIR_TRY(start());
    WEIR_TRY(work(kRounds));
    return close();
  }
  // Starts again, recovers, goes on for a while.
  Status live_on() {
    WEIR_TRY(start());
    return work(kRounds / 4);
  }
  // The power is gone and comes back; the process is gone too. Then the disk is compared with what
  // was promised: a copy of it, so that the next start meets what the power cut left.
  void lose_power();
  // Drains, closes and compares; `again`: starts once more on what the clean close left.
  void finish(bool again);

 private:
  static constexpr int kRounds = 24;

  log::EmbeddedLogOptions log_options(MemoryFileSystem& files) {
    log::EmbeddedLogOptions options;
    options.files = &files;
    options.clock = &clock_;
    options.executor = &executor_;  // writes recovery points now and then
    options.seed = 42;
    options.wal_file_bytes_min = 32U << 10U;
    options.wal_file_bytes_max = 64U << 10U;
    options.wal_bytes_max = 256U << 10U;
    options.disk_reserve_bytes = 64U << 10U;
    options.offsets_partitions = 2;
    return options;
  }
  Status open_log() {
    WEIR_TRY_ASSIGN(log_, log::EmbeddedLog::open("data", log_options(files_)));
    return {};
  }
  Status start() {
    if (log_ == nullptr) {
      WEIR_TRY(open_log());
    }
    WEIR_TRY(make_topics(log_->admin()));
    AppOptions options;
    options.application_id = kApplicationId;
    options.state_dir = log_->state_directory();
    options.manual_stepping = true;
    options.store_mode = store_mode_;
    options.commit_interval_ms = 10;
    options.checkpoint_interval_ms = 30;
    options.repartition_purge_interval_ms = purges_ ? 40 : 1'000'000'000;
    app_ = std::make_unique<App>(word_pipeline(), options, *log_,
                                 Environment{clock_, files_, executor_});
    return app_->start();
  }
  Status work(int rounds) {
    for (int round = 0; round < rounds; ++round) {
      WEIR_TRY(produce());
      WEIR_TRY(step());
    }
    return {};
  }
  Status produce();
  Status step();
  Status drain();
  Status start_drain_close();
  Status close() {
    WEIR_TRY(app_->stop(seconds(1)));
    note_commits();
    app_.reset();
    WEIR_TRY(log_->close());
    log_.reset();
    return {};
  }
  void note_commits() {
    for (const auto& [partition, offset] : app_->committed_offsets()) {
      ledger_.committed(partition, offset);
    }
  }

  Rng rng_;
  const bool purges_;
  const std::string store_mode_;
  ManualClock clock_;
  MemoryFileSystem files_;
  ManualExecutor executor_;
  Ledger ledger_;
  std::int64_t next_number_ = 1;
  std::unique_ptr<log::EmbeddedLog> log_;
  std::unique_ptr<App> app_;
};

// Some lines, acknowledged together.
Status Machine::produce() {
  const std::int64_t first = next_number_;
  next_number_ += rng_.between(1, 12);
  WEIR_TRY_ASSIGN(const std::unique_ptr<RecordSink> sink, log_->make_sink({}));
  WEIR_TRY_ASSIGN(const SinkTopicInfo topic, sink->open_topic(kLinesTopic));
  for (std::int64_t number = first; number < next_number_; ++number) {
    const std::string line = line_of(number);
    const RecordRef record{{}, ByteView(line), clock_.now(), {}};
    WEIR_TRY(sink->send(topic.handle, PartitionId(static_cast<std::int32_t>(number % kPartitions)),
                        {&record, 1}));
  }
  WEIR_TRY(sink->flush());
  for (std::int64_t number = first; number < next_number_; ++number) {
    ledger_.acknowledged(number);
  }
  return {};
}

Status Machine::step() {
  const Status stepped = app_->run_once(Duration::zero());
  note_commits();
  executor_.run_ready();
  // Sometimes a minute: the log writes its recovery points.
  clock_.advance(rng_.chance(1, 12) ? Duration(seconds(61)) : Duration(milliseconds(7)));
  WEIR_TRY(stepped);
  return files_.power_is_off() ? Status(Error(Errc::kIo, "the power is off")) : Status();
}

void Machine::lose_power() {
  app_.reset();
  log_.reset();
  executor_.run_ready();
  files_.power_cut();
  const std::unique_ptr<MemoryFileSystem> copy = files_.clone(1);
  const auto log = log::EmbeddedLog::open("data", log_options(*copy));
  ASSERT_TRUE(log.ok()) << log.error().to_string();
  ledger_.check_after_crash(**log, *copy, true);
}

Status Machine::drain() {
  WEIR_TRY_ASSIGN(const std::unique_ptr<DrainWatch> watch, app_->watch_drain());
  for (int i = 0; i < 2000; ++i) {
    WEIR_TRY(step());
    WEIR_TRY_ASSIGN(const bool done, watch->done());
    if (done) {
      return {};
    }
  }
  return Error(Errc::kTimedOut, "the application did not drain");
}

Status Machine::start_drain_close() {
  WEIR_TRY(start());
  WEIR_TRY(drain());
  return close();
}

void Machine::finish(bool again) {
  const Status finished = start_drain_close();
  ASSERT_TRUE(finished.ok()) << finished.error().to_string();
  ASSERT_TRUE(path_exists(files_, "data/log/.kafka_cleanshutdown"));
  ASSERT_TRUE(open_log().ok());
  ledger_.check_drained(*log_, files_);
  if (!again) {
    return;
  }
  const Counts before = Ledger::read_store(*log_, files_, kStateDirectory);
  const Status repeated = start_drain_close();
  ASSERT_TRUE(repeated.ok()) << repeated.error().to_string();
  ASSERT_TRUE(open_log().ok());
  EXPECT_EQ(Ledger::read_store(*log_, files_, kStateDirectory), before);
}

struct Tally {
  int cuts = 0;    // cases in which the power went where it was planned
  int second = 0;  // further cuts while recovering
  std::int64_t repeated = 0;
  std::int64_t allowed = 0;
  std::size_t acknowledged = 0;
};

// One life of a machine whose power goes at `operation`. False when it lived through: RocksDB's
// threads need now more operations, now fewer.
bool cut_once(std::uint64_t seed, std::uint64_t operation, Tally& tally) {
  Rng rng(seed);
  Machine machine(seed);
  machine.files().cut_power_at(operation);
  const Status lived = machine.live();
  if (!machine.files().power_is_off()) {
    EXPECT_TRUE(lived.ok()) << lived.error().to_string();
    return false;
  }
  machine.lose_power();
  for (int i = 0; i < 2 && rng.chance(1, 3); ++i) {
    machine.files().cut_power_at(rng.below(300));
    const Status went_on = machine.live_on();
    EXPECT_TRUE(went_on.ok() || machine.files().power_is_off()) << went_on.error().to_string();
    machine.lose_power();
    ++tally.second;
  }
  machine.finish(rng.chance(1, 4));
  ++tally.cuts;
  tally.repeated += machine.ledger().repeated();
  tally.allowed += machine.ledger().allowed();
  tally.acknowledged += machine.ledger().acknowledged_lines();
  return true;
}

class CrashPowerCut : public ::testing::TestWithParam<int> {};

TEST_P(CrashPowerCut, LosesNothingAcknowledgedWhereverItComes) {
  const int cuts = weir::testing::rounds(60, 2000) / kShards;
  const std::uint64_t seed = weir::testing::seed_of_run();
  fmt::print("seed={}\n", seed);
  Rng rng(seed + static_cast<std::uint64_t>(GetParam()));

  std::uint64_t operations = 0;
  {
    testing::LogCapture quiet;
    Machine rehearsal(1);
    ASSERT_TRUE(rehearsal.live().ok());
    operations = rehearsal.files().operations();
  }
  Tally tally;
  for (int attempts = 0; tally.cuts < cuts; ++attempts) {
    ASSERT_LT(attempts, 2 * cuts + 10);
    const std::uint64_t case_seed = rng.next() % 1'000'000'000;
    const std::uint64_t operation = rng.below(operations);
    SCOPED_TRACE(fmt::format("WEIR_TEST_SEED={} shard={} case_seed={} operation={}", seed,
                             GetParam(), case_seed, operation));
    testing::LogCapture diagnostics;
    cut_once(case_seed, operation, tally);
    if (HasFailure()) {
      fmt::print("seed={} shard={} case_seed={} operation={}\n", seed, GetParam(), case_seed,
                 operation);
      for (const auto& [level, line] : diagnostics.lines()) {
        fmt::print("  {}\n", line);
      }
      return;
    }
  }
  fmt::print(
      "power_cuts={} while_recovering={} operations_of_a_life={} acknowledged={} repeated={} "
      "repeated_max={}\n",
      tally.cuts, tally.second, operations, tally.acknowledged, tally.repeated, tally.allowed);
}

INSTANTIATE_TEST_SUITE_P(Shard, CrashPowerCut, ::testing::Range(0, kShards));

}  // namespace
}  // namespace weir::crash
