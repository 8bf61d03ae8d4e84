#include "tests/log/compaction/compaction_support.h"
#include "tests/support/size_of_run.h"

#include <weir/runtime/rng.h>

#include <set>

// Random lives of a compacted log, compared with all that was ever written to it.

namespace weir::log {
namespace {

using testing::apply;
using testing::batch_of;
using testing::kStart;
using testing::LogOnDisk;
using testing::PassResult;
using testing::SeenLog;
using testing::SeenRecord;
using testing::Table;
using testing::TestRecord;

class CompactedWorld {
 public:
  explicit CompactedWorld(std::uint64_t seed) : rng_(seed) {
    PartitionSettings& settings = log_.options.settings;
    settings.segment_bytes = 400 + static_cast<std::int64_t>(rng_.below(1500));
    settings.index_interval_bytes = rng_.chance(1, 2) ? 100 : 4096;
    settings.cleanup.compacts = true;
    settings.cleanup.deletes = false;
    settings.cleanup.min_cleanable_dirty_ratio = 0;
    settings.cleanup.delete_retention_ms = 5000;
    log_.options.leader_epoch = LeaderEpoch(1);
    log_.options.checksum_folder = "data/wal/checksums/t-0";
    log_.tail_cache_bytes = rng_.chance(1, 2) ? 0 : 2000;
    log_.open();
  }

  void live(int rounds) {
    for (int round = 0; round < rounds && !::testing::Test::HasFailure(); ++round) {
      const auto steps = 10 + rng_.below(40);
      for (std::uint64_t i = 0; i < steps; ++i) {
        step();
      }
      settle();
      pass();
      check();
      if (rng_.chance(1, 3)) {
        reopen();
        check();
      }
      remember();
    }
  }

 private:
  struct Written {
    SeenRecord record;
    int transaction = -1;  // of transactions_
  };
  struct Transaction {
    std::int64_t first = 0;
    bool is_open = true;
    bool is_aborted = false;
  };
  struct Snapshot {
    Offset position;
    Table table;
  };

  Partition& log() { return *log_.shared(); }

  void step() {
    log_.clock.advance(std::chrono::milliseconds(rng_.below(200)));
    if (rng_.chance(1, 3)) {
      transactional_step(static_cast<std::int64_t>(rng_.below(3)));
    } else if (rng_.chance(1, 4)) {
      const auto id = static_cast<std::int64_t>(10 + rng_.below(2));
      append(records(), {ProducerId(id), ProducerEpoch(0), sequence_[id], false}, -1);
    } else {
      append(records(), {}, -1);
    }
  }

  void transactional_step(std::int64_t id) {
    const auto open = open_.find(id);
    if (open != open_.end() && rng_.chance(1, 2)) {
      const bool aborts = rng_.chance(1, 2);
      const Result<Partition::Appended> appended =
          log().append(testing::marker_of(aborts ? ControlType::kAbort : ControlType::kCommit,
                                          ProducerId(id), ProducerEpoch(0), log_.clock.now()),
                       AppendOrigin::kCoordinator);
      ASSERT_TRUE(appended.ok()) << appended.error().to_string();
      end_ = appended->next_offset;
      transactions_[static_cast<std::size_t>(open->second)].is_open = false;
      transactions_[static_cast<std::size_t>(open->second)].is_aborted = aborts;
      open_.erase(open);
      return;
    }
    int transaction = 0;
    if (open == open_.end()) {
      transaction = static_cast<int>(transactions_.size());
      transactions_.push_back({end_.value()});
      open_[id] = transaction;
    } else {
      transaction = open->second;
    }
    append(records(), {ProducerId(id), ProducerEpoch(0), sequence_[id], true}, transaction);
  }

  std::vector<TestRecord> records() {
    std::vector<TestRecord> records(1 + rng_.below(4));
    for (TestRecord& record : records) {
      record.key = "key-" + std::to_string(rng_.below(12));
      if (!rng_.chance(1, 4)) {
        record.value = std::string(rng_.below(60), 'v') + std::to_string(next_value_++);
      }
      record.timestamp = log_.clock.now() - static_cast<Timestamp>(rng_.below(50));
    }
    return records;
  }

  void append(const std::vector<TestRecord>& records, const BatchBuilder::Producer& producer,
              int transaction) {
    const auto codec = static_cast<Codec>(rng_.chance(1, 2) ? 0U : rng_.below(5));
    const Result<Partition::Appended> appended =
        log().append(batch_of(records, producer, codec), AppendOrigin::kBuilder);
    ASSERT_TRUE(appended.ok()) << appended.error().to_string();
    ASSERT_EQ(appended->base_offset, end_);
    for (std::size_t i = 0; i < records.size(); ++i) {
      const std::int64_t offset = end_.value() + static_cast<std::int64_t>(i);
      written_[offset] = {{offset, records[i].timestamp, records[i].key, records[i].value},
                          transaction};
    }
    if (producer.id != kNoProducerId) {
      sequence_[producer.id.value()] += static_cast<std::int32_t>(records.size());
      last_of_[producer.id.value()] = appended->next_offset;
    }
    end_ = appended->next_offset;
  }

  void settle() {
    testing::wait_for(log(), end_);
    ASSERT_TRUE(log().health().ok());
  }

  Offset last_stable() const {
    Offset stable = end_;
    for (const auto& [id, transaction] : open_) {
      stable = std::min(stable, Offset(transactions_[static_cast<std::size_t>(transaction)].first));
    }
    return stable;
  }

  void pass() {
    recovery_point_ = log().recovery_point();
    const std::size_t map_bytes = rng_.chance(1, 2) ? 1U << 16U : 500 + rng_.below(500);
    const CleanableRange range = testing::range_of(log(), clean_end_, last_stable());
    const PassResult done = testing::run_pass(disk_, log_.shared(), range, log_.clock.now(),
                                              map_bytes, 1 + rng_.below(3000));
    ASSERT_TRUE(done.status.ok()) << done.status.error().to_string();
    if (done.clean_end > clean_end_.value_or(Offset(0))) {
      clean_end_ = done.clean_end;
    }
    if (range.dirty_bytes > 0) {
      ASSERT_GT(done.clean_end, range.first_dirty);  // however small the map is
    }
    horizon_ = std::max(horizon_, done.horizon);
    kept_ += done.counts.records_kept;
    read_ += done.counts.records_read;
  }

  void reopen() {
    if (rng_.chance(1, 2)) {
      ASSERT_TRUE(log().close().ok());
      log_.options.recovery_point = end_;
      log_.reopen(true);
    } else {
      log_.close_all();
      disk_.power_cut();
      log_.options.recovery_point = recovery_point_;
      log_.reopen(false);
    }
    EXPECT_TRUE(log().recovery().damaged.empty()) << log().recovery().damaged.front();
  }

  bool is_committed(const Written& written) const {
    if (written.transaction < 0) {
      return true;
    }
    const Transaction& transaction = transactions_[static_cast<std::size_t>(written.transaction)];
    return !transaction.is_open && !transaction.is_aborted;
  }

  Table table_at(Offset end) const {
    Table table;
    for (const auto& [offset, written] : written_) {
      if (offset < end.value() && is_committed(written)) {
        apply(table, written.record);
      }
    }
    return table;
  }

  void check() {
    EXPECT_EQ(log().offsets().log_end, end_);
    const SeenLog seen = testing::see(log());
    EXPECT_EQ(seen.last_stable, last_stable());
    EXPECT_EQ(log().offsets().last_stable, last_stable());
    EXPECT_EQ(testing::see_committed(log()), seen.committed);
    std::set<std::string> keys;
    for (const SeenRecord& record : seen.records) {
      const auto known = written_.find(record.offset);
      ASSERT_NE(known, written_.end());
      EXPECT_EQ(record, known->second.record);
      if (record.offset < clean_end_.value_or(Offset(0)).value()) {
        EXPECT_TRUE(is_committed(known->second)) << record.offset << " was aborted";
        EXPECT_TRUE(keys.insert(*record.key).second) << *record.key << " twice";
      }
    }
    const Table now = table_at(last_stable());
    EXPECT_EQ(testing::table_of(seen.committed), now);
    // A store that was checkpointed at some position reads on from there.
    for (const Snapshot& snapshot : snapshots_) {
      if (snapshot.position < horizon_) {
        continue;
      }
      Table table = snapshot.table;
      for (const SeenRecord& record : seen.committed) {
        if (record.offset >= snapshot.position.value()) {
          apply(table, record);
        }
      }
      EXPECT_EQ(table, now) << "from " << snapshot.position.value();
    }
    // The last batch of every producer says where its sequence goes on.
    for (const auto& [id, end] : last_of_) {
      const auto last =
          std::find_if(seen.batches.rbegin(), seen.batches.rend(), [&](const BatchHeader& header) {
            return header.producer_id == ProducerId(id) && !header.is_control();
          });
      if (id >= 10) {
        ASSERT_NE(last, seen.batches.rend());
        EXPECT_EQ(last->next_offset(), end);
      }
    }
  }

  void remember() {
    snapshots_.push_back({last_stable(), table_at(last_stable())});
    if (snapshots_.size() > 6) {
      snapshots_.erase(snapshots_.begin() + static_cast<std::ptrdiff_t>(rng_.below(6)));
    }
  }

  Rng rng_;
  weir::testing::MemoryFileSystem disk_;
  LogOnDisk log_{disk_};
  Offset end_;
  Offset recovery_point_;
  std::optional<Offset> clean_end_;
  Offset horizon_;
  std::map<std::int64_t, Written> written_;
  std::vector<Transaction> transactions_;
  std::map<std::int64_t, int> open_;
  std::map<std::int64_t, std::int32_t> sequence_;
  std::map<std::int64_t, Offset> last_of_;
  std::vector<Snapshot> snapshots_;
  std::int64_t next_value_ = 0;
  std::uint64_t kept_ = 0;
  std::uint64_t read_ = 0;
};

class CompactionModel : public ::testing::TestWithParam<int> {};

TEST_P(CompactionModel, KeepsWhatTheTableOfItsKeysIsMadeOf) {
  const std::uint64_t seed =
      weir::testing::seed_of_run() + static_cast<std::uint64_t>(GetParam()) * 1'000'003;
  SCOPED_TRACE("WEIR_TEST_SEED for shard 0: " + std::to_string(seed));
  const int lives = weir::testing::rounds(6, 400);
  for (int life = 0; life < lives && !HasFailure(); ++life) {
    SCOPED_TRACE(life);
    CompactedWorld(seed + static_cast<std::uint64_t>(life) * 7)
        .live(weir::testing::is_full_run() ? 30 : 10);
  }
}

INSTANTIATE_TEST_SUITE_P(Shard, CompactionModel, ::testing::Range(0, 2));

}  // namespace
}  // namespace weir::log
