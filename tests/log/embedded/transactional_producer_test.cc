#include "tests/support/log_fixture.h"

#include <weir/log/consumer.h>
#include <weir/log/producer.h>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace weir::log {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

const TopicPartition kInput{"input", PartitionId(0)};

class TransactionalProducerTest : public ::testing::Test, protected testing::LogFixture {
 protected:
  TransactionalProducerTest() {
    open();
    create("lines", 2);
    create("input");
  }

  static ProducerOptions options(const std::string& id = "tx") {
    ProducerOptions result;
    result.transactional_id = id;
    return result;
  }
  std::unique_ptr<Producer> producer(const std::string& id = "tx") { return producer(options(id)); }
  std::unique_ptr<Producer> producer(const ProducerOptions& with) {
    auto made = Producer::open(*log, with).value();
    const Status ready = made->init_transactions();
    EXPECT_TRUE(ready.ok()) << ready.error().to_string();
    return made;
  }
  static ProducerRecord record(const std::string& value, std::int32_t partition = 0) {
    ProducerRecord result;
    result.topic = "lines";
    result.partition = PartitionId(partition);
    result.value = ByteView(value);
    return result;
  }
  std::vector<std::string> committed(std::int32_t partition = 0) {
    ConsumerOptions reader;
    reader.isolation_level = IsolationLevel::kReadCommitted;
    reader.auto_offset_reset = "earliest";
    auto consumer = Consumer::open(*log, reader).value();
    EXPECT_TRUE(consumer->assign({{"lines", PartitionId(partition)}}).ok());
    std::vector<std::string> values;
    while (true) {
      const ConsumerRecords records = consumer->poll(Duration::zero()).value();
      if (records.count() == 0) {
        return values;
      }
      for (const ConsumerBatch& batch : records.batches()) {
        for (const RecordView& one : batch.records) {
          values.emplace_back(one.value.view_or_empty());
        }
      }
    }
  }
  std::optional<std::int64_t> offset_of(const std::string& group) {
    const auto found = log->make_group(group).value()->committed({&kInput, 1}).value();
    return found[0] ? std::optional(found[0]->offset.value()) : std::nullopt;
  }
};

TEST_F(TransactionalProducerTest, CommitsRecordsAndOffsetsTogether) {
  auto to = producer();
  ASSERT_TRUE(to->begin_transaction().ok());
  auto answer = to->send_future(record("a"));
  ASSERT_TRUE(answer.ok());
  ASSERT_TRUE(to->send(record("b", 1)).ok());
  const PartitionOffset five{kInput, {Offset(5), LeaderEpoch(0), ""}};
  ASSERT_TRUE(to->send_offsets_to_transaction({&five, 1}, {"group", -1, ""}).ok());
  EXPECT_THAT(committed(), IsEmpty());
  const Status done = to->commit_transaction();
  ASSERT_TRUE(done.ok()) << done.error().to_string();

  EXPECT_EQ(answer->get()->offset, Offset(0));  // answered before the commit is
  EXPECT_THAT(committed(0), ElementsAre("a"));
  EXPECT_THAT(committed(1), ElementsAre("b"));
  EXPECT_EQ(offset_of("group"), 5);
}

TEST_F(TransactionalProducerTest, AnAbortTellsWhatWasNotSent) {
  ProducerOptions slow = options();
  slow.linger_ms = 60'000;
  auto to = Producer::open(*log, slow).value();
  ASSERT_TRUE(to->init_transactions().ok());
  ASSERT_TRUE(to->begin_transaction().ok());
  auto answer = to->send_future(record("a"));
  ASSERT_TRUE(to->abort_transaction().ok());
  EXPECT_EQ(answer->get().error().code(), Errc::kInvalidTxnState);
  EXPECT_TRUE(to->flush().ok());  // it is no loss
  ASSERT_TRUE(to->begin_transaction().ok());
  ASSERT_TRUE(to->send(record("b")).ok());
  ASSERT_TRUE(to->commit_transaction().ok());
  EXPECT_THAT(committed(), ElementsAre("b"));
}

TEST_F(TransactionalProducerTest, AnAbortTakesBackWhatWasSent) {
  auto to = producer();
  ASSERT_TRUE(to->begin_transaction().ok());
  ASSERT_TRUE(to->send_sync(record("a")).ok());
  ASSERT_TRUE(to->abort_transaction().ok());
  EXPECT_THAT(read("lines"), ElementsAre("a"));
  EXPECT_THAT(committed(), IsEmpty());
}

TEST_F(TransactionalProducerTest, CallsOutOfTurnAreRefused) {
  auto plain = Producer::open(*log, {}).value();
  EXPECT_EQ(plain->init_transactions().error().code(), Errc::kInvalidArgument);
  EXPECT_EQ(plain->begin_transaction().error().code(), Errc::kInvalidArgument);
  EXPECT_EQ(plain->commit_transaction().error().code(), Errc::kInvalidArgument);
  auto early = Producer::open(*log, options()).value();
  EXPECT_THAT(early->send(record("a")).error().message(), HasSubstr("init_transactions()"));
  EXPECT_EQ(early->begin_transaction().error().code(), Errc::kInvalidArgument);
  ASSERT_TRUE(early->init_transactions().ok());
  EXPECT_EQ(early->init_transactions().error().code(), Errc::kInvalidArgument);
  EXPECT_EQ(early->send(record("a")).error().code(), Errc::kInvalidArgument);
  EXPECT_EQ(early->commit_transaction().error().code(), Errc::kInvalidArgument);
  EXPECT_EQ(early->abort_transaction().error().code(), Errc::kInvalidArgument);
  ASSERT_TRUE(early->begin_transaction().ok());
  EXPECT_EQ(early->begin_transaction().error().code(), Errc::kInvalidArgument);
}

TEST_F(TransactionalProducerTest, NeedsIdempotenceAndAllAcks) {
  ProducerOptions weak = options();
  weak.acks = Acks::kOne;
  EXPECT_EQ(Producer::open(*log, weak).error().code(), Errc::kInvalidConfig);
  EXPECT_EQ(ProducerOptions::parse({{"transactional.id", "tx"}, {"acks", "1"}}).error().code(),
            Errc::kInvalidConfig);
  const auto parsed =
      ProducerOptions::parse({{"transactional.id", "tx"}, {"transaction.timeout.ms", "1234"}});
  ASSERT_TRUE(parsed.ok());
  EXPECT_EQ(parsed->transactional_id, "tx");
  EXPECT_EQ(parsed->transaction_timeout_ms, 1234);
}

TEST_F(TransactionalProducerTest, AFencedProducerGetsAFinalError) {
  auto zombie = producer();
  ASSERT_TRUE(zombie->begin_transaction().ok());
  ASSERT_TRUE(zombie->send_sync(record("zombie")).ok());
  auto next = producer();
  const Status late = zombie->commit_transaction();
  EXPECT_EQ(late.error().code(), Errc::kFenced);
  EXPECT_THAT(late.error().message(), HasSubstr("transactional id tx"));
  EXPECT_EQ(zombie->begin_transaction().error().code(), Errc::kFenced);
  EXPECT_EQ(zombie->send(record("x")).error().code(), Errc::kFenced);
  ASSERT_TRUE(next->begin_transaction().ok());
  ASSERT_TRUE(next->send(record("next")).ok());
  ASSERT_TRUE(next->commit_transaction().ok());
  EXPECT_THAT(committed(), ElementsAre("next"));
}

TEST_F(TransactionalProducerTest, WhatCannotBeSentCanOnlyBeAborted) {
  create("gone");
  ProducerOptions waiting = options();
  waiting.linger_ms = 60'000;  // until the commit asks for them
  auto to = producer(waiting);
  ASSERT_TRUE(to->begin_transaction().ok());
  ASSERT_TRUE(to->send(record("a")).ok());
  ProducerRecord lost;
  lost.topic = "gone";
  lost.value = ByteView("x");
  ASSERT_TRUE(to->send(lost).ok());
  ASSERT_TRUE(log->admin().delete_topic("gone").ok());
  const Status refused = to->commit_transaction();
  ASSERT_FALSE(refused.ok());
  EXPECT_THAT(refused.error().message(), HasSubstr("abort it"));
  EXPECT_FALSE(to->send(record("b")).ok());
  ASSERT_TRUE(to->abort_transaction().ok());
  ASSERT_TRUE(to->begin_transaction().ok());
  ASSERT_TRUE(to->send(record("c")).ok());
  ASSERT_TRUE(to->commit_transaction().ok());
  EXPECT_THAT(committed(), ElementsAre("c"));
}

TEST_F(TransactionalProducerTest, CloseAbortsWhatIsOpen) {
  auto to = producer();
  ASSERT_TRUE(to->begin_transaction().ok());
  ASSERT_TRUE(to->send_sync(record("a")).ok());
  ASSERT_TRUE(to->close().ok());
  const PartitionOffsets at = *log->admin().offsets({"lines", PartitionId(0)});
  EXPECT_EQ(at.last_stable, at.log_end);
  EXPECT_THAT(committed(), IsEmpty());
}

// As in Kafka (OffsetMetadataManager): the tombstone takes what a transaction set, too.
TEST_F(TransactionalProducerTest, DeletedOffsetsDoNotComeBackWithACommit) {
  for (const bool restart : {false, true}) {
    SCOPED_TRACE(restart);
    const std::string group = restart ? "again" : "group";
    auto to = producer();
    ASSERT_TRUE(to->begin_transaction().ok());
    ASSERT_TRUE(to->send_sync(record("a")).ok());
    const PartitionOffset two{kInput, {Offset(2), LeaderEpoch(0), ""}};
    ASSERT_TRUE(to->send_offsets_to_transaction({&two, 1}, {group, -1, ""}).ok());
    ASSERT_TRUE(log->admin().delete_group_offsets(group, {&kInput, 1}).ok());
    ASSERT_TRUE(to->commit_transaction().ok());
    if (restart) {
      to.reset();
      cut_power();
      open();
    }
    EXPECT_EQ(offset_of(group), std::nullopt);
  }
}

// KIP-447: a reader with read_committed does not start at offsets that may change.
TEST_F(TransactionalProducerTest, AReaderWaitsForTheOffsetsOfAnOpenTransaction) {
  send("input", {"0", "1", "2"});
  auto to = producer();
  ASSERT_TRUE(to->begin_transaction().ok());
  const PartitionOffset two{kInput, {Offset(2), LeaderEpoch(0), ""}};
  ASSERT_TRUE(to->send_offsets_to_transaction({&two, 1}, {"group", -1, ""}).ok());
  ConsumerOptions reader;
  reader.group_id = "group";
  reader.isolation_level = IsolationLevel::kReadCommitted;
  reader.auto_offset_reset = "earliest";
  auto consumer = Consumer::open(*log, reader).value();
  ASSERT_TRUE(consumer->assign({kInput}).ok());
  EXPECT_EQ(consumer->poll(Duration::zero()).value().count(), 0U);
  ASSERT_TRUE(to->commit_transaction().ok());
  const ConsumerRecords records = consumer->poll(std::chrono::seconds(5)).value();
  ASSERT_EQ(records.count(), 1U);
  EXPECT_EQ(records.batches()[0].records[0].value.view(), "2");
}

}  // namespace
}  // namespace weir::log
