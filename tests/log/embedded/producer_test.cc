#include "log/record/batch_header.h"
#include "tests/support/log_fixture.h"

#include <weir/log/producer.h>
#include <weir/runtime/murmur2.h>

#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <mutex>
#include <set>
#include <thread>

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
      all_.push_back(answer.ok() ? std::to_string(answer->offset.value())
                                 : std::string(errc_name(answer.error().code())));
    };
  }
  // Offsets and errors in the order they came.
  Values all() {
    const std::lock_guard<std::mutex> lock(mutex_);
    return all_;
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
  Values all_;
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
  {
    const auto producer = open(f, options);
    f.files->hold_submits(true);
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
  options.acks = Acks::kOne;
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

TEST(Producer, TellsWhereARecordWentAndHowLargeItWas) {
  LogFixture f;
  f.open();
  f.create("lines");
  f.create("stamped", 1, {{"message.timestamp.type", "LogAppendTime"}});
  const auto producer = open(f, {});
  ProducerRecord full = record("lines", "value", ByteView("key"));
  full.timestamp = 5;

  const RecordMetadata first = producer->send_sync(full).value();
  EXPECT_EQ(first.partition, (TopicPartition{"lines", PartitionId(0)}));
  EXPECT_EQ(first.offset, Offset(0));
  EXPECT_EQ(first.timestamp, 5);
  EXPECT_EQ(first.serialized_key_size, 3);
  EXPECT_EQ(first.serialized_value_size, 5);
  ProducerRecord empty;
  empty.topic = "lines";
  const RecordMetadata second = producer->send_sync(empty).value();
  EXPECT_EQ(second.offset, Offset(1));
  EXPECT_EQ(second.timestamp, f.clock.now());
  EXPECT_EQ(second.serialized_key_size, -1);
  EXPECT_EQ(second.serialized_value_size, -1);
  full.topic = "stamped";
  EXPECT_EQ(producer->send_sync(full)->timestamp, f.clock.now()) << "the log's time, not 5";
}

TEST(Producer, SendSyncDoesNotLinger) {
  LogFixture f;
  f.open();
  f.create("lines");
  ProducerOptions options;
  options.linger_ms = 3'600'000;
  const auto producer = open(f, options);
  ASSERT_TRUE(producer->send(record("lines", "before")).ok());

  EXPECT_EQ(producer->send_sync(record("lines", "sync"))->offset, Offset(1));

  EXPECT_EQ(f.read("lines"), (Values{"before", "sync"}));
}

TEST(Producer, FuturesAlwaysGetTheirAnswer) {
  LogFixture f;
  f.open();
  f.create("lines");
  f.create("short");
  ProducerOptions options;
  options.linger_ms = 3'600'000;
  const auto producer = open(f, options);
  auto kept = producer->send_future(record("lines", "a"));
  auto lost = producer->send_future(record("short", "b"));
  ASSERT_TRUE(kept.ok());
  ASSERT_TRUE(lost.ok());
  ASSERT_TRUE(f.log->admin().delete_topic("short").ok());
  EXPECT_EQ(producer->send_future(record("short", "c")).error().code(), Errc::kUnknownTopic);
  EXPECT_FALSE(producer->close().ok());

  EXPECT_EQ(kept->get()->offset, Offset(0));
  EXPECT_EQ(lost->get().error().code(), Errc::kUnknownTopic);
}

TEST(Producer, HasNoOffsetWithAcks0) {
  LogFixture f;
  f.open();
  f.create("lines");
  f.files->hold_submits(true);
  ProducerOptions options;
  options.acks = Acks::kNone;
  const auto producer = open(f, options);

  const RecordMetadata answer = producer->send_sync(record("lines", "a")).value();

  EXPECT_FALSE(answer.has_offset());
  EXPECT_EQ(answer.offset, kNoOffset);
  EXPECT_EQ(answer.partition.topic, "lines");
  EXPECT_EQ(answer.timestamp, f.clock.now());
  f.files->hold_submits(false);
  f.files->run_submitted();
  EXPECT_EQ(f.read("lines"), (Values{"a"}));
}

// A partition's callbacks run in order, also when a later batch is the first to be known lost.
TEST(Producer, AnswersAPartitionInOrderWhenALaterBatchFails) {
  LogFixture f;
  f.open();
  f.create("lines", 2);
  ProducerOptions options;
  options.batch_size = 0;
  const auto producer = open(f, options);
  Answers answers;
  f.files->hold_submits(true);
  ASSERT_TRUE(producer->send(record("lines", "a", ByteView("k")), answers.next()).ok());
  f.files->set_fault([](testing::MemoryFileSystem::Operation operation, const std::string& path) {
    const bool full = operation == testing::MemoryFileSystem::Operation::kWrite &&
                      path.find("lines-") != std::string::npos;
    return full ? Status(Error(Errc::kNoSpace, "No space left on device")) : Status();
  });
  ASSERT_TRUE(producer->send(record("lines", "b", ByteView("k")), answers.next()).ok());
  f.files->set_fault(nullptr);
  ASSERT_TRUE(producer->send(record("lines", "c", ByteView("k")), answers.next()).ok());
  f.files->hold_submits(false);
  f.files->run_submitted();

  EXPECT_EQ(producer->flush().error().code(), Errc::kNoSpace);

  EXPECT_EQ(answers.all(), (Values{"0", "KAFKA_STORAGE_ERROR", "1"}));
}

TEST(Producer, GivesUpAtTheDeadlineOfClose) {
  LogFixture f;
  f.open();
  f.create("lines");
  ProducerOptions options;
  options.linger_ms = 3'600'000;
  options.batch_size = 512;
  const auto producer = open(f, options);
  const std::string value(200, 'x');
  Answers answers;
  f.files->hold_submits(true);
  for (int i = 0; i < 5; ++i) {  // two batches in flight, one open
    ASSERT_TRUE(producer->send(record("lines", value), answers.next()).ok());
  }

  const Status closed = producer->close(Duration::zero());

  EXPECT_EQ(closed.error().code(), Errc::kTimedOut);
  EXPECT_EQ(answers.errors(), (std::vector<Errc>{Errc::kTimedOut, Errc::kTimedOut, Errc::kTimedOut,
                                                 Errc::kTimedOut, Errc::kClosed}));
  EXPECT_TRUE(producer->close().ok()) << "idempotent";
  f.files->hold_submits(false);
  f.files->run_submitted();
  EXPECT_EQ(f.read("lines").size(), 4U) << "what was not written is not written later";
}

TEST(Producer, CloseWritesWhatLingersAndThenTakesNothing) {
  LogFixture f;
  f.open();
  f.create("lines");
  ProducerOptions options;
  options.linger_ms = 3'600'000;
  const auto producer = open(f, options);
  Answers answers;
  ASSERT_TRUE(producer->send(record("lines", "a"), answers.next()).ok());

  ASSERT_TRUE(producer->close(std::chrono::hours(1)).ok());

  EXPECT_EQ(answers.all(), (Values{"0"}));
  EXPECT_EQ(producer->send(record("lines", "b"), answers.next()).error().code(), Errc::kClosed);
  EXPECT_EQ(producer->send_sync(record("lines", "b")).error().code(), Errc::kClosed);
  EXPECT_TRUE(producer->flush().ok());
  EXPECT_EQ(answers.all().size(), 1U);
}

TEST(Producer, CloseEndsASendThatWaitsForRoom) {
  LogFixture f;
  f.open();
  f.create("lines");
  ProducerOptions options;
  options.buffer_memory = 1000;
  options.max_block_ms = 3'600'000;
  options.batch_size = 0;
  const auto producer = open(f, options);
  f.files->hold_submits(true);
  const std::string value(800, 'x');
  ASSERT_TRUE(producer->send(record("lines", value)).ok());
  Status waiting;
  std::thread sender([&] { waiting = producer->send(record("lines", value)); });

  EXPECT_FALSE(producer->close(Duration::zero()).ok());
  sender.join();

  EXPECT_EQ(waiting.error().code(), Errc::kClosed);
  f.files->hold_submits(false);
  f.files->run_submitted();
}

TEST(Producer, GivesUpABatchAfterTheDeliveryTimeout) {
  LogFixture f;
  f.open();
  f.create("lines");
  ProducerOptions options;
  options.linger_ms = 0;
  options.delivery_timeout_ms = 1;
  const auto producer = open(f, options);
  f.files->hold_submits(true);
  const auto answer = producer->send_sync(record("lines", "a"));

  ASSERT_FALSE(answer.ok());
  EXPECT_EQ(answer.error().code(), Errc::kTimedOut);
  EXPECT_NE(answer.error().message().find("delivery.timeout.ms"), std::string::npos);
  f.files->hold_submits(false);
  f.files->run_submitted();
  EXPECT_EQ(f.read("lines"), (Values{"a"})) << "unknown means either";
}

TEST(Producer, NamesTheLimitThatARecordIsOver) {
  LogFixture f;
  f.open();
  f.create("lines");
  ProducerOptions options;
  options.max_request_size = 1000;
  const auto producer = open(f, options);
  // 61 of the batch header, 2 of the record's length, 1 of attributes, 2 of deltas, 1 of the null
  // key, 2 + 930 of the value, 1 of the header count.
  EXPECT_TRUE(producer->send(record("lines", std::string(930, 'x'))).ok());
  const Status over = producer->send(record("lines", std::string(931, 'x')));
  EXPECT_EQ(over.error().code(), Errc::kRecordTooLarge);
  for (const char* part : {"1001 bytes", "lines-0", "max.request.size is 1000"}) {
    EXPECT_NE(over.error().message().find(part), std::string::npos) << over.error().message();
  }

  options.max_request_size = 1 << 20;
  options.buffer_memory = 500;
  const Status larger_than_memory = open(f, options)->send(record("lines", std::string(501, 'x')));
  EXPECT_EQ(larger_than_memory.error().code(), Errc::kRecordTooLarge);
  EXPECT_NE(larger_than_memory.error().message().find("buffer.memory"), std::string::npos);
}

TEST(Producer, GoesRoundRobin) {
  LogFixture f;
  f.open();
  f.create("lines", 3);
  ProducerOptions options;
  options.partitioner = Partitioner::kRoundRobin;
  const auto producer = open(f, options);
  for (int i = 0; i < 7; ++i) {
    ASSERT_TRUE(producer->send(record("lines", std::to_string(i), ByteView("same key"))).ok());
  }
  ASSERT_TRUE(producer->flush().ok());

  EXPECT_EQ(f.read("lines", 0), (Values{"0", "3", "6"}));
  EXPECT_EQ(f.read("lines", 1), (Values{"1", "4"}));
  EXPECT_EQ(f.read("lines", 2), (Values{"2", "5"}));
}

TEST(Producer, AsksTheUsersPartitionFunction) {
  LogFixture f;
  f.open();
  f.create("lines", 3);
  ProducerOptions options;
  options.partition_function = [](const std::string& topic, const NullableBytes& key,
                                  const NullableBytes& value, std::int32_t partitions) {
    EXPECT_EQ(topic, "lines");
    EXPECT_EQ(partitions, 3);
    if (value.view() == "throw") {
      throw std::runtime_error("no idea");
    }
    return key.is_null() ? static_cast<std::int32_t>(value.size()) : 2;
  };
  const auto producer = open(f, options);
  ASSERT_TRUE(producer->send(record("lines", "a")).ok());
  ASSERT_TRUE(producer->send(record("lines", "a", ByteView("k"))).ok());
  ProducerRecord named = record("lines", "named");
  named.partition = PartitionId(0);
  ASSERT_TRUE(producer->send(named).ok()) << "is not asked";
  Answers answers;
  const Status outside = producer->send(record("lines", "abc"), answers.next());
  EXPECT_EQ(outside.error().code(), Errc::kInvalidArgument);
  for (const char* part : {"answered 3", "topic lines", "0 to 2"}) {
    EXPECT_NE(outside.error().message().find(part), std::string::npos) << outside.error().message();
  }
  const Status thrown = producer->send(record("lines", "throw"), answers.next());
  EXPECT_EQ(thrown.error().code(), Errc::kHandlerThrew);
  EXPECT_NE(thrown.error().message().find("no idea"), std::string::npos);
  ASSERT_TRUE(producer->flush().ok());

  EXPECT_TRUE(answers.all().empty());
  EXPECT_EQ(f.read("lines", 0), (Values{"named"}));
  EXPECT_EQ(f.read("lines", 1), (Values{"a"}));
  EXPECT_EQ(f.read("lines", 2), (Values{"a"}));
}

TEST(Producer, CallbacksMaySendButNotWait) {
  LogFixture f;
  f.open();
  f.create("lines");
  const auto producer = open(f, {});
  std::vector<Errc> refused;
  ASSERT_TRUE(producer
                  ->send(record("lines", "a"),
                         [&](const Result<RecordMetadata>&) {
                           EXPECT_TRUE(producer->send(record("lines", "b")).ok());
                           refused.push_back(producer->flush().error().code());
                           refused.push_back(producer->close().error().code());
                           refused.push_back(
                               producer->send_sync(record("lines", "c")).error().code());
                           throw std::runtime_error("a callback's own");
                         })
                  .ok());
  ASSERT_TRUE(producer->flush().ok());
  ASSERT_TRUE(producer->close().ok());

  EXPECT_EQ(refused, (std::vector<Errc>(3, Errc::kInvalidArgument)));
  EXPECT_EQ(f.read("lines"), (Values{"a", "b"}));
}

TEST(Producer, RefusesNegativeTimestamps) {
  LogFixture f;
  f.open();
  f.create("lines");
  const auto producer = open(f, {});
  ProducerRecord wrong = record("lines", "a");
  wrong.timestamp = -2;

  EXPECT_EQ(producer->send(wrong).error().code(), Errc::kInvalidTimestamp);
}

// Four threads: every record is answered once, each partition's offsets rise by one.
TEST(Producer, AnswersEachRecordOnceUnderThreads) {
  constexpr int kThreads = 4;
  constexpr int kRecords = 400;
  LogFixture f;
  f.open();
  f.create("lines", 3);
  ProducerOptions options;
  options.batch_size = 600;
  options.linger_ms = 0;
  const auto producer = open(f, options);
  std::map<std::int32_t, std::vector<std::int64_t>> offsets;  // callbacks run on one thread
  std::multiset<int> answered;
  std::vector<std::thread> senders;
  for (int t = 0; t < kThreads; ++t) {
    senders.emplace_back([&, t] {
      for (int i = 0; i < kRecords; ++i) {
        const int id = t * kRecords + i;
        ASSERT_TRUE(producer
                        ->send(record("lines", std::to_string(id)),
                               [&, id](const Result<RecordMetadata>& answer) {
                                 ASSERT_TRUE(answer.ok());
                                 answered.insert(id);
                                 offsets[answer->partition.partition.value()].push_back(
                                     answer->offset.value());
                               })
                        .ok());
      }
    });
  }
  for (std::thread& sender : senders) {
    sender.join();
  }
  ASSERT_TRUE(producer->close().ok());

  EXPECT_EQ(answered.size(), static_cast<std::size_t>(kThreads * kRecords));
  EXPECT_EQ(std::set<int>(answered.begin(), answered.end()).size(), answered.size());
  for (const auto& [partition, seen] : offsets) {
    for (std::size_t i = 0; i < seen.size(); ++i) {
      ASSERT_EQ(seen[i], static_cast<std::int64_t>(i)) << partition;
    }
    EXPECT_EQ(f.read("lines", partition).size(), seen.size());
  }
}

TEST(Producer, ReadsItsSettingsByKafkasNames) {
  const auto options =
      ProducerOptions::parse({{"acks", "1"}, {"linger.ms", "0"}, {"batch.size", "100"}});
  ASSERT_TRUE(options.ok());
  EXPECT_EQ(options->acks, Acks::kOne);
  EXPECT_EQ(options->linger_ms, 0);
  EXPECT_EQ(options->batch_size, 100);

  const auto more = ProducerOptions::parse(
      {{"acks", "0"},
       {"partitioner.class", "org.apache.kafka.clients.producer.RoundRobinPartitioner"},
       {"partitioner.ignore.keys", "true"},
       {"delivery.timeout.ms", "7"}});
  ASSERT_TRUE(more.ok());
  EXPECT_EQ(more->acks, Acks::kNone);
  EXPECT_EQ(more->partitioner, Partitioner::kRoundRobin);
  EXPECT_TRUE(more->partitioner_ignore_keys);
  EXPECT_EQ(more->delivery_timeout_ms, 7);
  EXPECT_EQ(ProducerOptions::parse({})->acks, Acks::kAll);
  EXPECT_EQ(ProducerOptions::parse({{"delivery.timeout.ms", "4"}}).error().code(),
            Errc::kInvalidConfig)
      << "below linger.ms, 5";

  const auto wrong = ProducerOptions::parse({{"ack", "all"}, {"linger.ms", "-1"}});
  ASSERT_FALSE(wrong.ok());
  EXPECT_NE(wrong.error().message().find("acks"), std::string::npos);
  EXPECT_NE(wrong.error().message().find("linger.ms"), std::string::npos);
}

// Headers of the batches of partition 0, as the file has them.
std::vector<BatchHeader> headers_of(LogFixture& f, const std::string& topic) {
  const std::string bytes =
      read_file(*f.files, "data/log/" + topic + "-0/00000000000000000000.log").value();
  std::vector<BatchHeader> headers;
  for (std::size_t at = 0; at + kBatchHeaderBytes <= bytes.size();) {
    const auto header = read_batch_header(ByteView(bytes).substr(at));
    if (!header.ok()) {
      break;  // reserved and not used
    }
    headers.push_back(*header);
    at += header->size_bytes();
  }
  return headers;
}

TEST(Producer, NumbersItsBatchesUnlessToldOtherwise) {
  LogFixture f;
  f.open();
  f.create("lines");
  const auto first = open(f, {});
  const auto second = open(f, {});
  ProducerOptions plain;
  plain.enable_idempotence = false;
  ProducerOptions soon;
  soon.acks = Acks::kOne;
  const auto third = open(f, plain);
  const auto fourth = open(f, soon);
  for (Producer* const producer :
       {first.get(), second.get(), first.get(), third.get(), fourth.get()}) {
    for (const char* value : {"a", "b"}) {
      ASSERT_TRUE(producer->send(record("lines", value)).ok());
    }
    ASSERT_TRUE(producer->flush().ok());
  }
  std::vector<std::vector<std::int64_t>> seen;
  for (const BatchHeader& header : headers_of(f, "lines")) {
    seen.push_back(
        {header.producer_id.value(), header.producer_epoch.value(), header.base_sequence});
  }
  EXPECT_EQ(seen, (std::vector<std::vector<std::int64_t>>{
                      {0, 0, 0}, {1, 0, 0}, {0, 0, 2}, {-1, -1, -1}, {-1, -1, -1}}));
}

TEST(Producer, GoesOnWithItsSequenceBehindABatchThatWasRefused) {
  LogFixture f;
  f.open();
  f.create("lines", 1, {{"max.message.bytes", "1000"}});
  const auto producer = open(f, {});
  ASSERT_TRUE(producer->send_sync(record("lines", "a")).ok());
  ProducerRecord odd = record("lines", "b");
  odd.timestamp = f.clock.now() + 40LL * 24 * 3600 * 1000;  // message.timestamp.after.max.ms
  EXPECT_EQ(producer->send_sync(odd).error().code(), Errc::kInvalidTimestamp);
  ASSERT_TRUE(producer->send_sync(record("lines", "c")).ok());
  const auto headers = headers_of(f, "lines");
  ASSERT_EQ(headers.size(), 2U);
  EXPECT_EQ(headers[1].base_sequence, 1);
}

TEST(Producer, TurnsIdempotenceOffWhereItCannotBeKept) {
  EXPECT_TRUE(ProducerOptions::parse({})->enable_idempotence);
  EXPECT_FALSE(ProducerOptions::parse({{"acks", "1"}})->enable_idempotence);
  EXPECT_FALSE(
      ProducerOptions::parse({{"max.in.flight.requests.per.connection", "6"}})->enable_idempotence);
  EXPECT_FALSE(ProducerOptions::parse({{"enable.idempotence", "false"}})->enable_idempotence);
  for (const auto& [key, value] : std::map<std::string, std::string>{
           {"acks", "0"}, {"max.in.flight.requests.per.connection", "6"}}) {
    const auto refused = ProducerOptions::parse({{"enable.idempotence", "true"}, {key, value}});
    ASSERT_FALSE(refused.ok());
    EXPECT_NE(refused.error().message().find(key), std::string::npos);
  }
}

}  // namespace
}  // namespace weir::log
