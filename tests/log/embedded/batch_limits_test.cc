#include "tests/support/log_fixture.h"

#include <weir/log/embedded_log.h>
#include <weir/log/producer.h>

#include <gtest/gtest.h>

#include <string>
#include <vector>

// Topics whose batches must be smaller than the sender's batch.size.

namespace weir::log {
namespace {

using testing::LogFixture;

constexpr int kRecords = 300;

std::string value_of(int number) {
  return std::to_string(number) + std::string(90, 'v');  // 300 of them are about 30 KB
}

std::vector<std::string> values() {
  std::vector<std::string> all;
  for (int i = 0; i < kRecords; ++i) {
    all.push_back(value_of(i));
  }
  return all;
}

class BatchLimits : public ::testing::TestWithParam<const char*> {
 protected:
  void SetUp() override {
    f_.open();
    f_.create("lines", 1, {{GetParam(), "2000"}});
  }
  LogFixture f_;
};

TEST_P(BatchLimits, SinkCutsBatchesToWhatTheTopicTakes) {
  auto sink = f_.log->make_sink({}).value();
  const SinkTopicInfo info = sink->open_topic("lines").value();
  for (const std::string& value : values()) {
    const RecordRef record{{}, ByteView(value), f_.clock.now(), {}};
    ASSERT_TRUE(sink->send(info.handle, PartitionId(0), {&record, 1}).ok());
  }

  const auto flushed = sink->flush();

  ASSERT_TRUE(flushed.ok()) << flushed.error().to_string();
  EXPECT_EQ(f_.read("lines"), values());
}

TEST_P(BatchLimits, ProducerCutsBatchesToWhatTheTopicTakes) {
  ProducerOptions options;
  options.linger_ms = 3'600'000;
  const auto producer = Producer::open(*f_.log, options).value();
  for (const std::string& value : values()) {
    ProducerRecord record;
    record.topic = "lines";
    record.value = ByteView(value);
    ASSERT_TRUE(producer->send(record).ok());
  }

  const Status flushed = producer->flush();

  ASSERT_TRUE(flushed.ok()) << flushed.error().to_string();
  EXPECT_EQ(f_.read("lines"), values());
}

TEST_P(BatchLimits, RefusesARecordThatIsTooLargeAndNamesTheSetting) {
  const std::string large(3000, 'x');
  auto sink = f_.log->make_sink({}).value();
  const SinkTopicInfo info = sink->open_topic("lines").value();
  const RecordRef too_large{{}, ByteView(large), f_.clock.now(), {}};

  const Status by_sink = sink->send(info.handle, PartitionId(0), {&too_large, 1});
  const auto producer = Producer::open(*f_.log, {}).value();
  ProducerRecord record;
  record.topic = "lines";
  record.value = ByteView(large);
  const Status by_producer = producer->send(record);

  for (const Status* refused : {&by_sink, &by_producer}) {
    ASSERT_FALSE(refused->ok());
    EXPECT_EQ(refused->error().code(), Errc::kRecordTooLarge);
    EXPECT_NE(refused->error().message().find(GetParam()), std::string::npos)
        << refused->error().to_string();
  }
}

INSTANTIATE_TEST_SUITE_P(By, BatchLimits, ::testing::Values("max.message.bytes", "segment.bytes"),
                         [](const auto& instance) {
                           return std::string(instance.param) == "segment.bytes" ? "SegmentBytes"
                                                                                 : "MessageBytes";
                         });

}  // namespace
}  // namespace weir::log
