#include "log/broker/log_directory.h"
#include "log/partition/await.h"
#include "tests/log/compaction/compaction_support.h"
#include "tests/support/size_of_run.h"

#include <weir/runtime/logger.h>
#include <weir/runtime/rng.h>

// Random lives of a data directory with topics that are compacted, that are given up by size, and
// both, which end with a power cut, a kill or a close at any change of the disk: what was
// acknowledged is there, save what the policy takes, and nothing that was gone is back.

namespace weir::log {
namespace {

using testing::apply;
using testing::batch_of;
using testing::SeenLog;
using testing::SeenRecord;
using testing::Table;
using testing::TestRecord;
using weir::testing::ManualClock;
using weir::testing::MemoryFileSystem;

constexpr std::uint64_t kNever = UINT64_MAX / 4;
constexpr std::int64_t kRetentionBytes = 1500;

struct Topic {
  std::string name;
  bool compacts = false;
  bool deletes = false;
  std::map<std::int64_t, SeenRecord> written;  // what stands at each offset, or stood
  Offset end;                                  // behind what was appended
  Offset acknowledged;
  Offset start;  // of the last life
  Offset horizon;
  std::vector<std::pair<Offset, Table>> snapshots;
};

class Lives {
 public:
  explicit Lives(std::uint64_t seed) : files_(MemoryFileSystem::Options{.seed = seed}), rng_(seed) {
    topics_ = {{"c", true, false}, {"d", false, true}, {"b", true, true}, {"m", true, false}};
  }

  void live(int lives) {
    for (int life = 0; life < lives && !::testing::Test::HasFailure(); ++life) {
      SCOPED_TRACE("life " + std::to_string(life));
      plan(rng_.chance(1, 4) ? kNever : rng_.below(600));
      if (start()) {
        const auto steps = rng_.below(60);
        for (std::uint64_t i = 0; i < steps && !files_.power_is_off(); ++i) {
          step();
        }
        if (!files_.power_is_off() && rng_.chance(1, 3)) {
          (void)log_->close().ok();
        }
      }
      end();
    }
    plan(kNever);
    ASSERT_TRUE(start());
  }

 private:
  LogDirectoryOptions options() {
    LogDirectoryOptions options;
    options.files = &files_;
    options.clock = &clock_;
    options.seed = rng_.next();
    options.tail_cache_bytes = rng_.chance(1, 2) ? 0 : 2000;
    options.wal.file_bytes_min = 16U << 10U;
    options.wal.file_bytes_max = 32U << 10U;
    options.wal.total_bytes_max = 128U << 10U;
    options.wal.checkpoint_bytes = 48U << 10U;
    options.cleaner.backoff_ms = 100;
    options.cleaner.retention_check_interval_ms = 500;
    options.cleaner.io_bytes_per_second = 1 << 30;
    options.cleaner.dedupe_buffer_bytes = rng_.chance(1, 2) ? 1024 : 1U << 16U;
    return options;
  }

  // False when it died on the way.
  bool start() {
    auto opened = LogDirectory::open("data", options());
    if (!opened.ok()) {
      EXPECT_TRUE(files_.power_is_off()) << opened.error().to_string();
      return false;
    }
    log_ = *std::move(opened);
    if (!made_ && !make_topics()) {
      return false;
    }
    if (files_.power_is_off()) {
      return false;
    }
    // What looks at it is not cut short.
    const std::uint64_t left = end_at_ - files_.operations();
    plan(kNever);
    check();
    plan(left);
    return true;
  }

  void plan(std::uint64_t changes) {
    end_at_ = files_.operations() + changes;
    files_.cut_power_at(changes);
  }

  bool make_topics() {
    for (const Topic& topic : topics_) {
      TopicConfig config{{"segment.bytes", "400"},
                         {"index.interval.bytes", "100"},
                         {"min.cleanable.dirty.ratio", "0.1"},
                         {"delete.retention.ms", "300"},
                         {"retention.ms", "-1"}};
      config["cleanup.policy"] = topic.compacts && topic.deletes ? "compact,delete"
                                 : topic.compacts                ? "compact"
                                                                 : "delete";
      if (topic.deletes) {
        config["retention.bytes"] = std::to_string(kRetentionBytes);
      }
      if (topic.name == "m") {
        config["weir.durability"] = "memory";
      }
      const auto made = log_->create_topic({topic.name, 1, config});
      if (!made.ok() && made.error().code() != Errc::kTopicExists) {
        return false;
      }
    }
    made_ = true;
    return true;
  }

  void end() {
    log_.reset();
    while (files_.run_submitted() > 0) {
    }
    if (rng_.chance(1, 2)) {
      files_.process_crash();
    } else {
      files_.power_cut();
    }
  }

  void step() {
    clock_.advance(std::chrono::milliseconds(rng_.below(150)));
    Topic& topic = topics_[rng_.below(topics_.size())];
    if (rng_.chance(1, 4)) {
      log_->cleaner_step();
    } else if (rng_.chance(1, 12)) {
      (void)log_->checkpoint().ok();
    } else if (rng_.chance(1, 40)) {
      (void)log_->clean_now().ok();
    } else if (rng_.chance(1, 30)) {
      log_->scrub_step();
    } else {
      append(topic);
    }
  }

  void append(Topic& topic) {
    const auto partition = log_->partition_for_append({topic.name, PartitionId(0)});
    if (!partition.ok()) {
      EXPECT_TRUE(files_.power_is_off()) << partition.error().to_string();
      return;
    }
    std::vector<TestRecord> records(1 + rng_.below(3));
    for (TestRecord& record : records) {
      record.key = "k" + std::to_string(rng_.below(8));
      if (!rng_.chance(1, 4)) {
        record.value = std::to_string(next_value_++) + std::string(rng_.below(50), 'v');
      }
      record.timestamp = clock_.now();
    }
    const Result<Partition::Appended> appended =
        (*partition)->append(batch_of(records), AppendOrigin::kBuilder);
    if (!appended.ok()) {
      EXPECT_TRUE(files_.power_is_off()) << appended.error().to_string();
      return;
    }
    EXPECT_EQ(appended->base_offset, topic.end);
    for (std::size_t i = 0; i < records.size(); ++i) {
      const std::int64_t offset = topic.end.value() + static_cast<std::int64_t>(i);
      topic.written[offset] = {offset, records[i].timestamp, records[i].key, records[i].value};
    }
    topic.end = appended->next_offset;
    if (rng_.chance(1, 2) &&
        await_high_watermark(*partition, topic.end, std::chrono::seconds(5)).ok() &&
        topic.name != "m") {
      topic.acknowledged = topic.end;
    }
  }

  Table table_at(const Topic& topic, Offset end) const {
    Table table;
    for (const auto& [offset, record] : topic.written) {
      if (offset < end.value()) {
        apply(table, record);
      }
    }
    return table;
  }

  void check() {
    for (Topic& topic : topics_) {
      SCOPED_TRACE(topic.name);
      const auto partition = log_->partition({topic.name, PartitionId(0)});
      if (!partition.ok()) {
        EXPECT_TRUE(files_.power_is_off()) << partition.error().to_string();
        return;
      }
      check(topic, **partition);
      if (files_.power_is_off() || ::testing::Test::HasFailure()) {
        return;
      }
    }
    for (const PartitionRecovery& one : log_->recovery().partitions) {
      EXPECT_TRUE(one.failure.ok());
      EXPECT_TRUE(one.damaged.empty()) << one.name.to_string() << ": " << one.damaged.front();
    }
  }

  void check(Topic& topic, Partition& partition) {
    const PartitionOffsets at = partition.offsets();
    EXPECT_GE(at.log_end, topic.acknowledged);
    EXPECT_LE(at.log_end, topic.end);
    topic.end = at.log_end;
    topic.written.erase(topic.written.lower_bound(at.log_end.value()), topic.written.end());
    std::erase_if(topic.snapshots, [&](const auto& one) { return one.first > at.log_end; });
    const SeenLog seen = testing::see(partition);
    if (files_.power_is_off()) {
      return;
    }
    for (const SeenRecord& record : seen.records) {
      const auto known = topic.written.find(record.offset);
      ASSERT_NE(known, topic.written.end()) << record.offset;
      EXPECT_EQ(record, known->second);
    }
    EXPECT_GE(at.log_start, topic.start);
    topic.start = at.log_start;
    if (!topic.deletes) {
      EXPECT_EQ(at.log_start, Offset(0));
    } else {
      std::uint64_t bytes = 0;
      for (const auto& segment : partition.segments()) {
        bytes += segment->size_bytes();
      }
      EXPECT_TRUE(at.log_start == Offset(0) || topic.compacts ||
                  bytes >= static_cast<std::uint64_t>(kRetentionBytes))
          << bytes;
    }
    if (!topic.compacts) {
      EXPECT_EQ(static_cast<std::int64_t>(seen.records.size()),
                at.log_end.value() - at.log_start.value());
      return;
    }
    const Table now = table_at(topic, at.log_end);
    if (!topic.deletes) {
      EXPECT_EQ(testing::table_of(seen.records), now);
    }
    const Offset horizon = log_->tombstone_horizon(partition).value();
    EXPECT_GE(horizon, topic.horizon);
    topic.horizon = horizon;
    for (const auto& [position, before] : topic.snapshots) {
      if (position < horizon || position < at.log_start) {
        continue;
      }
      Table table = before;
      for (const SeenRecord& record : seen.records) {
        if (record.offset >= position.value()) {
          apply(table, record);
        }
      }
      EXPECT_EQ(table, now) << "from " << position.value();
    }
    // What a store would have checkpointed.
    topic.snapshots.emplace_back(topic.name == "m" ? Offset(0) : at.log_end,
                                 topic.name == "m" ? Table() : now);
    if (topic.snapshots.size() > 5) {
      topic.snapshots.erase(topic.snapshots.begin() + static_cast<std::ptrdiff_t>(rng_.below(5)));
    }
  }

  MemoryFileSystem files_;
  Rng rng_;
  ManualClock clock_{testing::kStart};
  std::unique_ptr<LogDirectory> log_;
  std::vector<Topic> topics_;
  std::uint64_t end_at_ = kNever;
  bool made_ = false;
  std::int64_t next_value_ = 0;
};

class CleanerLives : public ::testing::TestWithParam<int> {};

TEST_P(CleanerLives, LoseNothingButWhatThePolicySays) {
  set_log_level(LogLevel::kOff);
  const std::uint64_t seed =
      weir::testing::seed_of_run() + static_cast<std::uint64_t>(GetParam()) * 1'000'003;
  SCOPED_TRACE("WEIR_TEST_SEED for shard 0: " + std::to_string(seed));
  const int runs = weir::testing::rounds(12, 1500);
  for (int run = 0; run < runs && !HasFailure(); ++run) {
    SCOPED_TRACE("run " + std::to_string(run));
    Lives(seed + static_cast<std::uint64_t>(run) * 7).live(12);
  }
  set_log_level(LogLevel::kInfo);
}

INSTANTIATE_TEST_SUITE_P(Shard, CleanerLives, ::testing::Range(0, 2));

}  // namespace
}  // namespace weir::log
