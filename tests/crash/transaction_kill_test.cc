#include "tests/crash/killing.h"
#include "tests/crash/support/transaction_ledger.h"
#include "tests/crash/support/transaction_workload.h"
#include "tests/runtime/observe/capture.h"
#include "tests/support/size_of_run.h"

#include <fmt/core.h>
#include <gtest/gtest.h>

#include <map>
#include <memory>
#include <set>
#include <string>
#include <utility>
#include <vector>

// kill -9 of a process with transactions, a group, a compacted table and a window with retention,
// on the real disk, at named points and at any time, over and over on the same directory. After
// each: all of a transaction or nothing (T1, T2, T4), no committed offset is lost (G1), the table
// has the last value of each key and nothing that was deleted (P12, P14), the window is a run of
// its newest records (P9).
namespace weir::crash {
namespace {

const std::vector<Point> kTransactionPoints = {
    Point::kAppend,         Point::kRoll, Point::kSync,           Point::kFlush,
    Point::kCheckpointFile, Point::kSwap, Point::kSegmentRemoved, Point::kClose};

// The last that was acknowledged, and one that may have been done behind it.
struct Known {
  std::int64_t acknowledged = 0;
  std::optional<std::int64_t> tried;
  void acknowledge() { acknowledged = std::exchange(tried, std::nullopt).value_or(acknowledged); }
  // What is found is what the next life begins with.
  bool settle(std::int64_t found) {
    const bool fits = found == acknowledged || found == tried;
    *this = {found, std::nullopt};
    return fits;
  }
};

class TransactionKilling final : public Killing {
 public:
  explicit TransactionKilling(std::uint64_t seed)
      : Killing("crash_transactions", kTransactionPoints, seed) {}
  void print() const {
    print_kills();
    fmt::print(
        "transactions={} committed={} checked={} puts={} table_records={} window_start={} "
        "offsets={}\n",
        ledger_.count(), ledger_.committed(), ledger_.checked(), puts_, table_records_,
        window_start_, commits_);
  }
  void expect_that_all_happened() const {
    EXPECT_TRUE(has_hit_every_point());
    EXPECT_GT(ledger_.committed(), 0);
    EXPECT_GT(commits_, 0);
    EXPECT_GT(window_start_, 0);
    EXPECT_LT(table_records_, puts_);
  }

 private:
  std::string first_number() override { return std::to_string(ledger_.count()); }
  std::uint64_t passes(Point point) const override;
  void take(const std::string& what, Words& words) override;
  void check(const Run& run) override;
  void check_table(log::EmbeddedLog& log);
  void check_window(log::EmbeddedLog& log);
  void check_readers(log::EmbeddedLog& log);

  TransactionLedger ledger_{kLines, kLinesPartitions, {"group-0", "group-1"}};
  bool plain_is_open_ = false;
  std::map<std::string, Known> table_;  // 0: no value
  std::string put_key_;
  int puts_ = 0;
  int table_records_ = 0;
  Known window_{-1, {}};
  std::int64_t window_start_ = 0;
  std::map<std::int32_t, Known> readers_;  // committed offsets; 0: none
  int commits_ = 0;
};

// What happens in about half a second.
std::uint64_t TransactionKilling::passes(Point point) const {
  switch (point) {
    case Point::kAppend:
    case Point::kSync:
      return 300;
    case Point::kRoll:
    case Point::kSwap:
    case Point::kSegmentRemoved:
      return 30;
    case Point::kClose:
      return static_cast<std::uint64_t>(changes_of_close());
    default:
      return 8;
  }
}

void TransactionKilling::take(const std::string& what, Words& words) {
  if (what == "transaction") {
    EXPECT_EQ(words.number(), ledger_.begin());
  } else if (what == "sending") {
    const auto transaction = static_cast<int>(words.number());
    ledger_.sent(transaction, static_cast<int>(words.number()));
  } else if (what == "offset") {
    const auto transaction = static_cast<int>(words.number());
    ledger_.sending_offset(transaction, words.text());
  } else if (what == "ending") {
    const auto transaction = static_cast<int>(words.number());
    ledger_.ending(transaction, words.number() == 1);
  } else if (what == "ended") {
    const auto transaction = static_cast<int>(words.number());
    ledger_.ended(transaction, static_cast<TransactionOutcome>(words.number()));
  } else if (what == "saw") {
    ledger_.saw(words.text());
  } else if (what == "plain" || what == "plain-ack") {
    plain_is_open_ = what == "plain";
    if (!plain_is_open_) {
      ledger_.plain_sent(true);
    }
  } else if (what == "put") {
    put_key_ = words.text();
    table_[put_key_].tried = words.number();
    ++puts_;
  } else if (what == "put-ack") {
    table_[put_key_].acknowledge();
  } else if (what == "window") {
    window_.tried = words.number();
  } else if (what == "window-ack") {
    window_.acknowledge();
  } else if (what == "committing") {
    Known& known = readers_[static_cast<std::int32_t>(words.number())];
    known.tried = words.number();
  } else if (what == "committed") {
    readers_[static_cast<std::int32_t>(words.number())].acknowledge();
    ++commits_;
  } else {
    ADD_FAILURE() << "unknown report " << what;
  }
}

void TransactionKilling::check(const Run& run) {
  testing::LogCapture capture;
  log::EmbeddedLogOptions options = workload_options();
  options.background = false;
  options.seed = rng().next();
  auto opened = log::EmbeddedLog::open(directory(), options);
  ASSERT_TRUE(opened.ok()) << opened.error().to_string();
  log::EmbeddedLog& log = **opened;
  if (run.started) {
    EXPECT_EQ(log.recovery().was_clean, run.closed.has_value());
  }
  if (log.admin().describe_topic(kWindow).ok()) {  // the last that is made
    if (std::exchange(plain_is_open_, false)) {
      ledger_.plain_sent(false);
    }
    std::vector<std::unique_ptr<RecordSink>> sinks;
    ledger_.check(log, [&] {
      for (int id = 0; id < kTransactionalIds; ++id) {
        SinkOptions producing;
        producing.transactional_id = transactional_id(id);
        auto sink = log.make_sink(producing);
        ASSERT_TRUE(sink.ok()) << sink.error().to_string();
        sinks.push_back(*std::move(sink));
      }
    });
    check_table(log);
    check_window(log);
    check_readers(log);
  } else {
    EXPECT_EQ(ledger_.count(), 0) << "the topics are gone";
  }
  for (const auto& [level, text] : capture.lines()) {
    EXPECT_EQ(text.find("durable bytes damaged"), std::string::npos) << text;
    EXPECT_EQ(text.find("is not served"), std::string::npos) << text;
  }
  // No close(): the next start recovers once more.
}

// All records of a topic with one partition.
template <class Take>
void read_all(log::EmbeddedLog& log, const char* topic, const Take& take) {
  auto source = log.make_source({}).value();
  ASSERT_TRUE(source->assign({{topic, PartitionId(0)}}).ok());
  const Result<PartitionOffsets> at = log.admin().offsets({topic, PartitionId(0)});
  ASSERT_TRUE(at.ok()) << at.error().to_string();
  ASSERT_TRUE(source->seek(0, at->log_start).ok());
  while (source->position(0) < at->log_end) {
    const auto blocks = source->poll(Duration::zero());
    ASSERT_TRUE(blocks.ok()) << blocks.error().to_string();
    ASSERT_FALSE(blocks->empty()) << topic << " ends at " << source->position(0).value();
    for (const RecordBlock& block : *blocks) {
      ASSERT_TRUE(block.status.ok()) << block.status.error().to_string();
      for (const RecordView& record : block.records) {
        take(record);
      }
    }
  }
}

void TransactionKilling::check_table(log::EmbeddedLog& log) {
  std::map<std::string, std::int64_t> found;
  std::int64_t last = 0;
  table_records_ = 0;
  read_all(log, kTable, [&](const RecordView& record) {
    ++table_records_;
    std::int64_t& value = found[std::string(record.key.view_or_empty())];
    value = record.value.is_null() ? 0 : Words(record.value.view_or_empty()).number();
    EXPECT_TRUE(value == 0 || value > last) << value << " stands behind " << last;
    last = std::max(last, value);
  });
  for (const auto& [key, value] : found) {
    EXPECT_TRUE(table_.contains(key)) << key;
  }
  for (auto& [key, known] : table_) {
    const Known before = known;
    EXPECT_TRUE(known.settle(found[key]))
        << key << " is " << found[key] << ", was put as " << before.acknowledged << ", then as "
        << before.tried.value_or(before.acknowledged);
  }
}

void TransactionKilling::check_window(log::EmbeddedLog& log) {
  std::vector<std::int64_t> found;
  read_all(log, kWindow, [&](const RecordView& record) {
    found.push_back(Words(record.value.view_or_empty()).number());
    EXPECT_EQ(found.back(), record.offset.value());
  });
  const std::int64_t start =
      log.admin().offsets({kWindow, PartitionId(0)}).value().log_start.value();
  EXPECT_GE(start, window_start_) << "old records are back";
  window_start_ = start;
  for (std::size_t i = 0; i < found.size(); ++i) {
    EXPECT_EQ(found[i], start + static_cast<std::int64_t>(i)) << "a record is missing";
  }
  const std::int64_t last = found.empty() ? start - 1 : found.back();
  EXPECT_TRUE(window_.settle(last)) << "the window ends with " << last;
  // A batch has 270 bytes.
  EXPECT_TRUE(start == 0 || found.size() * 280 >= kWindowBytes) << found.size();
}

void TransactionKilling::check_readers(log::EmbeddedLog& log) {
  auto group = log.make_group(kReaders).value();
  for (auto& [partition, known] : readers_) {
    const TopicPartition name{kLines, PartitionId(partition)};
    const auto found = group->committed({&name, 1});
    ASSERT_TRUE(found.ok()) << found.error().to_string();
    const std::int64_t offset = (*found)[0] ? (*found)[0]->offset.value() : 0;
    const Known before = known;
    EXPECT_TRUE(known.settle(offset))
        << name.to_string() << " is at " << offset << ", was committed at " << before.acknowledged;
  }
}

TEST(TransactionKill, ShowsAllOrNothingAndLosesNothing) {
  const std::uint64_t seed = weir::testing::seed_of_run();
  SCOPED_TRACE(fmt::format("WEIR_TEST_SEED={}", seed));
  fmt::print("seed={}\n", seed);
  TransactionKilling killing(seed);
  killing.run(weir::testing::is_full_run() ? 200 : 20);
  killing.print();
  killing.expect_that_all_happened();
}

}  // namespace
}  // namespace weir::crash
