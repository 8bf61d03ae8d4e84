#include "tests/runtime/observe/capture.h"
#include "tests/support/size_of_run.h"

#include <weir/log/embedded_log.h>
#include <weir/runtime/rng.h>
#include <weir/runtime/testing/manual_clock.h>
#include <weir/runtime/testing/memory_file_system.h>

#include <fmt/core.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

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
const TopicPartition kInput{"input", PartitionId(0)};

enum class End { kOpen, kUnknown, kCommitted, kAborted };

struct Transaction {
  End end = End::kOpen;
  bool may_commit = false;
  std::map<int, int> records;  // by partition, those that may be there
  // Its group's offset is its number; the later record wins, whichever transaction ends first.
  std::optional<std::int64_t> offset;
  std::string group;
  int offset_sent = 0;
};

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
    const std::set<std::string> before = visible();
    for (int id = 0; id < kIds; ++id) {
      sinks_[id] = make_sink(id);  // aborts what its id left open
      ASSERT_NE(sinks_[id], nullptr);
    }
    const std::set<std::string> now = visible();
    for (const std::string& value : seen_) {
      ASSERT_TRUE(now.contains(value)) << value << " was read, and is gone";
    }
    ASSERT_TRUE(std::ranges::includes(now, before)) << "a record that was read was not committed";
    for (std::size_t i = 0; i < transactions_.size(); ++i) {
      check_transaction(static_cast<int>(i), now);
    }
    check_offsets();
    seen_ = now;
    ASSERT_EQ(plain_, count_plain());
  }
  int checked() const { return checked_; }
  int committed() const { return committed_; }

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
      look();
      return;
    }
    RecordSink& sink = *sinks_[id];
    if (!open_[id]) {
      if (sink.begin().ok()) {
        open_[id] = static_cast<int>(transactions_.size());
        transactions_.emplace_back();
      }
      return;
    }
    Transaction& transaction = transactions_[static_cast<std::size_t>(*open_[id])];
    switch (rng_.below(6)) {
      case 0:
        end_transaction(sink, id, transaction);
        return;
      case 1:
        send_offset(sink, *open_[id], transaction);
        return;
      case 2:
        (void)sink.flush().ok();
        return;
      default:
        send(sink, *open_[id], transaction);
        return;
    }
  }

  void send(RecordSink& sink, int number, Transaction& transaction) {
    const auto info = sink.open_topic("lines");
    if (!info.ok()) {
      return;
    }
    const int partition = static_cast<int>(rng_.below(kPartitions));
    const std::string value =
        fmt::format("{}/{}/{}/{}", number, partition, transaction.records[partition],
                    std::string(rng_.below(200), 'x'));
    const RecordRef record{{}, ByteView(value), clock_.now(), {}};
    const Status sent = sink.send(info->handle, PartitionId(partition), {&record, 1});
    EXPECT_TRUE(sent.ok() || is_dead()) << sent.error().to_string();
    if (sent.ok()) {
      ++transaction.records[partition];
    }
  }

  void send_offset(RecordSink& sink, int number, Transaction& transaction) {
    const std::string group = fmt::format("group-{}", rng_.below(2));
    if (transaction.offset && transaction.group != group) {
      return;  // one group a transaction, so that the offset tells which it was
    }
    const PartitionOffset one{kInput, {Offset(number), LeaderEpoch(0), ""}};
    transaction.group = group;
    const Status sent = sink.send_offsets({&one, 1}, {group, -1, ""});
    EXPECT_TRUE(sent.ok() || is_dead()) << sent.error().to_string();
    transaction.offset = number;
    transaction.offset_sent = ++offsets_sent_;
  }

  void end_transaction(RecordSink& sink, int id, Transaction& transaction) {
    const bool commit = rng_.chance(3, 4);
    transaction.may_commit = commit;
    const Result<TransactionOutcome> outcome = sink.end(commit);
    if (is_dead() || !outcome.ok() || *outcome == TransactionOutcome::kUnknown) {
      EXPECT_TRUE(is_dead());
      transaction.end = End::kUnknown;
      if (outcome.ok() && *outcome == TransactionOutcome::kCommitted) {
        transaction.end = End::kCommitted;
      }
      return;
    }
    EXPECT_EQ(*outcome, commit ? TransactionOutcome::kCommitted : TransactionOutcome::kAborted);
    transaction.end = commit ? End::kCommitted : End::kAborted;
    committed_ += commit ? 1 : 0;
    open_[id].reset();
  }

  void send_plain() {
    auto sink = log_->make_sink({}).value();
    const auto info = sink->open_topic("lines");
    if (!info.ok()) {
      return;
    }
    const RecordRef record{{}, ByteView("plain"), clock_.now(), {}};
    if (sink->send(info->handle, PartitionId(0), {&record, 1}).ok() && sink->flush().ok()) {
      ++plain_;
    } else {
      plain_may_be_more_ = true;
    }
  }

  // What a reader sees now it must see ever after.
  void look() {
    const std::set<std::string> now = visible();
    if (!is_dead()) {
      seen_.insert(now.begin(), now.end());
    }
  }

  std::vector<std::string> read(int partition) {
    std::vector<std::string> values;
    SourceOptions options;
    options.read_committed = true;
    auto source = log_->make_source(options).value();
    (void)source->assign({{"lines", PartitionId(partition)}}).ok();
    (void)source->seek(0, Offset(0)).ok();
    while (true) {
      const auto blocks = source->poll(Duration::zero());
      if (!blocks.ok() || blocks->empty()) {
        return values;
      }
      for (const RecordBlock& block : *blocks) {
        EXPECT_TRUE(block.status.ok() || is_dead()) << block.status.error().to_string();
        for (const RecordView& record : block.records) {
          values.emplace_back(record.value.view_or_empty());
        }
      }
    }
  }
  // "transaction/partition/number".
  std::set<std::string> visible() {
    std::set<std::string> all;
    for (int partition = 0; partition < kPartitions; ++partition) {
      for (const std::string& value : read(partition)) {
        if (value != "plain") {
          const std::string name = value.substr(0, value.rfind('/'));
          EXPECT_TRUE(all.insert(name).second || is_dead()) << name << " is there twice";
        }
      }
    }
    return all;
  }
  int count_plain() {
    const std::vector<std::string> values = read(0);
    const auto count = static_cast<int>(std::ranges::count(values, "plain"));
    if (plain_may_be_more_ && count == plain_ + 1) {
      ++plain_;
    }
    plain_may_be_more_ = false;
    return count;
  }

  void check_transaction(int number, const std::set<std::string>& now) {
    Transaction& transaction = transactions_[static_cast<std::size_t>(number)];
    int expected = 0;
    int found = 0;
    for (const auto& [partition, records] : transaction.records) {
      expected += records;
      for (int i = 0; i < records; ++i) {
        found += now.contains(fmt::format("{}/{}/{}", number, partition, i)) ? 1 : 0;
      }
    }
    ++checked_;
    ASSERT_TRUE(found == 0 || found == expected)
        << "transaction " << number << " shows " << found << " of " << expected << " records";
    if (transaction.end == End::kCommitted) {
      ASSERT_EQ(found, expected) << "transaction " << number << " was committed";
    } else if (transaction.end == End::kAborted || !transaction.may_commit) {
      ASSERT_EQ(found, 0) << "transaction " << number << " was not committed";
    }
    if (expected > 0 && transaction.end != End::kCommitted) {
      transaction.end = found > 0 ? End::kCommitted : End::kAborted;
    }
  }

  void check_offsets() {
    for (const std::string group : {"group-0", "group-1"}) {
      auto member = log_->make_group(group).value();
      const auto found = member->committed({&kInput, 1});
      ASSERT_TRUE(found.ok()) << found.error().to_string();
      // With each wish of those of which nobody knows how they ended: they have no records.
      std::set<std::int64_t> allowed;
      for (const bool counts : {false, true}) {
        const Transaction* last = nullptr;
        for (const Transaction& one : transactions_) {
          const bool is_committed =
              one.end == End::kCommitted || (counts && one.end == End::kUnknown && one.may_commit);
          if (one.offset && one.group == group && is_committed &&
              (last == nullptr || last->offset_sent < one.offset_sent)) {
            last = &one;
          }
        }
        allowed.insert(last == nullptr ? -1 : *last->offset);
      }
      const std::int64_t offset = (*found)[0] ? (*found)[0]->offset.value() : -1;
      ASSERT_TRUE(allowed.contains(offset)) << group << " is at " << offset << ", not at "
                                            << *allowed.begin() << " or " << *allowed.rbegin();
      for (Transaction& one : transactions_) {
        if (one.end == End::kUnknown && one.offset && one.group == group) {
          one.end = offset == *one.offset ? End::kCommitted : End::kAborted;
        }
      }
    }
  }

  Rng rng_;
  ManualClock clock_;
  MemoryFileSystem files_;
  std::unique_ptr<log::EmbeddedLog> log_;
  std::map<int, std::unique_ptr<RecordSink>> sinks_;
  std::map<int, std::optional<int>> open_;  // the transaction of each id
  std::vector<Transaction> transactions_;
  int offsets_sent_ = 0;
  std::set<std::string> seen_;
  int plain_ = 0;
  bool plain_may_be_more_ = false;
  int checked_ = 0;
  int committed_ = 0;
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
  const std::uint64_t images = weir::testing::rounds(600, 12'000) / kShards;
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
