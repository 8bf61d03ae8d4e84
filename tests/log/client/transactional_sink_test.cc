// Transactions through the Backend port, on a disk in memory.
#include "tests/support/log_fixture.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace weir::log {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

const TopicPartition kInput{"input", PartitionId(0)};

class TransactionalSinkTest : public ::testing::Test, protected testing::LogFixture {
 protected:
  TransactionalSinkTest() {
    open();
    create("lines", 3);
    create("input");
  }

  std::unique_ptr<RecordSink> sink(const std::string& id = "tx") {
    SinkOptions options;
    options.transactional_id = id;
    auto made = log->make_sink(options);
    EXPECT_TRUE(made.ok()) << (made.ok() ? "" : made.error().to_string());
    return std::move(made).value();
  }
  Status write(RecordSink& to, const std::string& value, std::int32_t partition = 0,
               const std::string& topic = "lines") {
    WEIR_TRY_ASSIGN(const SinkTopicInfo info, to.open_topic(topic));
    const RecordRef record{{}, ByteView(value), clock.now(), {}};
    return to.send(info.handle, PartitionId(partition), {&record, 1});
  }
  std::vector<std::string> committed(std::int32_t partition = 0,
                                     const std::string& topic = "lines") {
    SourceOptions options;
    options.read_committed = true;
    auto source = log->make_source(options).value();
    EXPECT_TRUE(source->assign({{topic, PartitionId(partition)}}).ok());
    EXPECT_TRUE(source->seek(0, Offset(0)).ok());
    std::vector<std::string> values;
    while (true) {
      const auto blocks = source->poll(Duration::zero()).value();
      if (blocks.empty()) {
        return values;
      }
      for (const RecordBlock& block : blocks) {
        EXPECT_TRUE(block.status.ok()) << block.status.error().to_string();
        for (const RecordView& record : block.records) {
          values.emplace_back(record.value.view_or_empty());
        }
      }
    }
  }
  std::optional<std::int64_t> offset_of(const std::string& group) {
    auto member = log->make_group(group).value();
    const auto found = member->committed({&kInput, 1}).value();
    return found[0] ? std::optional(found[0]->offset.value()) : std::nullopt;
  }
  static Status send_offset(RecordSink& to, const std::string& group, std::int64_t offset) {
    const PartitionOffset one{kInput, {Offset(offset), LeaderEpoch(0), ""}};
    return to.send_offsets({&one, 1}, {group, -1, ""});
  }
};

TEST_F(TransactionalSinkTest, ACommitShowsEverythingAtOnce) {
  auto to = sink();
  ASSERT_TRUE(to->begin().ok());
  for (const int partition : {0, 1, 2}) {
    ASSERT_TRUE(write(*to, "a", partition).ok());
  }
  ASSERT_TRUE(send_offset(*to, "group", 5).ok());
  ASSERT_TRUE(to->flush().ok());
  EXPECT_THAT(read("lines"), ElementsAre("a"));
  EXPECT_THAT(committed(), IsEmpty());
  EXPECT_EQ(offset_of("group"), std::nullopt);

  ASSERT_EQ(to->end(true).value(), TransactionOutcome::kCommitted);
  for (const int partition : {0, 1, 2}) {
    EXPECT_THAT(committed(partition), ElementsAre("a"));
  }
  EXPECT_EQ(offset_of("group"), 5);
}

TEST_F(TransactionalSinkTest, AnAbortShowsNothing) {
  auto to = sink();
  ASSERT_TRUE(to->begin().ok());
  ASSERT_TRUE(write(*to, "flushed").ok());
  ASSERT_TRUE(send_offset(*to, "group", 5).ok());
  ASSERT_TRUE(to->flush().ok());
  ASSERT_TRUE(write(*to, "not flushed").ok());
  ASSERT_EQ(to->end(false).value(), TransactionOutcome::kAborted);
  ASSERT_TRUE(to->begin().ok());
  ASSERT_TRUE(write(*to, "next").ok());
  ASSERT_EQ(to->end(true).value(), TransactionOutcome::kCommitted);

  EXPECT_THAT(committed(), ElementsAre("next"));
  EXPECT_THAT(read("lines"), ElementsAre("flushed", "next"));
  EXPECT_EQ(offset_of("group"), std::nullopt);
}

TEST_F(TransactionalSinkTest, ATransactionOfNothingTouchesNothing) {
  auto to = sink();
  for (const bool commit : {true, false}) {
    ASSERT_TRUE(to->begin().ok());
    EXPECT_EQ(to->end(commit).value(),
              commit ? TransactionOutcome::kCommitted : TransactionOutcome::kAborted);
  }
  EXPECT_EQ(log->admin().offsets({"lines", PartitionId(0)})->log_end, Offset(0));
}

TEST_F(TransactionalSinkTest, SendsOnlyInATransaction) {
  auto to = sink();
  EXPECT_EQ(write(*to, "x").error().code(), Errc::kInvalidArgument);
  EXPECT_EQ(to->end(true).error().code(), Errc::kInvalidArgument);
  EXPECT_EQ(send_offset(*to, "group", 1).error().code(), Errc::kInvalidArgument);
  ASSERT_TRUE(to->begin().ok());
  EXPECT_EQ(to->begin().error().code(), Errc::kInvalidArgument);
  auto plain = log->make_sink({}).value();
  EXPECT_EQ(plain->begin().error().code(), Errc::kInvalidArgument);
  EXPECT_EQ(plain->end(true).error().code(), Errc::kInvalidArgument);
}

TEST_F(TransactionalSinkTest, ANewerSinkFencesTheOlder) {
  auto zombie = sink();
  ASSERT_TRUE(zombie->begin().ok());
  ASSERT_TRUE(write(*zombie, "zombie").ok());
  ASSERT_TRUE(zombie->flush().ok());
  auto next = sink();
  ASSERT_TRUE(next->begin().ok());
  ASSERT_TRUE(write(*next, "next").ok());
  ASSERT_EQ(next->end(true).value(), TransactionOutcome::kCommitted);

  EXPECT_EQ(zombie->end(true).value(), TransactionOutcome::kFenced);
  const Status begun = zombie->begin();
  EXPECT_EQ(begun.error().code(), Errc::kFenced);
  EXPECT_THAT(begun.error().message(), HasSubstr("transactional id tx"));
  EXPECT_THAT(committed(), ElementsAre("next"));
}

// It had not written there before: its epoch is unknown to the partition, not to the coordinator.
TEST_F(TransactionalSinkTest, AFencedSinkCannotWriteToAFreshPartition) {
  auto zombie = sink();
  ASSERT_TRUE(zombie->begin().ok());
  ASSERT_TRUE(write(*zombie, "zombie", 0).ok());
  ASSERT_TRUE(zombie->flush().ok());
  auto next = sink();
  ASSERT_TRUE(write(*zombie, "zombie", 2).ok());  // into its buffer
  EXPECT_EQ(zombie->flush().error().code(), Errc::kFenced);
  EXPECT_EQ(zombie->end(false).value(), TransactionOutcome::kFenced);
  EXPECT_EQ(log->admin().offsets({"lines", PartitionId(2)})->log_end, Offset(0));
}

TEST_F(TransactionalSinkTest, WhatWasOpenAtACrashIsAbortedByTheNextSink) {
  for (const bool power : {false, true}) {
    auto to = sink();
    ASSERT_TRUE(to->begin().ok());
    ASSERT_TRUE(write(*to, "committed").ok());
    ASSERT_EQ(to->end(true).value(), TransactionOutcome::kCommitted);
    ASSERT_TRUE(to->begin().ok());
    ASSERT_TRUE(write(*to, "open").ok());
    ASSERT_TRUE(send_offset(*to, "group", 7).ok());
    ASSERT_TRUE(to->flush().ok());
    power ? cut_power() : crash();
    to.reset();
    open();
    auto next = sink();
    ASSERT_TRUE(next->begin().ok());
    ASSERT_TRUE(write(*next, "next").ok());
    ASSERT_EQ(next->end(true).value(), TransactionOutcome::kCommitted);
    EXPECT_EQ(offset_of("group"), std::nullopt);
  }
  EXPECT_THAT(committed(), ElementsAre("committed", "next", "committed", "next"));
}

TEST_F(TransactionalSinkTest, OffsetsOfATransactionAreReadAgainAfterARestart) {
  auto to = sink();
  ASSERT_TRUE(to->begin().ok());
  ASSERT_TRUE(send_offset(*to, "group", 7).ok());
  ASSERT_EQ(to->end(true).value(), TransactionOutcome::kCommitted);
  ASSERT_TRUE(to->begin().ok());
  ASSERT_TRUE(send_offset(*to, "group", 9).ok());
  ASSERT_EQ(to->end(false).value(), TransactionOutcome::kAborted);
  to.reset();
  close();
  open();
  EXPECT_EQ(offset_of("group"), 7);
}

// A plain commit behind the offsets of a transaction wins, as its record does in the log.
TEST_F(TransactionalSinkTest, TheLaterCommitWins) {
  auto to = sink();
  ASSERT_TRUE(to->begin().ok());
  ASSERT_TRUE(send_offset(*to, "group", 7).ok());
  {
    auto member = log->make_group("group").value();
    const PartitionOffset later{kInput, {Offset(3), LeaderEpoch(0), ""}};
    ASSERT_TRUE(member->commit({&later, 1}).ok());
  }
  ASSERT_EQ(to->end(true).value(), TransactionOutcome::kCommitted);
  EXPECT_EQ(offset_of("group"), 3);
  to.reset();
  close();
  open();
  EXPECT_EQ(offset_of("group"), 3);
}

// KIP-447: offsets of a member that is one no more.
TEST_F(TransactionalSinkTest, OffsetsOfAStrangerAreFenced) {
  auto to = sink();
  ASSERT_TRUE(to->begin().ok());
  const PartitionOffset one{kInput, {Offset(1), LeaderEpoch(0), ""}};
  const Status refused = to->send_offsets({&one, 1}, {"group", 3, "gone", ""});
  ASSERT_FALSE(refused.ok());
  EXPECT_EQ(refused.error().code(), Errc::kFenced);
  ASSERT_EQ(to->end(false).value(), TransactionOutcome::kAborted);
}

// KAFKA-9279: the caller was told, and commits all the same.
TEST_F(TransactionalSinkTest, WhatLacksARecordOrAnOffsetCannotBeCommitted) {
  create("gone");
  auto to = sink();
  const auto refuse_and_abort = [&](std::string_view why) {
    SCOPED_TRACE(why);
    const auto refused = to->end(true);
    ASSERT_FALSE(refused.ok());
    EXPECT_THAT(refused.error().message(), HasSubstr("end it with an abort"));
    ASSERT_EQ(to->end(false).value(), TransactionOutcome::kAborted);
  };
  ASSERT_TRUE(to->begin().ok());
  ASSERT_TRUE(write(*to, "a").ok());
  EXPECT_EQ(write(*to, std::string(2U << 20U, 'x')).error().code(), Errc::kRecordTooLarge);
  refuse_and_abort("a record that is too large");

  ASSERT_TRUE(to->begin().ok());
  ASSERT_TRUE(write(*to, "a").ok());
  ASSERT_TRUE(write(*to, "b", 0, "gone").ok());
  ASSERT_TRUE(log->admin().delete_topic("gone").ok());
  EXPECT_FALSE(to->flush().ok());
  refuse_and_abort("a flush that failed");

  ASSERT_TRUE(to->begin().ok());
  ASSERT_TRUE(write(*to, "a").ok());
  const PartitionOffset one{kInput, {Offset(1), LeaderEpoch(0), ""}};
  EXPECT_FALSE(to->send_offsets({&one, 1}, {"group", 3, "gone", ""}).ok());
  refuse_and_abort("offsets that were refused");

  ASSERT_TRUE(to->begin().ok());
  ASSERT_TRUE(write(*to, "b").ok());
  ASSERT_EQ(to->end(true).value(), TransactionOutcome::kCommitted);
  EXPECT_THAT(committed(), ElementsAre("b"));
}

TEST_F(TransactionalSinkTest, AMemoryTopicTakesPart) {
  create("fast", 1, {{"weir.durability", "memory"}});
  auto to = sink();
  ASSERT_TRUE(to->begin().ok());
  ASSERT_TRUE(write(*to, "m", 0, "fast").ok());
  ASSERT_TRUE(write(*to, "d", 0).ok());
  ASSERT_EQ(to->end(true).value(), TransactionOutcome::kCommitted);
  ASSERT_TRUE(to->begin().ok());
  ASSERT_TRUE(write(*to, "open", 0, "fast").ok());
  ASSERT_TRUE(to->flush().ok());
  crash();
  to.reset();
  open();
  sink();
  EXPECT_THAT(committed(0, "fast"), ElementsAre("m"));
  EXPECT_THAT(committed(), ElementsAre("d"));
}

TEST_F(TransactionalSinkTest, ADeletedTopicDoesNotHoldUpTheRest) {
  create("gone");
  auto to = sink();
  ASSERT_TRUE(to->begin().ok());
  ASSERT_TRUE(write(*to, "a", 0, "gone").ok());
  ASSERT_TRUE(write(*to, "b").ok());
  ASSERT_TRUE(to->flush().ok());
  ASSERT_TRUE(log->admin().delete_topic("gone").ok());
  ASSERT_EQ(to->end(true).value(), TransactionOutcome::kCommitted);
  EXPECT_THAT(committed(), ElementsAre("b"));
}

TEST_F(TransactionalSinkTest, RefusesATimeoutOverTheMaximum) {
  SinkOptions options;
  options.transactional_id = "tx";
  options.transaction_timeout = std::chrono::minutes(16);
  const auto made = log->make_sink(options);
  ASSERT_FALSE(made.ok());
  EXPECT_EQ(made.error().code(), Errc::kInvalidConfig);
  EXPECT_THAT(made.error().message(), HasSubstr("transaction.max.timeout.ms 900000"));
}

TEST_F(TransactionalSinkTest, ManyTransactionsKeepTheirOrder) {
  auto to = sink();
  std::vector<std::string> expected;
  for (int i = 0; i < 200; ++i) {
    ASSERT_TRUE(to->begin().ok());
    ASSERT_TRUE(write(*to, std::to_string(i)).ok());
    const bool commit = i % 3 != 0;
    ASSERT_TRUE(to->end(commit).ok());
    if (commit) {
      expected.push_back(std::to_string(i));
    }
  }
  EXPECT_EQ(committed(), expected);
}

}  // namespace
}  // namespace weir::log
