#include "tests/log/client/consumer_world.h"
#include "tests/support/size_of_run.h"

#include <weir/runtime/rng.h>

#include <array>
#include <cstdio>
#include <deque>

// Several groups over one log: random polls, seeks, pauses, commits, appends, deletions and
// restarts against a reference that keeps a list of values and three numbers a partition.

namespace weir::log {
namespace {

using testing::ConsumerWorld;
using testing::kind_name;
using testing::Values;

constexpr std::int32_t kPartitions = 3;
constexpr std::size_t kGroups = 3;
constexpr Duration kInterval = std::chrono::seconds(5);

TopicPartition partition(std::int32_t index) {
  return {"lines", PartitionId(index)};
}

struct ModelLog {
  Values values;  // by offset
  std::int64_t start = 0;
  std::int64_t end() const { return static_cast<std::int64_t>(values.size()); }
};
using ModelLogs = std::array<ModelLog, kPartitions>;

enum class Where { kCommitted, kBeginning, kEnd, kKnown };

struct ModelPosition {
  Where where = Where::kCommitted;
  std::int64_t position = -1;
  std::int64_t committed = -1;
  bool paused = false;
};

// One group with its one consumer, and what both must be.
class Member {
 public:
  Member(ConsumerWorld& world, ModelLogs& logs, Rng& rng, std::string name)
      : world_(world), logs_(logs), rng_(rng), name_(std::move(name)) {
    open();
  }

  void step() {
    const std::uint64_t dice = rng_.below(100);
    if (dice < 45) {
      poll();
    } else if (dice < 60) {
      seek();
    } else if (dice < 72) {
      pause_or_resume();
    } else if (dice < 90) {
      commit();
    } else if (dice < 96) {
      look_at_positions();
    } else {
      restart();
    }
  }

  void expect_commits() {
    for (std::int32_t i = 0; i < kPartitions; ++i) {
      const auto committed = consumer_->committed(partition(i));
      ASSERT_TRUE(committed.ok());
      EXPECT_EQ(*committed ? (*committed)->offset.value() : -1, at(i).committed)
          << name_ << " " << i;
    }
  }

  // Reads the rest: every record from the position on, once, in order.
  void read_to_the_end() {
    for (std::int32_t i = 0; i < kPartitions; ++i) {
      ASSERT_TRUE(consumer_->resume({partition(i)}).ok());
      at(i).paused = false;
    }
    for (int i = 0; i < 10'000 && !::testing::Test::HasFailure(); ++i) {
      if (!poll()) {
        return;
      }
    }
    ADD_FAILURE() << name_ << " never came to the end";
  }

 private:
  ModelPosition& at(std::int32_t index) { return positions_[static_cast<std::size_t>(index)]; }
  ModelLog& log(std::int32_t index) { return logs_[static_cast<std::size_t>(index)]; }

  void open() {
    ConsumerOptions options = world_.options(name_, "earliest");
    options.auto_commit = auto_commit_ = rng_.chance(1, 2);
    options.auto_commit_interval = kInterval;
    options.poll_records_max = records_max_ = 1 + rng_.below(7);
    options.poll_bytes_max = 1 + rng_.below(2000);
    options.partition_bytes_max = 1 + rng_.below(2000);
    consumer_ = world_.open(options);
    next_auto_commit_ = world_.clock().monotonic() + kInterval;
    for (std::int32_t i = 0; i < kPartitions; ++i) {
      at(i).where = Where::kCommitted;
      at(i).paused = false;
    }
    std::vector<TopicPartition> all;
    for (std::int32_t i = 0; i < kPartitions; ++i) {
      all.push_back(partition(i));
    }
    ASSERT_TRUE(consumer_->assign(all).ok());
  }

  void resolve(std::int32_t index) {
    ModelPosition& p = at(index);
    const ModelLog& l = log(index);
    if (p.where == Where::kCommitted) {
      p.position = p.committed >= 0 ? p.committed : l.start;
    } else if (p.where == Where::kBeginning) {
      p.position = l.start;
    } else if (p.where == Where::kEnd) {
      p.position = l.end();
    }
    p.where = Where::kKnown;
  }

  void commit_known() {
    for (std::int32_t i = 0; i < kPartitions; ++i) {
      if (at(i).where == Where::kKnown) {
        at(i).committed = at(i).position;
      }
    }
  }

  // Whether it gave records.
  bool poll() {
    if (auto_commit_ && world_.clock().monotonic() >= next_auto_commit_) {
      next_auto_commit_ = world_.clock().monotonic() + kInterval;
      commit_known();
    }
    for (std::int32_t i = 0; i < kPartitions; ++i) {
      resolve(i);
    }
    const auto records = consumer_->poll(Duration::zero());
    EXPECT_TRUE(records.ok()) << records.error().to_string();
    if (!records.ok()) {
      return false;
    }
    EXPECT_LE(records->count(), records_max_);
    for (const auto& [name, record] : *records) {
      take(name.partition.value(), record);
    }
    for (std::int32_t i = 0; i < kPartitions; ++i) {
      expect_position_behind_poll(i, records->empty());
    }
    return !records->empty();
  }

  void take(std::int32_t index, const RecordView& record) {
    ModelPosition& p = at(index);
    EXPECT_FALSE(p.paused) << name_ << " " << index;
    if (p.position < log(index).start && record.offset.value() != p.position) {
      p.position = log(index).start;  // what was deleted meanwhile is left out
    }
    ASSERT_EQ(record.offset.value(), p.position) << name_ << " " << index;
    EXPECT_EQ(record.value.view(), log(index).values[static_cast<std::size_t>(p.position)]);
    ++p.position;
  }

  void expect_position_behind_poll(std::int32_t index, bool nothing_came) {
    ModelPosition& p = at(index);
    const std::int64_t position = consumer_->position(partition(index))->value();
    if (p.position < log(index).start && position == log(index).start) {
      p.position = position;
    }
    EXPECT_EQ(position, p.position) << name_ << " " << index;
    if (nothing_came && !p.paused) {
      EXPECT_EQ(position, log(index).end()) << name_ << " " << index;
    }
  }

  void look_at_positions() {
    for (std::int32_t i = 0; i < kPartitions; ++i) {
      resolve(i);
      EXPECT_EQ(consumer_->position(partition(i))->value(), at(i).position) << name_ << " " << i;
    }
  }

  void seek() {
    const auto index = static_cast<std::int32_t>(rng_.below(kPartitions));
    ModelPosition& p = at(index);
    switch (rng_.below(4)) {
      case 0:
        p.where = Where::kBeginning;
        ASSERT_TRUE(consumer_->seek_to_beginning({partition(index)}).ok());
        return;
      case 1:
        p.where = Where::kEnd;
        ASSERT_TRUE(consumer_->seek_to_end({partition(index)}).ok());
        return;
      default:
        p.where = Where::kKnown;
        p.position = rng_.between(log(index).start, log(index).end());
        ASSERT_TRUE(consumer_->seek(partition(index), Offset(p.position)).ok());
    }
  }

  void pause_or_resume() {
    const auto index = static_cast<std::int32_t>(rng_.below(kPartitions));
    at(index).paused = rng_.chance(1, 2);
    ASSERT_TRUE((at(index).paused ? consumer_->pause({partition(index)})
                                  : consumer_->resume({partition(index)}))
                    .ok());
    std::vector<TopicPartition> paused;
    for (std::int32_t i = 0; i < kPartitions; ++i) {
      if (at(i).paused) {
        paused.push_back(partition(i));
      }
    }
    EXPECT_EQ(consumer_->paused(), paused);
  }

  void commit() {
    const auto index = static_cast<std::int32_t>(rng_.below(kPartitions));
    switch (rng_.below(3)) {
      case 0:
        ASSERT_TRUE(consumer_->commit().ok());
        commit_known();
        return;
      case 1:
        ASSERT_TRUE(consumer_->commit_async().ok());
        commit_known();
        return;
      default:
        at(index).committed = rng_.between(log(index).start, log(index).end());
        ASSERT_TRUE(consumer_
                        ->commit_async({{partition(index),
                                         {Offset(at(index).committed), kNoLeaderEpoch, "m"}}})
                        .ok());
    }
  }

  void restart() {
    if (rng_.chance(1, 2)) {
      ASSERT_TRUE(consumer_->close().ok());
      if (auto_commit_) {
        commit_known();
      }
    }
    consumer_.reset();
    open();
  }

  ConsumerWorld& world_;
  ModelLogs& logs_;
  Rng& rng_;
  const std::string name_;
  std::unique_ptr<Consumer> consumer_;
  std::array<ModelPosition, kPartitions> positions_;
  std::size_t records_max_ = 0;
  bool auto_commit_ = false;
  MonotonicTime next_auto_commit_{};
};

class Model {
 public:
  Model(ConsumerWorld::Kind kind, std::uint64_t seed) : rng_(seed), world_(kind) {
    world_.create("lines", kPartitions, {{"segment.bytes", "1000"}});
    for (std::size_t i = 0; i < kGroups; ++i) {
      members_.emplace_back(world_, logs_, rng_, "group" + std::to_string(i));
    }
  }

  void run(int steps) {
    for (int i = 0; i < steps && !::testing::Test::HasFailure(); ++i) {
      const std::uint64_t dice = rng_.below(100);
      if (dice < 20) {
        append();
      } else if (dice < 23) {
        delete_records();
      } else if (dice < 30) {
        world_.clock().advance(std::chrono::milliseconds(rng_.between(0, 6000)));
      } else {
        members_[rng_.below(kGroups)].step();
      }
      for (Member& member : members_) {
        member.expect_commits();  // of every group: no commit moves another's
      }
    }
    for (Member& member : members_) {
      member.read_to_the_end();
    }
  }

 private:
  void append() {
    const auto index = static_cast<std::int32_t>(rng_.below(kPartitions));
    ModelLog& log = logs_[static_cast<std::size_t>(index)];
    Values values;
    for (std::uint64_t i = 1 + rng_.below(12); i > 0; --i) {
      values.push_back(std::to_string(index) + ":" +
                       std::to_string(log.values.size() + values.size()));
    }
    world_.send(values, partition(index));
    log.values.insert(log.values.end(), values.begin(), values.end());
  }

  void delete_records() {
    const auto index = static_cast<std::int32_t>(rng_.below(kPartitions));
    ModelLog& log = logs_[static_cast<std::size_t>(index)];
    log.start = rng_.between(log.start, log.end());
    ASSERT_TRUE(world_.log().admin().delete_records(partition(index), Offset(log.start)).ok());
  }

  Rng rng_;
  ConsumerWorld world_;
  ModelLogs logs_;
  std::deque<Member> members_;
};

class ConsumerModel : public ::testing::TestWithParam<ConsumerWorld::Kind> {};

TEST_P(ConsumerModel, HoldsUnderRandomInterleavings) {
  const std::uint64_t seed = weir::testing::seed_of_run();
  const int runs = weir::testing::given_seed() ? 1 : weir::testing::rounds(8, 200);
  std::printf("seeds %llu to %llu\n", static_cast<unsigned long long>(seed),
              static_cast<unsigned long long>(seed) + static_cast<unsigned long long>(runs) - 1);
  for (int i = 0; i < runs && !HasFailure(); ++i) {
    const std::uint64_t one = seed + static_cast<std::uint64_t>(i);
    SCOPED_TRACE("run again with WEIR_TEST_SEED=" + std::to_string(one));
    Model(GetParam(), one).run(600);
  }
}

INSTANTIATE_TEST_SUITE_P(Log, ConsumerModel, testing::both_logs(), kind_name);

}  // namespace
}  // namespace weir::log
