#pragma once

#include <weir/log/consumer.h>
#include <weir/log/embedded_log.h>
#include <weir/runtime/testing/manual_clock.h>
#include <weir/runtime/testing/memory_file_system.h>

#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <utility>
#include <vector>

namespace weir::testing {

// An embedded log on a disk in memory, with small verbs. Every failure of a verb fails the test.
class LogFixture {
 public:
  explicit LogFixture(std::uint64_t seed = 1)
      : files(std::make_unique<MemoryFileSystem>(MemoryFileSystem::Options{.seed = seed})) {}

  void open(bool read_only = false) { log = open_one(read_only); }
  std::unique_ptr<log::EmbeddedLog> open_one(bool read_only) {
    auto opened = log::EmbeddedLog::open("data", options(read_only));
    EXPECT_TRUE(opened.ok()) << (opened.ok() ? "" : opened.error().to_string());
    return opened.ok() ? std::move(*opened) : nullptr;
  }
  log::EmbeddedLogOptions options(bool read_only = false) {
    log::EmbeddedLogOptions result;
    result.files = files.get();
    result.clock = &clock;
    result.background = false;
    result.read_only = read_only;
    result.seed = 42;
    result.wal_file_bytes_min = 32U << 10U;
    result.wal_file_bytes_max = 64U << 10U;
    result.wal_bytes_max = 256U << 10U;
    result.disk_reserve_bytes = 64U << 10U;
    return result;
  }
  void close() {
    const Status closed = log->close();
    EXPECT_TRUE(closed.ok()) << closed.error().to_string();
    log.reset();
  }
  // As kill -9: what the page cache has survives.
  void crash() {
    files->process_crash();
    log.reset();
  }
  void cut_power() {
    files->power_cut();
    log.reset();
  }
  TopicDescription create(const std::string& topic, std::int32_t partitions = 1,
                          TopicConfig config = {}) {
    auto made = log->admin().create_topic({topic, partitions, std::move(config)});
    EXPECT_TRUE(made.ok()) << (made.ok() ? "" : made.error().to_string());
    return made.ok() ? *made : TopicDescription{};
  }
  // Sends and waits for the acknowledgement.
  void send(const std::string& topic, const std::vector<std::string>& values,
            std::int32_t partition = 0) {
    auto sink = log->make_sink({}).value();
    const SinkTopicInfo info = sink->open_topic(topic).value();
    // A compacted topic refuses records without a key.
    const TopicConfig config = log->admin().describe_topic(topic).value().config;
    const auto policy = config.find("cleanup.policy");
    const bool has_keys = policy != config.end() && policy->second != "delete";
    for (const std::string& value : values) {
      const RecordRef record{
          has_keys ? NullableBytes(value) : NullableBytes(), ByteView(value), clock.now(), {}};
      const Status sent = sink->send(info.handle, PartitionId(partition), {&record, 1});
      EXPECT_TRUE(sent.ok()) << sent.error().to_string();
    }
    const auto flushed = sink->flush();
    EXPECT_TRUE(flushed.ok()) << (flushed.ok() ? "" : flushed.error().to_string());
  }
  std::vector<std::string> read(const std::string& topic, std::int32_t partition = 0,
                                std::int64_t from = 0) {
    return read_from(*log, topic, partition, from);
  }
  static std::vector<std::string> read_from(log::EmbeddedLog& log, const std::string& topic,
                                            std::int32_t partition = 0, std::int64_t from = 0) {
    auto source = log.make_source({}).value();
    EXPECT_TRUE(source->assign({{topic, PartitionId(partition)}}).ok());
    EXPECT_TRUE(source->seek(0, Offset(from)).ok());
    std::vector<std::string> values;
    for (;;) {
      auto blocks = source->poll(Duration::zero());
      EXPECT_TRUE(blocks.ok()) << (blocks.ok() ? "" : blocks.error().to_string());
      if (!blocks.ok() || blocks->empty()) {
        return values;
      }
      for (const RecordBlock& block : *blocks) {
        EXPECT_TRUE(block.status.ok()) << block.status.error().to_string();
        if (!block.status.ok()) {
          return values;
        }
        for (const RecordView& record : block.records) {
          values.emplace_back(record.value.view_or_empty());
        }
      }
    }
  }

  std::unique_ptr<MemoryFileSystem> files;
  ManualClock clock;
  std::unique_ptr<log::EmbeddedLog> log;
};

}  // namespace weir::testing
