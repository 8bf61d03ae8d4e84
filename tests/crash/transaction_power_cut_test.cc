#include "tests/crash/support/transaction_ledger.h"
#include "tests/runtime/observe/capture.h"
#include "tests/support/size_of_run.h"

#include <weir/log/embedded_log.h>
#include <weir/runtime/rng.h>
#include <weir/runtime/testing/manual_clock.h>
#include <weir/runtime/testing/memory_file_system.h>

#include <fmt/core.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <map>
#include <memory>
#include <optional>
#include <string>

// Transactions on a disk in memory: the power goes, or the process is killed, at every change of
// the disk of a workload, then again while the log recovers. After each start every read_committed
// reader and every group sees all of a transaction or nothing (T1, T2, T4), what was committed is
// there, and what a reader saw stays.
namespace weir::crash {
namespace {

using testing::ManualClock;
using testing::MemoryFileSystem;

constexpr int kShards = 4;
constexpr int kPartitions = 3;
constexpr int kIds = 2;
constexpr std::uint64_t kNever = UINT64_MAX / 4;
class Machine {
 public:
  explicit Machine(std::uint64_t seed)
      : rng_(seed), files_(MemoryFileSystem::Options{.seed = seed}) {}
  ~Machine() { end(false); }
  Machine(const Machine&) = delete;
  Machine& operator=(const Machine&) = delete;

  void plan(std::uint64_t operation) { files_.cut_power_at(operation); }
  std::uint64_t changes() const { return files_.operations(); }
  bool is_dead() const { return files_.power_is_off(); }

  bool start() {
    log::EmbeddedLogOptions options;
    options.files = &files_;
    options.clock = &clock_;
    options.background = false;
    options.seed = rng_.next();
    options.offsets_partitions = 2;
    options.transaction_partitions = 2;
    options.tail_cache_bytes = rng_.chance(1, 2) ? 0 : 4096;
    options.wal_file_bytes_min = 16U << 10U;
    options.wal_file_bytes_max = 32U << 10U;
    options.wal_bytes_max = 96U << 10U;
    options.disk_reserve_bytes = 0;
    auto opened = log::EmbeddedLog::open("data", options);
    if (!opened.ok()) {
      EXPECT_TRUE(is_dead()) << opened.error().to_string();
      return false;
    }
    log_ = *std::move(opened);
    return !is_dead();
  }

  // Of the process and, unless it is killed, of what was not durable.
  void end(bool killed) {
    if (!is_dead()) {
      files_.cut_power_at(0);
    }
    sinks_.clear();
    log_.reset();
    killed ? files_.process_crash() : files_.power_cut();
    files_.cut_power_at(kNever);
    for (auto& [id, open] : open_) {
      open.reset();
    }
  }

  void work(int steps) {
    if (!make_topics()) {
      return;
    }
    for (int i = 0; i < steps && !is_dead(); ++i) {
      step();
    }
  }

  // What every reader sees once all that was open is resolved.
  void check() {
    ledger_.check(*log_, [this] {
      for (int id = 0; id < kIds; ++id) {
        sinks_[id] = make_sink(id);
        ASSERT_NE(sinks_[id], nullptr);
      }
    });
  }
  int committed() const { return ledger_.committed(); }

 private:
  bool make_topics() {
    if (!log_->admin().describe_topic("lines").ok()) {
      if (!log_->admin().create_topic({"lines", kPartitions, {{"segment.bytes", "2000"}}}).ok()) {
        return false;
      }
    }
    return log_->admin().describe_topic("input").ok() ||
           log_->admin().create_topic({"input", 1, {}}).ok();
  }

  std::unique_ptr<RecordSink> make_sink(int id) {
    SinkOptions options;
    options.transactional_id = fmt::format("tx-{}", id);
    auto made = log_->make_sink(options);
    EXPECT_TRUE(made.ok() || is_dead()) << made.error().to_string();
    return made.ok() ? std::move(made).value() : nullptr;
  }

  void step() {
    const int id = static_cast<int>(rng_.below(kIds));
    if (sinks_[id] == nullptr || rng_.chance(1, 25)) {
      sinks_[id] = make_sink(id);  // a newer producer fences the older
      open_[id].reset();
      return;
    }
    if (rng_.chance(1, 12)) {
      send_plain();
      return;
    }
    if (rng_.chance(1, 20)) {
      ledger_.look(*log_);
      return;
    }
    RecordSink& sink = *sinks_[id];
    if (!open_[id]) {
      if (sink.begin().ok()) {
        open_[id] = ledger_.begin();
      }
      return;
    }
    switch (rng_.below(6)) {
      case 0:
        end_transaction(sink, id);
        return;
      case 1:
        send_offset(sink, *open_[id]);
        return;
      case 2:
        (void)sink.flush().ok();
        return;
      default:
        send(sink, *open_[id]);
        return;
    }
  }

  void send(RecordSink& sink, int transaction) {
    const auto info = sink.open_topic("lines");
    if (!info.ok()) {
      return;
    }
    const int partition = static_cast<int>(rng_.below(kPartitions));
    const std::string value =
        ledger_.record_name(transaction, partition) + std::string(rng_.below(200), 'x');
    const RecordRef record{{}, ByteView(value), clock_.now(), {}};
    const Status sent = sink.send(info->handle, PartitionId(partition), {&record, 1});
    EXPECT_TRUE(sent.ok() || is_dead()) << sent.error().to_string();
    if (sent.ok()) {
      ledger_.sent(transaction, partition);
    }
  }

  void send_offset(RecordSink& sink, int transaction) {
    const std::string group = fmt::format("group-{}", rng_.below(2));
    if (!ledger_.may_send_offset(transaction, group)) {
      return;
    }
    const PartitionOffset one{TransactionLedger::kInput, {Offset(transaction), LeaderEpoch(0), ""}};
    ledger_.sending_offset(transaction, group);
    const Status sent = sink.send_offsets({&one, 1}, {group, -1, ""});
    EXPECT_TRUE(sent.ok() || is_dead()) << sent.error().to_string();
  }

  void end_transaction(RecordSink& sink, int id) {
    const int transaction = *open_[id];
    const bool commit = rng_.chance(3, 4);
    ledger_.ending(transaction, commit);
    const Result<TransactionOutcome> outcome = sink.end(commit);
    if (is_dead() || !outcome.ok() || *outcome == TransactionOutcome::kUnknown) {
      EXPECT_TRUE(is_dead());
      if (outcome.ok() && *outcome == TransactionOutcome::kCommitted) {
        ledger_.ended(transaction, *outcome);
      }
      return;
    }
    EXPECT_EQ(*outcome, commit ? TransactionOutcome::kCommitted : TransactionOutcome::kAborted);
    ledger_.ended(transaction, *outcome);
    open_[id].reset();
  }

  void send_plain() {
    auto sink = log_->make_sink({}).value();
    const auto info = sink->open_topic("lines");
    if (!info.ok()) {
      return;
    }
    const RecordRef record{{}, ByteView("plain"), clock_.now(), {}};
    ledger_.plain_sent(sink->send(info->handle, PartitionId(0), {&record, 1}).ok() &&
                       sink->flush().ok());
  }

  Rng rng_;
  ManualClock clock_;
  MemoryFileSystem files_;
  std::unique_ptr<log::EmbeddedLog> log_;
  std::map<int, std::unique_ptr<RecordSink>> sinks_;
  std::map<int, std::optional<int>> open_;  // the transaction of each id
  TransactionLedger ledger_{
      "lines", kPartitions, {"group-0", "group-1"}, [this] { return is_dead(); }};
};

constexpr int kSteps = 60;

std::uint64_t rehearse(std::uint64_t seed) {
  testing::LogCapture quiet;
  Machine machine(seed);
  EXPECT_TRUE(machine.start());
  machine.work(kSteps);
  return machine.changes();
}

struct Tally {
  std::uint64_t images = 0;
  std::uint64_t while_starting = 0;
  int committed = 0;
};

void live(std::uint64_t seed, std::uint64_t operation, Tally& tally) {
  Machine machine(seed);
  Rng rng(seed ^ operation);
  machine.plan(operation);
  if (machine.start()) {
    machine.work(kSteps);
  }
  machine.end(rng.chance(1, 3));
  ++tally.images;
  // It may go again while it recovers, and once more later on.
  for (int life = 0; life < 2; ++life) {
    while (rng.chance(1, 2)) {
      machine.plan(rng.below(60));
      const bool started = machine.start();
      machine.end(rng.chance(1, 3));
      ++tally.images;
      tally.while_starting += started ? 0 : 1;
    }
    ASSERT_TRUE(machine.start());
    machine.check();
    if (::testing::Test::HasFailure()) {
      break;
    }
    machine.plan(life == 0 ? rng.below(150) : kNever);
    machine.work(kSteps);
    machine.end(rng.chance(1, 3));
    ++tally.images;
  }
  tally.committed += machine.committed();
}

// Prints how to run it again when it fails.
void run(std::uint64_t seed, std::uint64_t operation, Tally& tally) {
  testing::LogCapture diagnostics;
  live(seed, operation, tally);
  for (const auto& [level, line] : diagnostics.lines()) {
    EXPECT_EQ(line.find("durable bytes damaged"), std::string::npos) << line;
  }
  if (::testing::Test::HasFailure()) {
    fmt::print("WEIR_TEST_CASE={}:{}\n", seed, operation);
    for (const auto& [level, line] : diagnostics.lines()) {
      fmt::print("  {}\n", line);
    }
  }
}

class TransactionPowerCut : public ::testing::TestWithParam<int> {};

TEST_P(TransactionPowerCut, ShowsAllOfATransactionOrNothing) {
  Tally tally;
  if (const char* given = std::getenv("WEIR_TEST_CASE"); given != nullptr) {
    const std::string text = given;
    run(std::stoull(text), std::stoull(text.substr(text.find(':') + 1)), tally);
    return;
  }
  const std::uint64_t images = weir::testing::rounds<std::uint64_t>(600, 12'000) / kShards;
  const std::uint64_t seed = weir::testing::seed_of_run();
  fmt::print("seed={}\n", seed);
  Rng rng(seed + static_cast<std::uint64_t>(GetParam()));
  while (tally.images < images) {
    const std::uint64_t workload = rng.next() % 1'000'000'000;
    const std::uint64_t changes = rehearse(workload);
    const std::uint64_t stride = weir::testing::apart(changes / 8 + 1);
    for (std::uint64_t at = rng.below(stride); at < changes; at += stride) {
      run(workload, at, tally);
      ASSERT_FALSE(HasFailure());
    }
  }
  fmt::print("images={} while_starting={} committed={}\n", tally.images, tally.while_starting,
             tally.committed);
}

INSTANTIATE_TEST_SUITE_P(Shard, TransactionPowerCut, ::testing::Range(0, kShards));

}  // namespace
}  // namespace weir::crash
