#include "tests/support/log_fixture.h"

#include <weir/log/producer.h>
#include <weir/runtime/murmur2.h>

#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <mutex>

namespace weir::log {
namespace {

using testing::LogFixture;
using Values = std::vector<std::string>;

ProducerRecord record(const std::string& topic, ByteView value, NullableBytes key = {}) {
  ProducerRecord result;
  result.topic = topic;
  result.key = key;
  result.value = value;
  return result;
}

std::unique_ptr<Producer> open(LogFixture& f, const ProducerOptions& options) {
  auto producer = Producer::open(*f.log, options);
  EXPECT_TRUE(producer.ok());
  return std::move(*producer);
}

// Collects what callbacks say; they run on the producer's thread.
class Answers {
 public:
  Producer::Callback next() {
    return [this](const Result<RecordMetadata>& answer) {
      const std::lock_guard<std::mutex> lock(mutex_);
      if (answer.ok()) {
        offsets_.push_back(answer->offset.value());
      } else {
        errors_.push_back(answer.error().code());
      }
    };
  }
  std::vector<std::int64_t> offsets() {
    const std::lock_guard<std::mutex> lock(mutex_);
    return offsets_;
  }
  std::vector<Errc> errors() {
    const std::lock_guard<std::mutex> lock(mutex_);
    return errors_;
  }

 private:
  std::mutex mutex_;
  std::vector<std::int64_t> offsets_;
  std::vector<Errc> errors_;
};

std::size_t batches_of(LogFixture& f, const std::string& topic) {
  auto source = f.log->make_source({}).value();
  EXPECT_TRUE(source->assign({{topic, PartitionId(0)}}).ok());
  EXPECT_TRUE(source->seek(0, Offset(0)).ok());
  return source->poll(Duration::zero())->size();
}

TEST(Producer, AcknowledgesInOrderWithOffsets) {
  LogFixture f;
  f.open();
  f.create("lines");
  Answers answers;
  const auto producer = open(f, {});
  for (const char* value : {"a", "b", "c"}) {
    ASSERT_TRUE(producer->send(record("lines", value), answers.next()).ok());
  }

  ASSERT_TRUE(producer->flush().ok());

  EXPECT_EQ(answers.offsets(), (std::vector<std::int64_t>{0, 1, 2}));
  EXPECT_EQ(f.read("lines"), (Values{"a", "b", "c"}));
}

TEST(Producer, PutsLingeringRecordsInOneBatch) {
  LogFixture f;
  f.open();
  f.create("lines");
  ProducerOptions options;
  options.linger_ms = 3'600'000;  // flush() ends it
  const auto producer = open(f, options);
  for (int i = 0; i < 10; ++i) {
    ASSERT_TRUE(producer->send(record("lines", "value")).ok());
  }
  EXPECT_EQ(batches_of(f, "lines"), 0U);

  ASSERT_TRUE(producer->flush().ok());

  EXPECT_EQ(batches_of(f, "lines"), 1U);
  EXPECT_EQ(f.read("lines").size(), 10U);
}

TEST(Producer, SealsABatchThatIsFull) {
  LogFixture f;
  f.open();
  f.create("lines");
  ProducerOptions options;
  options.linger_ms = 3'600'000;
  options.batch_size = 512;
  const auto producer = open(f, options);
  const std::string value(200, 'x');
  for (int i = 0; i < 5; ++i) {
    ASSERT_TRUE(producer->send(record("lines", value)).ok());
  }
  ASSERT_TRUE(producer->flush().ok());

  EXPECT_EQ(batches_of(f, "lines"), 3U);
}

TEST(Producer, WritesEachRecordByItselfWithoutBatches) {
  LogFixture f;
  f.open();
  f.create("lines");
  ProducerOptions options;
  options.batch_size = 0;
  const auto producer = open(f, options);
  for (int i = 0; i < 3; ++i) {
    ASSERT_TRUE(producer->send(record("lines", "v")).ok());
  }
  ASSERT_TRUE(producer->flush().ok());

  EXPECT_EQ(batches_of(f, "lines"), 3U);
}

TEST(Producer, SendsAKeyWhereJavaSendsIt) {
  LogFixture f;
  f.open();
  f.create("lines", 12);
  const auto producer = open(f, {});
  // kafka-protocol 3.5: key to partition of 12.
  const std::map<std::string, int> expected{
      {"a", 4}, {"user-1", 8}, {"session-42", 10}, {"foobar", 6}, {"21", 0}};
  for (const auto& [key, partition] : expected) {
    ASSERT_TRUE(producer->send(record("lines", key, ByteView(key))).ok());
  }
  ASSERT_TRUE(producer->flush().ok());

  for (const auto& [key, partition] : expected) {
    const Values values = f.read("lines", partition);
    EXPECT_NE(std::find(values.begin(), values.end(), key), values.end()) << key;
  }
}

TEST(Producer, StaysOnAPartitionUntilABatchWentThere) {
  LogFixture f;
  f.open();
  f.create("lines", 4);
  ProducerOptions options;
  options.batch_size = 1000;
  const auto producer = open(f, options);
  const std::string value(100, 'x');
  for (int i = 0; i < 200; ++i) {
    ASSERT_TRUE(producer->send(record("lines", value)).ok());
  }
  ASSERT_TRUE(producer->flush().ok());

  std::size_t total = 0;
  for (int i = 0; i < 4; ++i) {
    const std::size_t count = f.read("lines", i).size();
    total += count;
    EXPECT_LT(count, 200U) << "all went to partition " << i;
  }
  EXPECT_EQ(total, 200U);
}

TEST(Producer, BlocksAtItsMemoryBoundAndThenTimesOut) {
  LogFixture f;
  f.open();
  f.create("lines");
  ProducerOptions options;
  options.buffer_memory = 2000;
  options.max_block_ms = 1;
  options.batch_size = 0;
  f.files->hold_submits(true);
  {
    const auto producer = open(f, options);
    const std::string value(900, 'x');
    Answers answers;
    ASSERT_TRUE(producer->send(record("lines", value), answers.next()).ok());
    ASSERT_TRUE(producer->send(record("lines", value), answers.next()).ok());

    const Status third = producer->send(record("lines", value), answers.next());

    ASSERT_FALSE(third.ok());
    EXPECT_EQ(third.error().code(), Errc::kTimedOut);
    EXPECT_NE(third.error().message().find("buffer.memory"), std::string::npos);
    EXPECT_TRUE(answers.offsets().empty());  // nothing is durable yet
    f.files->hold_submits(false);
    f.files->run_submitted();
    ASSERT_TRUE(producer->flush().ok());
    EXPECT_EQ(answers.offsets(), (std::vector<std::int64_t>{0, 1}));
    EXPECT_TRUE(producer->send(record("lines", value)).ok());
  }
  EXPECT_EQ(f.read("lines").size(), 3U);
}

TEST(Producer, AcknowledgesTheAppendWithAcks1) {
  LogFixture f;
  f.open();
  f.create("lines");
  f.files->hold_submits(true);
  ProducerOptions options;
  options.acks_all = false;
  const auto producer = open(f, options);
  Answers answers;
  ASSERT_TRUE(producer->send(record("lines", "a"), answers.next()).ok());

  ASSERT_TRUE(producer->flush().ok());

  EXPECT_EQ(answers.offsets(), (std::vector<std::int64_t>{0}));
  EXPECT_EQ(f.read("lines"), Values{});  // below the high watermark only when it is on disk
  f.files->hold_submits(false);
  f.files->run_submitted();
  EXPECT_EQ(f.read("lines"), (Values{"a"}));
}

TEST(Producer, RefusesWhatDoesNotFitAndTakesTheNext) {
  LogFixture f;
  f.open();
  f.create("lines", 1, {{"max.message.bytes", "1000"}});
  const auto producer = open(f, {});
  const std::string large(2000, 'x');

  const Status sent = producer->send(record("lines", large));

  ASSERT_FALSE(sent.ok());
  EXPECT_EQ(sent.error().code(), Errc::kRecordTooLarge);
  EXPECT_NE(sent.error().message().find("max.message.bytes"), std::string::npos);
  ASSERT_TRUE(producer->send(record("lines", "a")).ok());
  ASSERT_TRUE(producer->flush().ok());
  EXPECT_EQ(f.read("lines"), (Values{"a"}));
}

TEST(Producer, NamesUnknownTopicsAndPartitions) {
  LogFixture f;
  f.open();
  f.create("lines");
  const auto producer = open(f, {});

  EXPECT_EQ(producer->send(record("nothing", "a")).error().code(), Errc::kUnknownTopic);
  ProducerRecord outside = record("lines", "a");
  outside.partition = PartitionId(1);
  EXPECT_EQ(producer->send(outside).error().code(), Errc::kUnknownTopic);
}

TEST(Producer, TellsCallbacksOfADeletedTopic) {
  LogFixture f;
  f.open();
  f.create("lines");
  ProducerOptions options;
  options.linger_ms = 3'600'000;
  const auto producer = open(f, options);
  Answers answers;
  ASSERT_TRUE(producer->send(record("lines", "lost"), answers.next()).ok());
  ASSERT_TRUE(f.log->admin().delete_topic("lines").ok());
  f.create("lines");

  ASSERT_TRUE(producer->send(record("lines", "new"), answers.next()).ok());

  EXPECT_FALSE(producer->flush().ok());
  EXPECT_EQ(answers.errors(), (std::vector<Errc>{Errc::kUnknownTopic}));
  EXPECT_EQ(answers.offsets(), (std::vector<std::int64_t>{0}));
  EXPECT_EQ(f.read("lines"), (Values{"new"}));
}

TEST(Producer, ReportsAFailedAppendOnceByFlush) {
  LogFixture f;
  f.open();
  f.create("lines");
  const auto producer = open(f, {});
  f.files->set_fault([](testing::MemoryFileSystem::Operation operation, const std::string& path) {
    const bool full = operation == testing::MemoryFileSystem::Operation::kWrite &&
                      path.find("lines-0") != std::string::npos;
    return full ? Status(Error(Errc::kNoSpace, "write " + path + ": No space left on device"))
                : Status();
  });
  Answers answers;
  ASSERT_TRUE(producer->send(record("lines", "a"), answers.next()).ok());

  const Status flushed = producer->flush();

  ASSERT_FALSE(flushed.ok());
  EXPECT_EQ(flushed.error().code(), Errc::kNoSpace);
  EXPECT_EQ(answers.errors(), (std::vector<Errc>{Errc::kNoSpace}));
  f.files->set_fault(nullptr);
  ASSERT_TRUE(producer->send(record("lines", "b"), answers.next()).ok());
  EXPECT_TRUE(producer->flush().ok());
  EXPECT_EQ(f.read("lines"), (Values{"b"}));
}

TEST(Producer, ReadsItsSettingsByKafkasNames) {
  const auto options =
      ProducerOptions::parse({{"acks", "1"}, {"linger.ms", "0"}, {"batch.size", "100"}});
  ASSERT_TRUE(options.ok());
  EXPECT_FALSE(options->acks_all);
  EXPECT_EQ(options->linger_ms, 0);
  EXPECT_EQ(options->batch_size, 100);

  const auto wrong = ProducerOptions::parse({{"ack", "all"}, {"linger.ms", "-1"}});
  ASSERT_FALSE(wrong.ok());
  EXPECT_NE(wrong.error().message().find("acks"), std::string::npos);
  EXPECT_NE(wrong.error().message().find("linger.ms"), std::string::npos);
}

}  // namespace
}  // namespace weir::log
