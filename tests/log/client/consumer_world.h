#pragma once

#include "tests/support/log_fixture.h"

#include <weir/log/consumer.h>
#include <weir/runtime/testing/memory_backend.h>

#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <utility>
#include <vector>

namespace weir::log::testing {

using Values = std::vector<std::string>;

inline const TopicPartition kLines{"lines", PartitionId(0)};

// The log that a consumer reads: the embedded one on a disk in memory, or MemoryBackend.
class ConsumerWorld {
 public:
  enum class Kind { kEmbedded, kMemory };

  explicit ConsumerWorld(Kind kind) {
    if (kind == Kind::kMemory) {
      memory_ = std::make_unique<weir::testing::MemoryBackend>(fixture_.clock);
    } else {
      fixture_.open();
    }
  }

  Backend& log() { return memory_ ? static_cast<Backend&>(*memory_) : *fixture_.log; }
  weir::testing::ManualClock& clock() { return fixture_.clock; }
  weir::testing::LogFixture& fixture() { return fixture_; }

  void create(const std::string& topic = "lines", std::int32_t partitions = 1,
              TopicConfig config = {}) {
    const auto made = log().admin().create_topic({topic, partitions, std::move(config)});
    EXPECT_TRUE(made.ok()) << made.error().to_string();
  }
  // Makes the topic anew.
  void replace(const std::string& topic = "lines") {
    EXPECT_TRUE(log().admin().delete_topic(topic).ok());
    create(topic);
  }
  // One batch, acknowledged, stamped now.
  void send(const Values& values, const TopicPartition& to = kLines) {
    auto sink = log().make_sink({}).value();
    const SinkTopic topic = sink->open_topic(to.topic)->handle;
    std::vector<RecordRef> records;
    for (const std::string& value : values) {
      records.push_back({{}, ByteView(value), clock().now(), {}});
    }
    const Status sent = sink->send(topic, to.partition, records);
    EXPECT_TRUE(sent.ok()) << sent.error().to_string();
    EXPECT_TRUE(sink->flush().ok());
  }
  void delete_before(std::int64_t offset) {
    const Status deleted = log().admin().delete_records(kLines, Offset(offset));
    EXPECT_TRUE(deleted.ok()) << deleted.error().to_string();
  }
  void commit(const std::string& group, std::int64_t offset, LeaderEpoch epoch = kNoLeaderEpoch) {
    const std::pair<TopicPartition, CommittedOffset> one{kLines, {Offset(offset), epoch, ""}};
    const Status committed = log().make_group(group).value()->commit({&one, 1});
    EXPECT_TRUE(committed.ok()) << committed.error().to_string();
  }
  std::int64_t committed(const std::string& group, const TopicPartition& partition = kLines) {
    const auto found = log().make_group(group).value()->committed({&partition, 1}).value()[0];
    return found ? found->offset.value() : -1;
  }

  ConsumerOptions options(const std::string& group, const std::string& reset) {
    ConsumerOptions result;
    result.group_id = group;
    result.auto_offset_reset = reset;
    result.clock = &clock();
    return result;
  }
  std::unique_ptr<Consumer> open(ConsumerOptions options) {
    auto consumer = Consumer::open(log(), std::move(options));
    EXPECT_TRUE(consumer.ok()) << consumer.error().to_string();
    return std::move(*consumer);
  }
  std::unique_ptr<Consumer> open(const std::string& group, const std::string& reset) {
    return open(options(group, reset));
  }
  // Assigned to kLines.
  std::unique_ptr<Consumer> reader(const std::string& group, const std::string& reset) {
    auto consumer = open(group, reset);
    EXPECT_TRUE(consumer->assign({kLines}).ok());
    return consumer;
  }

 private:
  weir::testing::LogFixture fixture_;
  std::unique_ptr<weir::testing::MemoryBackend> memory_;
};

inline Values values_of(const ConsumerRecords& records) {
  Values values;
  for (const auto& [partition, record] : records) {
    values.emplace_back(record.value.view());
  }
  return values;
}

// What one poll gives that does not wait.
inline Values poll(Consumer& consumer) {
  const auto records = consumer.poll(Duration::zero());
  EXPECT_TRUE(records.ok()) << records.error().to_string();
  return records.ok() ? values_of(*records) : Values{};
}

// What polls give until one gives nothing.
inline Values poll_all(Consumer& consumer) {
  Values all;
  for (Values some = poll(consumer); !some.empty(); some = poll(consumer)) {
    all.insert(all.end(), some.begin(), some.end());
  }
  return all;
}

inline Errc poll_error(Consumer& consumer) {
  const auto records = consumer.poll(Duration::zero());
  EXPECT_FALSE(records.ok());
  return records.ok() ? Errc::kInternal : records.error().code();
}

// Remembers what it was told.
class Listener : public GroupListener {
 public:
  void on_assigned(std::span<const TopicPartition> partitions) override {
    note("assigned", partitions);
  }
  void on_revoked(std::span<const TopicPartition> partitions) override {
    note("revoked", partitions);
  }
  void on_lost(std::span<const TopicPartition> partitions) override { note("lost", partitions); }
  // What was called since the last take().
  Values take() { return std::exchange(calls_, {}); }

 private:
  void note(const std::string& call, std::span<const TopicPartition> partitions) {
    std::string text = call;
    for (const TopicPartition& partition : partitions) {
      text += " " + partition.to_string();
    }
    calls_.push_back(std::move(text));
  }
  Values calls_;
};

class OnBothLogs : public ::testing::TestWithParam<ConsumerWorld::Kind> {
 protected:
  ConsumerWorld world_{GetParam()};
};

inline std::string kind_name(const ::testing::TestParamInfo<ConsumerWorld::Kind>& kind) {
  return kind.param == ConsumerWorld::Kind::kEmbedded ? "embedded" : "memory";
}

inline auto both_logs() {
  return ::testing::Values(ConsumerWorld::Kind::kEmbedded, ConsumerWorld::Kind::kMemory);
}

}  // namespace weir::log::testing
