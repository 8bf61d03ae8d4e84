#include "log/coordinator/transaction_coordinator.h"

#include "tests/log/coordinator/immediate_transactions.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace weir::log {
namespace {

using ::testing::HasSubstr;
using Code = TransactionCode;

const TopicPartition kFirst{"orders", PartitionId(0)};
const TopicPartition kSecond{"orders", PartitionId(1)};

ProducerIdAndEpoch pair_of(std::int64_t id, std::int16_t epoch) {
  return {ProducerId(id), ProducerEpoch(epoch)};
}

// An id of which the log says so.
TransactionValue value_of(ProducerIdAndEpoch producer,
                          TransactionStatus status = TransactionStatus::kEmpty) {
  TransactionValue value;
  value.producer_id = value.previous_producer_id = producer.id;
  value.producer_epoch = producer.epoch;
  value.timeout_ms = 60'000;
  value.status = status;
  value.last_update = 1'000'000;
  return value;
}

void give(ImmediateTransactions& world, const std::string& id, TransactionValue value) {
  world.log.push_back({id, std::move(value)});
  world.restart();
}

TEST(TransactionCoordinator, GivesANewIdANewProducerAndEpochZero) {
  ImmediateTransactions world;
  world.next_producer_id = 7;
  const TransactionAnswer answer = world.init("tx");

  EXPECT_EQ(answer.code, Code::kNone);
  EXPECT_EQ(answer.producer, pair_of(7, 0));
  EXPECT_EQ(world.status("tx"), TransactionStatus::kEmpty);
}

TEST(TransactionCoordinator, RaisesTheEpochOfAKnownId) {
  ImmediateTransactions world;
  world.init("tx");
  EXPECT_EQ(world.init("tx").producer, pair_of(0, 1));
  world.restart();
  EXPECT_EQ(world.init("tx").producer, pair_of(0, 2));
}

TEST(TransactionCoordinator, RefusesTimeoutsThatAreNotBetweenOneAndTheMaximum) {
  ImmediateTransactions world;
  for (const std::int32_t timeout : {-1, 0, 900'001}) {
    const TransactionAnswer answer = world.init("tx", timeout);
    EXPECT_EQ(answer.code, Code::kInvalidTransactionTimeout);
    EXPECT_THAT(answer.message, HasSubstr("transaction.max.timeout.ms 900000"));
    EXPECT_EQ(answer.status().error().code(), Errc::kInvalidConfig);
  }
  EXPECT_EQ(world.init("tx", 900'000).code, Code::kNone);
}

TEST(TransactionCoordinator, RefusesAnEmptyId) {
  ImmediateTransactions world;
  EXPECT_EQ(world.init("").code, Code::kInvalidRequest);
  EXPECT_EQ(world.add("", pair_of(0, 0), {kFirst}).code, Code::kInvalidRequest);
  EXPECT_EQ(world.end("", pair_of(0, 0), true).code, Code::kInvalidRequest);
}

// KIP-360.
TEST(TransactionCoordinator, AProducerThatGoesOnKeepsItsIdAndIsAnsweredTheSameTwice) {
  ImmediateTransactions world;
  world.init("tx");
  const TransactionAnswer first = world.init("tx", 60'000, pair_of(0, 0));
  EXPECT_EQ(first.producer, pair_of(0, 1));
  // The answer was lost and it asks again.
  EXPECT_EQ(world.init("tx", 60'000, pair_of(0, 0)).producer, pair_of(0, 1));
  // Another producer comes; the first is a zombie from now on.
  EXPECT_EQ(world.init("tx").producer, pair_of(0, 2));
  const TransactionAnswer zombie = world.init("tx", 60'000, pair_of(0, 1));
  EXPECT_EQ(zombie.code, Code::kProducerFenced);
  EXPECT_THAT(zombie.message, HasSubstr("epoch 1 of producer 0 is not the present epoch 2"));
  EXPECT_EQ(world.init("tx", 60'000, pair_of(9, 0)).code, Code::kProducerFenced);
}

TEST(TransactionCoordinator, UsedUpEpochsLeadToANewProducer) {
  ImmediateTransactions world;
  world.next_producer_id = 8;
  give(world, "tx", value_of(pair_of(7, 32'766)));

  EXPECT_EQ(world.init("tx", 60'000, pair_of(7, 32'766)).producer, pair_of(8, 0));
  // The same again: its answer was lost.
  EXPECT_EQ(world.init("tx", 60'000, pair_of(7, 32'766)).producer, pair_of(8, 0));
}

TEST(TransactionCoordinator, UsedUpEpochsAreReplacedByTheEndOfATransaction) {
  ImmediateTransactions world;
  world.next_producer_id = 8;
  give(world, "tx", value_of(pair_of(7, 32'766)));
  world.add("tx", pair_of(7, 32'766), {kFirst});
  const TransactionAnswer ended = world.end("tx", pair_of(7, 32'766), true);

  EXPECT_EQ(ended.producer, pair_of(8, 0));
  EXPECT_EQ(world.markers.back(),
            (ImmediateTransactions::Marker{kFirst, pair_of(7, 32'767), true}));
  EXPECT_EQ(world.producer("tx"), pair_of(8, 0));
  world.restart();
  EXPECT_EQ(world.end("tx", pair_of(7, 32'766), true).producer, pair_of(8, 0));
  EXPECT_EQ(world.add("tx", pair_of(8, 0), {kFirst}).code, Code::kNone);
}

// Its markers were not all written when the coordinator stopped.
TEST(TransactionCoordinator, ANewProducerThatWasPromisedSurvivesARestart) {
  ImmediateTransactions world;
  world.next_producer_id = 8;
  give(world, "tx", value_of(pair_of(7, 32'766)));
  world.add("tx", pair_of(7, 32'766), {kFirst});
  world.hold_markers = true;
  EXPECT_EQ(world.end("tx", pair_of(7, 32'766), false).producer, pair_of(8, 0));
  EXPECT_EQ(world.status("tx"), TransactionStatus::kPrepareAbort);
  world.hold_markers = false;
  world.restart();

  EXPECT_EQ(world.producer("tx"), pair_of(8, 0));
  EXPECT_EQ(world.status("tx"), TransactionStatus::kCompleteAbort);
}

TEST(TransactionCoordinator, AddsPartitionsOnce) {
  ImmediateTransactions world;
  world.init("tx");
  world.add("tx", pair_of(0, 0), {kFirst});
  const std::size_t records = world.log.size();
  EXPECT_EQ(world.add("tx", pair_of(0, 0), {kFirst}).code, Code::kNone);
  EXPECT_EQ(world.log.size(), records);
  EXPECT_EQ(world.add("tx", pair_of(0, 0), {kFirst, kSecond}).code, Code::kNone);
  EXPECT_EQ(world.log.size(), records + 1);
}

TEST(TransactionCoordinator, VerifiesWithoutWriting) {
  ImmediateTransactions world;
  world.init("tx");
  world.add("tx", pair_of(0, 0), {kFirst});
  const std::size_t records = world.log.size();

  EXPECT_EQ(world.add("tx", pair_of(0, 0), {kFirst}, true).code, Code::kNone);
  const TransactionAnswer missing = world.add("tx", pair_of(0, 0), {kFirst, kSecond}, true);
  EXPECT_EQ(missing.code, Code::kTransactionAbortable);
  EXPECT_THAT(missing.message, HasSubstr("orders-1 is not in an open transaction"));
  EXPECT_EQ(world.add("tx", pair_of(0, 1), {kFirst}, true).code, Code::kProducerFenced);
  EXPECT_EQ(world.log.size(), records);
}

TEST(TransactionCoordinator, RefusesStrangersAndUnknownIds) {
  ImmediateTransactions world;
  world.init("tx");
  EXPECT_EQ(world.add("tx", pair_of(5, 0), {kFirst}).code, Code::kInvalidProducerIdMapping);
  EXPECT_EQ(world.add("other", pair_of(0, 0), {kFirst}).code, Code::kInvalidProducerIdMapping);
  EXPECT_EQ(world.end("other", pair_of(0, 0), true).code, Code::kInvalidProducerIdMapping);
  EXPECT_EQ(world.end("tx", pair_of(5, 0), true).code, Code::kInvalidProducerIdMapping);
}

TEST(TransactionCoordinator, ARepeatedEndIsAnsweredAsTheFirst) {
  ImmediateTransactions world;
  world.init("tx");
  world.add("tx", pair_of(0, 0), {kFirst});
  EXPECT_EQ(world.end("tx", pair_of(0, 0), true).producer, pair_of(0, 1));
  const std::size_t records = world.log.size();

  EXPECT_EQ(world.end("tx", pair_of(0, 0), true).producer, pair_of(0, 1));
  EXPECT_EQ(world.end("tx", pair_of(0, 0), false).code, Code::kInvalidTxnState);
  EXPECT_EQ(world.log.size(), records);
}

TEST(TransactionCoordinator, AbortsNothingAndRaisesTheEpoch) {
  ImmediateTransactions world;
  world.init("tx");
  EXPECT_EQ(world.end("tx", pair_of(0, 0), true).code, Code::kInvalidTxnState);
  EXPECT_EQ(world.end("tx", pair_of(0, 0), false).producer, pair_of(0, 1));
  EXPECT_EQ(world.end("tx", pair_of(0, 1), false).producer, pair_of(0, 2));
  EXPECT_TRUE(world.markers.empty());
}

TEST(TransactionCoordinator, AnOlderClientKeepsItsEpoch) {
  ImmediateTransactions world;
  world.client_version = 0;
  world.init("tx");
  world.add("tx", pair_of(0, 0), {kFirst});
  EXPECT_EQ(world.end("tx", pair_of(0, 0), true).producer, pair_of(0, 0));
  EXPECT_EQ(world.end("tx", pair_of(0, 0), true).code, Code::kNone);
  EXPECT_EQ(world.end("tx", pair_of(0, 0), false).code, Code::kInvalidTxnState);
}

TEST(TransactionCoordinator, RefusesAClientThatIsNewerThanItself) {
  TransactionCoordinatorOptions options;
  options.transaction_version = 0;
  ImmediateTransactions world(options);
  world.init("tx");
  EXPECT_EQ(world.add("tx", pair_of(0, 0), {kFirst}).code, Code::kInvalidRequest);
}

TEST(TransactionCoordinator, OneTransitionAtATime) {
  ImmediateTransactions world;
  world.init("tx");
  world.add("tx", pair_of(0, 0), {kFirst});
  world.hold_markers = true;
  EXPECT_EQ(world.end("tx", pair_of(0, 0), true).code, Code::kNone);  // decided, durably

  for (const TransactionAnswer& answer :
       {world.init("tx"), world.add("tx", pair_of(0, 1), {kFirst}),
        world.end("tx", pair_of(0, 0), true)}) {
    EXPECT_EQ(answer.code, Code::kConcurrentTransactions) << answer.message;
    EXPECT_TRUE(is_retriable(answer.status().error().code()));
    EXPECT_THAT(answer.message, HasSubstr("tx is in PrepareCommit"));
  }
  EXPECT_EQ(world.end("tx", pair_of(0, 0), false).code, Code::kInvalidTxnState);
}

TEST(TransactionCoordinator, MarkersThatFailAreWrittenAgainAtTheNextTick) {
  ImmediateTransactions world;
  world.init("tx");
  world.add("tx", pair_of(0, 0), {kFirst, kSecond});
  world.markers_fail = true;
  world.end("tx", pair_of(0, 0), true);
  world.tick();
  EXPECT_EQ(world.status("tx"), TransactionStatus::kPrepareCommit);
  world.markers_fail = false;
  world.tick();

  EXPECT_EQ(world.status("tx"), TransactionStatus::kCompleteCommit);
  EXPECT_EQ(world.markers.size(), 2U);
}

TEST(TransactionCoordinator, ADecidedTransactionIsCompletedAfterARestart) {
  ImmediateTransactions world;
  world.init("tx");
  world.add("tx", pair_of(0, 0), {kFirst, kSecond});
  world.hold_markers = true;
  world.end("tx", pair_of(0, 0), true);
  world.hold_markers = false;
  world.restart();

  EXPECT_EQ(world.status("tx"), TransactionStatus::kCompleteCommit);
  EXPECT_THAT(world.markers,
              ::testing::ElementsAre(ImmediateTransactions::Marker{kFirst, pair_of(0, 1), true},
                                     ImmediateTransactions::Marker{kSecond, pair_of(0, 1), true}));
}

TEST(TransactionCoordinator, ATimeoutAbortsAndFences) {
  ImmediateTransactions world;
  world.init("tx", 1000);
  world.add("tx", pair_of(0, 0), {kFirst});
  world.now += 1001;
  world.tick();

  EXPECT_EQ(world.markers.back(), (ImmediateTransactions::Marker{kFirst, pair_of(0, 1), false}));
  EXPECT_EQ(world.end("tx", pair_of(0, 0), true).code, Code::kInvalidTxnState);
  EXPECT_EQ(world.add("tx", pair_of(0, 0), {kFirst}).code, Code::kProducerFenced);
  // Version 2: its abort is done, and it goes on with the epoch that it is told.
  EXPECT_EQ(world.end("tx", pair_of(0, 0), false).producer, pair_of(0, 1));
}

TEST(TransactionCoordinator, ForgetsIdsThatDidNothingForLong) {
  ImmediateTransactions world;
  world.init("idle");
  world.init("open", 900'000);
  world.add("open", pair_of(1, 0), {kFirst});
  world.now += 7LL * 24 * 3600 * 1000;
  world.init("fresh");
  world.now += 1;
  world.tick();

  EXPECT_FALSE(world.core().describe("idle").has_value());
  EXPECT_TRUE(world.core().describe("fresh").has_value());
  EXPECT_TRUE(world.core().describe("open").has_value());  // it was aborted just now
  world.restart();
  EXPECT_EQ(world.core().size(), 2U);
}

TEST(TransactionCoordinator, RefusesMoreIdsThanItsBound) {
  TransactionCoordinatorOptions options;
  options.ids_max = 2;
  ImmediateTransactions world(options);
  world.init("a");
  world.init("b");
  const TransactionAnswer third = world.init("c");
  EXPECT_EQ(third.code, Code::kPolicyViolation);
  EXPECT_THAT(third.message, HasSubstr("the bound is 2"));
  EXPECT_EQ(world.init("a").code, Code::kNone);
}

TEST(TransactionCoordinator, RefusesMorePartitionsThanItsBound) {
  TransactionCoordinatorOptions options;
  options.partitions_per_transaction_max = 1;
  ImmediateTransactions world(options);
  world.init("tx");
  world.add("tx", pair_of(0, 0), {kFirst});
  const TransactionAnswer answer = world.add("tx", pair_of(0, 0), {kSecond});
  EXPECT_EQ(answer.code, Code::kPolicyViolation);
  EXPECT_THAT(answer.message, HasSubstr("2 partitions, at most 1"));
  EXPECT_EQ(world.end("tx", pair_of(0, 0), true).code, Code::kNone);
}

TEST(TransactionCoordinator, AnIdWhoseFirstRecordFailedIsNotKept) {
  ImmediateTransactions world;
  world.append_failure = Error(Errc::kNoSpace, "disk full");
  const TransactionAnswer answer = world.init("tx");
  EXPECT_EQ(answer.code, Code::kStorageError);
  EXPECT_EQ(answer.status().error().code(), Errc::kNoSpace);
  EXPECT_EQ(world.core().size(), 0U);
}

TEST(TransactionCoordinator, AStatusThatNoLogHasIsRefused) {
  TransactionCoordinator core({});
  const Status loaded =
      core.load("tx", value_of(pair_of(0, 0), TransactionStatus::kPrepareEpochFence));
  EXPECT_EQ(loaded.error().code(), Errc::kCorrupt);
}

// --- Reference R 4.3

// 59: KAFKA-17754, KAFKA-14402. A delayed EndTxn must not decide a later transaction.
TEST(TransactionCoordinatorBugs, Kafka17754DelayedEndTxnDoesNotDecideTheNextTransaction) {
  ImmediateTransactions world;
  world.init("tx");
  world.add("tx", pair_of(0, 0), {kFirst});
  world.end("tx", pair_of(0, 0), true);
  world.add("tx", pair_of(0, 1), {kSecond});
  for (const bool commit : {true, false}) {
    EXPECT_EQ(world.end("tx", pair_of(0, 0), commit).code, Code::kProducerFenced);
  }
  EXPECT_EQ(world.status("tx"), TransactionStatus::kOngoing);
}

// 60: KAFKA-14884. What was verified is verified again right before the append: an abort in
// between is seen.
TEST(TransactionCoordinatorBugs, Kafka14884AnAbortBetweenVerificationAndAppendIsSeen) {
  ImmediateTransactions world;
  world.client_version = 0;
  world.init("tx", 1000);
  world.add("tx", pair_of(0, 0), {kFirst});
  EXPECT_EQ(world.add("tx", pair_of(0, 0), {kFirst}, true).code, Code::kNone);
  world.now += 1001;
  world.tick();
  EXPECT_EQ(world.add("tx", pair_of(0, 0), {kFirst}, true).code, Code::kProducerFenced);
}

// 61: KAFKA-10080. A completion that is reported twice writes one record.
TEST(TransactionCoordinatorBugs, Kafka10080ACompletionIsWrittenOnce) {
  ImmediateTransactions world;
  world.init("tx");
  world.add("tx", pair_of(0, 0), {kFirst});
  world.hold_markers = true;
  world.end("tx", pair_of(0, 0), true);
  const std::size_t records = world.log.size();
  const WriteTransactionMarkers markers = world.held.at(0);
  for (int i = 0; i < 2; ++i) {
    TransactionEffects effects;
    world.core().on_markers_written(markers.token, markers.partitions, world.now, effects);
    EXPECT_EQ(effects.size(), i == 0 ? 1U : 0U);
    world.run(std::move(effects));
  }
  EXPECT_EQ(world.log.size(), records + 1);
}

// 62: KAFKA-9666. A fencing abort that could not be written does not use up epochs.
TEST(TransactionCoordinatorBugs, Kafka9666AFailedFenceDoesNotRaiseTheEpoch) {
  ImmediateTransactions world;
  world.init("tx");
  world.add("tx", pair_of(0, 0), {kFirst});
  world.append_failure = Error(Errc::kNoSpace, "disk full");
  for (int i = 0; i < 40'000; ++i) {  // more than there are epochs
    ASSERT_EQ(world.init("tx").code, Code::kStorageError);
  }
  EXPECT_EQ(world.producer("tx"), pair_of(0, 0));
  world.append_failure = Status();
  EXPECT_EQ(world.init("tx").code, Code::kConcurrentTransactions);
  EXPECT_EQ(world.init("tx").producer, pair_of(0, 2));
}

}  // namespace
}  // namespace weir::log
