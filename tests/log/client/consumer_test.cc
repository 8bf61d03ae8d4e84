#include "tests/log/client/consumer_world.h"
#include "tests/log/partition/log_on_disk.h"

#include <weir/log/consumer.h>

#include <gtest/gtest.h>

#include <map>
#include <thread>

namespace weir::log {
namespace {

using testing::both_logs;
using testing::ConsumerWorld;
using testing::kind_name;
using testing::kLines;
using testing::Listener;
using testing::poll;
using testing::poll_error;
using testing::Values;

const TopicPartition kOther{"lines", PartitionId(1)};

using OnBoth = testing::OnBothLogs;

class ConsumerPoll : public OnBoth {};
INSTANTIATE_TEST_SUITE_P(Log, ConsumerPoll, both_logs(), kind_name);

TEST_P(ConsumerPoll, GoesOnBehindItsCommit) {
  world_.create();
  world_.send({"a", "b"});
  {
    const auto consumer = world_.reader("g", "earliest");
    EXPECT_EQ(poll(*consumer).size(), 2U);
    ASSERT_TRUE(consumer->commit().ok());
  }
  world_.send({"c"});
  for (const char* reset : {"earliest", "latest", "none"}) {
    const auto consumer = world_.reader("g", reset);
    EXPECT_EQ(consumer->committed(kLines).value()->offset, Offset(2));
    EXPECT_EQ(poll(*consumer), (Values{"c"})) << reset;
  }
}

TEST_P(ConsumerPoll, GivesTheRestOfABatchNextTime) {
  world_.create();
  world_.send({"0", "1", "2", "3", "4"});
  world_.send({"5", "6"});
  ConsumerOptions options = world_.options("g", "earliest");
  options.poll_records_max = 3;
  const auto consumer = world_.open(options);
  ASSERT_TRUE(consumer->assign({kLines}).ok());

  const ConsumerRecords first = consumer->poll(Duration::zero()).value();
  EXPECT_EQ(testing::values_of(first), (Values{"0", "1", "2"}));
  EXPECT_EQ(first.count(), 3U);
  ASSERT_EQ(first.batches().size(), 1U);
  EXPECT_EQ(first.batches()[0].next_offset, Offset(3));
  EXPECT_EQ(first.batches()[0].high_watermark, Offset(7));
  EXPECT_EQ(consumer->position(kLines).value(), Offset(3));
  ASSERT_TRUE(consumer->commit().ok());
  EXPECT_EQ(world_.committed("g"), 3);

  const ConsumerRecords second = consumer->poll(Duration::zero()).value();
  EXPECT_EQ(testing::values_of(second), (Values{"3", "4", "5"}));
  EXPECT_EQ(second.batches().size(), 2U);
  EXPECT_EQ(consumer->position(kLines).value(), Offset(6));
  EXPECT_EQ(testing::values_of(first), (Values{"0", "1", "2"})) << "views stay valid";
  EXPECT_EQ(poll(*consumer), (Values{"6"}));
  EXPECT_EQ(poll(*consumer), Values{});
  EXPECT_EQ(consumer->position(kLines).value(), Offset(7));
}

TEST_P(ConsumerPoll, IteratesSingleRecordsOfSeveralPartitions) {
  world_.create("lines", 2);
  world_.send({"a", "b"});
  world_.send({"x"}, kOther);
  const auto consumer = world_.open("", "earliest");
  ASSERT_TRUE(consumer->assign({kLines, kOther}).ok());
  const ConsumerRecords records = consumer->poll(Duration::zero()).value();

  std::map<std::string, std::vector<std::int64_t>> offsets;
  for (const auto& [partition, record] : records) {
    EXPECT_EQ(record.timestamp, world_.clock().now());
    offsets[partition.to_string()].push_back(record.offset.value());
  }

  EXPECT_EQ(offsets, (std::map<std::string, std::vector<std::int64_t>>{{"lines-0", {0, 1}},
                                                                       {"lines-1", {0}}}));
  EXPECT_FALSE(records.empty());
  EXPECT_EQ(ConsumerRecords().begin(), ConsumerRecords().end());
}

TEST_P(ConsumerPoll, KeepsWhatWasFetchedOfAPausedPartition) {
  world_.create("lines", 2);
  world_.send({"a", "b", "c"});
  world_.send({"x"}, kOther);
  ConsumerOptions options = world_.options("", "earliest");
  options.poll_records_max = 1;
  const auto consumer = world_.open(options);
  ASSERT_TRUE(consumer->assign({kLines, kOther}).ok());
  EXPECT_EQ(poll(*consumer), (Values{"a"}));

  ASSERT_TRUE(consumer->pause({kLines}).ok());
  EXPECT_EQ(consumer->paused(), (std::vector<TopicPartition>{kLines}));
  EXPECT_EQ(poll(*consumer), (Values{"x"}));
  EXPECT_EQ(poll(*consumer), Values{});
  EXPECT_EQ(consumer->position(kLines).value(), Offset(1));
  ASSERT_TRUE(consumer->resume({kLines}).ok());
  EXPECT_EQ(poll(*consumer), (Values{"b"}));

  EXPECT_TRUE(consumer->paused().empty());
}

TEST_P(ConsumerPoll, SeeksToOffsetsEndsAndTimes) {
  world_.create();
  world_.send({"a"});
  world_.clock().advance(std::chrono::seconds(10));
  const Timestamp later = world_.clock().now();
  world_.send({"b"});
  const auto consumer = world_.reader("", "latest");

  ASSERT_TRUE(consumer->seek_to_beginning({kLines}).ok());
  EXPECT_EQ(poll(*consumer), (Values{"a", "b"}));
  ASSERT_TRUE(consumer->seek(kLines, Offset(1)).ok());
  EXPECT_EQ(poll(*consumer), (Values{"b"}));
  ASSERT_TRUE(consumer->seek_to_time(kLines, later).ok());
  EXPECT_EQ(poll(*consumer), (Values{"b"}));
  ASSERT_TRUE(consumer->seek_to_time(kLines, later + 1).ok());
  EXPECT_EQ(poll(*consumer), Values{});
  ASSERT_TRUE(consumer->seek_to_end().ok());
  world_.send({"c"});
  EXPECT_EQ(consumer->position(kLines).value(), Offset(3)) << "the end is looked up when needed";
}

TEST_P(ConsumerPoll, KeepsOtherPartitionsRecordsWhenOneFails) {
  world_.create("lines", 2);
  world_.send({"a", "b"});
  world_.send({"x", "y"}, kOther);
  const auto consumer = world_.open("", "none");
  ASSERT_TRUE(consumer->assign({kLines, kOther}).ok());
  ASSERT_TRUE(consumer->seek(kLines, Offset(9)).ok());
  ASSERT_TRUE(consumer->seek(kOther, Offset(0)).ok());

  EXPECT_EQ(poll_error(*consumer), Errc::kOffsetOutOfRange);
  EXPECT_EQ(poll(*consumer), (Values{"x", "y"}));
  EXPECT_EQ(poll_error(*consumer), Errc::kOffsetOutOfRange);
  ASSERT_TRUE(consumer->pause({kLines}).ok());
  EXPECT_EQ(poll(*consumer), Values{});
  world_.send({"z"}, kOther);
  EXPECT_EQ(poll(*consumer), (Values{"z"}));
}

TEST_P(ConsumerPoll, ReassignmentKeepsPositionAndPauseOfThoseThatStay) {
  world_.create("lines", 2);
  world_.send({"a", "b"});
  world_.send({"x"}, kOther);
  ConsumerOptions options = world_.options("", "earliest");
  options.poll_records_max = 1;
  const auto consumer = world_.open(options);
  ASSERT_TRUE(consumer->assign({kLines, kLines}).ok()) << "twice is once";
  EXPECT_EQ(poll(*consumer), (Values{"a"}));
  ASSERT_TRUE(consumer->pause({kLines}).ok());

  ASSERT_TRUE(consumer->assign({kOther, kLines}).ok());

  EXPECT_EQ(consumer->assignment(), (std::vector<TopicPartition>{kOther, kLines}));
  EXPECT_EQ(poll(*consumer), (Values{"x"}));
  EXPECT_EQ(poll(*consumer), Values{});
  ASSERT_TRUE(consumer->resume({kLines}).ok());
  EXPECT_EQ(poll(*consumer), (Values{"b"}));
}

TEST_P(ConsumerPoll, WakesUpThePresentOrTheNext) {
  world_.create();
  const auto consumer = world_.reader("", "earliest");
  consumer->wakeup();
  EXPECT_EQ(consumer->poll(std::chrono::hours(1))->count(), 0U);

  std::thread waker([&] { consumer->wakeup(); });
  EXPECT_EQ(consumer->poll(Duration::max())->count(), 0U);
  waker.join();

  world_.send({"a"});
  consumer->wakeup();
  EXPECT_EQ(poll(*consumer), Values{});
  EXPECT_EQ(poll(*consumer), (Values{"a"})) << "nothing was lost";
}

TEST_P(ConsumerPoll, NamesItsMistakes) {
  world_.create();
  const auto consumer = world_.open("", "earliest");
  EXPECT_EQ(poll_error(*consumer), Errc::kInvalidArgument) << "nothing assigned";
  for (const Status& status :
       {consumer->seek(kLines, Offset(0)), consumer->pause({kLines}), consumer->resume({kLines}),
        consumer->seek_to_end({kLines}), consumer->position(kLines).status(), consumer->commit(),
        consumer->commit_async(), consumer->subscribe({"lines"})}) {
    ASSERT_FALSE(status.ok());
    EXPECT_EQ(status.error().code(), Errc::kInvalidArgument);
  }
  ASSERT_TRUE(consumer->assign({{"nothing", PartitionId(0)}, kLines}).ok());
  const auto polled = consumer->poll(Duration::zero());
  EXPECT_EQ(polled.error().code(), Errc::kUnknownTopic);
  EXPECT_NE(polled.error().message().find("nothing"), std::string::npos);
  EXPECT_EQ(consumer->seek(kLines, Offset(-1)).error().code(), Errc::kInvalidArgument);
  ASSERT_TRUE(consumer->close().ok());
  ASSERT_TRUE(consumer->close().ok());
  EXPECT_EQ(poll_error(*consumer), Errc::kClosed);
  EXPECT_EQ(consumer->assign({kLines}).error().code(), Errc::kClosed);
}

TEST_P(ConsumerPoll, FindsATopicThatIsMadeLater) {
  const auto consumer = world_.reader("", "earliest");
  EXPECT_EQ(poll_error(*consumer), Errc::kUnknownTopic);
  EXPECT_EQ(poll_error(*consumer), Errc::kUnknownTopic);
  world_.create();
  world_.send({"a"});
  EXPECT_EQ(poll(*consumer), (Values{"a"}));
}

class ConsumerOffsetsOf : public OnBoth {};
INSTANTIATE_TEST_SUITE_P(Log, ConsumerOffsetsOf, both_logs(), kind_name);

TEST_P(ConsumerOffsetsOf, AnyPartitionCanBeAsked) {
  world_.create("lines", 2, {{"segment.bytes", "200"}});
  for (int i = 0; i < 5; ++i) {
    world_.send({std::to_string(i)});
  }
  world_.delete_before(2);
  const auto consumer = world_.open("", "earliest");

  EXPECT_EQ(consumer->beginning_offsets({kLines, kOther}).value(),
            (std::map<TopicPartition, Offset>{{kLines, Offset(2)}, {kOther, Offset(0)}}));
  EXPECT_EQ(consumer->end_offsets({kLines, kOther}).value(),
            (std::map<TopicPartition, Offset>{{kLines, Offset(5)}, {kOther, Offset(0)}}));
  EXPECT_EQ(consumer->end_offsets({{"nothing", PartitionId(0)}}).error().code(),
            Errc::kUnknownTopic);
}

TEST_P(ConsumerOffsetsOf, TimesAreThoseOfTheFirstRecordNotOlder) {
  world_.create("lines", 2);
  const Timestamp start = world_.clock().now();
  world_.send({"0", "1"});
  world_.clock().advance(std::chrono::seconds(10));
  world_.send({"2"});
  const auto consumer = world_.open("", "earliest");
  const auto ask = [&](Timestamp time) {
    return consumer->offsets_for_times({{kLines, time}})->at(kLines);
  };
  const LeaderEpoch epoch = world_.log().admin().offsets(kLines)->leader_epoch;

  EXPECT_EQ(ask(0), (OffsetAndTimestamp{Offset(0), start, epoch}));
  EXPECT_EQ(ask(start), (OffsetAndTimestamp{Offset(0), start, epoch}));
  EXPECT_EQ(ask(start + 1), (OffsetAndTimestamp{Offset(2), start + 10'000, epoch}));
  EXPECT_EQ(ask(start + 10'001), std::nullopt);
  EXPECT_EQ(consumer->offsets_for_times({{kOther, 0}})->at(kOther), std::nullopt);
  EXPECT_EQ(consumer->offsets_for_times({{kLines, -1}}).error().code(), Errc::kInvalidArgument);
}

TEST_P(ConsumerOffsetsOf, LagIsCountedFromPositionOrCommit) {
  world_.create();
  world_.send({"0", "1", "2", "3", "4"});
  ConsumerOptions options = world_.options("g", "earliest");
  options.poll_records_max = 3;
  options.auto_commit = false;
  const auto consumer = world_.open(options);
  ASSERT_TRUE(consumer->assign({kLines}).ok());
  EXPECT_EQ(consumer->committed_lag(kLines).value(), std::nullopt);
  EXPECT_EQ(consumer->current_lag(kLines).value(), 5);
  poll(*consumer);
  ASSERT_TRUE(consumer->commit({{kLines, {Offset(1), kNoLeaderEpoch, ""}}}).ok());

  EXPECT_EQ(consumer->current_lag(kLines).value(), 2);
  EXPECT_EQ(consumer->committed_lag(kLines).value(), 4);
  ASSERT_TRUE(consumer->commit({{kLines, {Offset(99), kNoLeaderEpoch, ""}}}).ok());
  EXPECT_EQ(consumer->committed_lag(kLines).value(), 0);
}

class ConsumerCommit : public OnBoth {};
INSTANTIATE_TEST_SUITE_P(Log, ConsumerCommit, both_logs(), kind_name);

TEST_P(ConsumerCommit, NeverMovesAnotherGroup) {
  world_.create();
  world_.send({"a"});
  const auto one = world_.reader("one", "earliest");
  const auto other = world_.reader("other", "earliest");
  poll(*one);
  ASSERT_TRUE(one->commit().ok());

  EXPECT_FALSE(other->committed(kLines)->has_value());
  EXPECT_EQ(poll(*other), (Values{"a"}));
}

TEST_P(ConsumerCommit, OfExplicitOffsetsKeepsMetadataAndEpoch) {
  world_.create("lines", 2);
  const auto consumer = world_.open("g", "earliest");
  const ConsumerOffsets offsets{{kLines, {Offset(3), LeaderEpoch(0), "three"}},
                                {kOther, {Offset(4), kNoLeaderEpoch, ""}}};
  ASSERT_TRUE(consumer->commit(offsets).ok()) << "of unassigned partitions, too";

  const auto found = consumer->committed(std::vector<TopicPartition>{kLines, kOther}).value();
  EXPECT_EQ(found.at(kLines)->offset, Offset(3));
  EXPECT_EQ(found.at(kLines)->leader_epoch, LeaderEpoch(0));
  EXPECT_EQ(found.at(kLines)->metadata, "three");
  EXPECT_EQ(found.at(kOther)->offset, Offset(4));
  EXPECT_EQ(consumer->commit({{kLines, {Offset(-1), kNoLeaderEpoch, ""}}}).error().code(),
            Errc::kInvalidArgument);
  EXPECT_EQ(consumer->commit({{kLines, {Offset(1), {}, std::string(4097, 'm')}}}).error().code(),
            Errc::kInvalidArgument);
  EXPECT_EQ(consumer->commit({{{"nothing", PartitionId(0)}, {Offset(1), {}, ""}}}).error().code(),
            Errc::kUnknownTopic);
  EXPECT_EQ(world_.committed("g"), 3);
}

TEST_P(ConsumerCommit, AsyncIsDoneInOrderAndToldOnTheCallersThread) {
  world_.create();
  const auto consumer = world_.reader("g", "earliest");
  std::vector<std::string> told;
  const auto thread = std::this_thread::get_id();
  const auto tell = [&](const ConsumerOffsets& offsets, const Status& status) {
    EXPECT_EQ(std::this_thread::get_id(), thread);
    told.push_back(offsets.begin()->second.metadata + (status.ok() ? " ok" : " failed"));
  };
  for (std::int64_t i = 0; i < 50; ++i) {
    const std::string metadata = std::to_string(i) + (i == 20 ? std::string(5000, '!') : "");
    ASSERT_TRUE(
        consumer->commit_async({{kLines, {Offset(i), kNoLeaderEpoch, metadata}}}, tell).ok());
  }
  ASSERT_TRUE(consumer->commit({{kLines, {Offset(100), kNoLeaderEpoch, "sync"}}}).ok());

  ASSERT_EQ(told.size(), 50U) << "before the commit behind them";
  for (std::size_t i = 0; i < 50; ++i) {
    EXPECT_EQ(told[i].substr(0, 2), (std::to_string(i) + " ").substr(0, 2));
    EXPECT_EQ(told[i].find("failed") != std::string::npos, i == 20) << i;
  }
  EXPECT_EQ(world_.committed("g"), 100);
}

TEST_P(ConsumerCommit, ACallbackMayCommit) {
  world_.create();
  const auto consumer = world_.reader("g", "earliest");
  int told = 0;
  ASSERT_TRUE(consumer
                  ->commit_async({{kLines, {Offset(1), {}, ""}}},
                                 [&](const ConsumerOffsets&, const Status&) {
                                   ++told;
                                   EXPECT_TRUE(
                                       consumer->commit({{kLines, {Offset(2), {}, ""}}}).ok());
                                 })
                  .ok());
  ASSERT_TRUE(consumer->close().ok());

  EXPECT_EQ(told, 1);
}

// KafkaConsumer javadoc, "Automatic Offset Committing": what a poll gave is processed when the next
// poll is called, so only that is committed.
TEST_P(ConsumerCommit, AutomaticCommitsWhatThePollBeforeGave) {
  world_.create();
  world_.send({"0"});
  const auto consumer = world_.reader("g", "earliest");
  EXPECT_EQ(poll(*consumer), (Values{"0"}));
  EXPECT_EQ(consumer->committed(kLines).value(), std::nullopt);
  world_.clock().advance(std::chrono::milliseconds(4999));
  world_.send({"1"});
  EXPECT_EQ(poll(*consumer), (Values{"1"}));
  EXPECT_EQ(consumer->committed(kLines).value(), std::nullopt) << "5 s are not over";

  world_.clock().advance(std::chrono::milliseconds(1));
  world_.send({"2"});
  EXPECT_EQ(poll(*consumer), (Values{"2"}));
  EXPECT_EQ(consumer->committed(kLines).value()->offset, Offset(2)) << "not record 2";

  world_.clock().advance(std::chrono::seconds(5));
  EXPECT_EQ(poll(*consumer), Values{});
  EXPECT_EQ(consumer->committed(kLines).value()->offset, Offset(3));
}

TEST_P(ConsumerCommit, AutomaticCommitsAtCloseAndWhenTheAssignmentChanges) {
  world_.create("lines", 2);
  world_.send({"0", "1"});
  world_.send({"x"}, kOther);
  const auto consumer = world_.reader("g", "earliest");
  poll(*consumer);
  ASSERT_TRUE(consumer->assign({kOther}).ok());
  EXPECT_EQ(world_.committed("g"), 2);
  poll(*consumer);
  EXPECT_EQ(world_.committed("g", kOther), -1);

  ASSERT_TRUE(consumer->close().ok());

  EXPECT_EQ(world_.committed("g", kOther), 1);
}

TEST_P(ConsumerCommit, AutomaticKeepsAPositionThatNoRecordMoved) {
  world_.create();
  world_.send({"0"});
  {
    const auto consumer = world_.reader("g", "latest");
    EXPECT_EQ(poll(*consumer), Values{});
    ASSERT_TRUE(consumer->close().ok());
  }
  world_.send({"1"});

  EXPECT_EQ(poll(*world_.reader("g", "latest")), (Values{"1"})) << "came while nobody read";
}

TEST_P(ConsumerCommit, NothingIsCommittedWithoutCloseOrWithoutAutomaticCommit) {
  world_.create();
  world_.send({"0"});
  poll(*world_.reader("dies", "earliest"));
  EXPECT_EQ(world_.committed("dies"), -1);

  ConsumerOptions options = world_.options("off", "earliest");
  options.auto_commit = false;
  const auto consumer = world_.open(options);
  ASSERT_TRUE(consumer->assign({kLines}).ok());
  poll(*consumer);
  world_.clock().advance(std::chrono::hours(1));
  poll(*consumer);
  ASSERT_TRUE(consumer->close().ok());
  EXPECT_EQ(world_.committed("off"), -1);
}

class ConsumerSubscribe : public OnBoth {};
INSTANTIATE_TEST_SUITE_P(Log, ConsumerSubscribe, both_logs(), kind_name);

TEST_P(ConsumerSubscribe, ReadsEveryPartitionAlsoOfTopicsThatAreMadeLater) {
  world_.create("lines", 2);
  world_.send({"a"}, kOther);
  Listener listener;
  const auto consumer = world_.open("g", "earliest");
  ASSERT_TRUE(consumer->subscribe({"lines", "later"}, &listener).ok());
  EXPECT_EQ(listener.take(), Values{}) << "only poll() calls back";
  EXPECT_EQ(poll(*consumer), (Values{"a"}));
  EXPECT_EQ(listener.take(), (Values{"assigned lines-0 lines-1"}));

  world_.create("later");
  world_.send({"b"}, {"later", PartitionId(0)});
  EXPECT_EQ(poll(*consumer), (Values{"b"}));
  EXPECT_EQ(listener.take(), (Values{"assigned later-0"}));
  EXPECT_EQ(consumer->position(kOther).value(), Offset(1)) << "the others stay where they are";
  EXPECT_EQ(consumer->subscription(), (Values{"lines", "later"}));

  ASSERT_TRUE(world_.log().admin().delete_topic("later").ok());
  EXPECT_EQ(poll(*consumer), Values{});
  EXPECT_EQ(listener.take(), (Values{"lost later-0"}));
  EXPECT_EQ(consumer->assignment().size(), 2U);
}

TEST_P(ConsumerSubscribe, ANewSubscriptionRevokesWhatItLeavesOut) {
  world_.create("lines");
  world_.create("words");
  world_.send({"a"});
  Listener listener;
  const auto consumer = world_.open("g", "earliest");
  ASSERT_TRUE(consumer->subscribe({"lines"}, &listener).ok());
  EXPECT_EQ(poll(*consumer), (Values{"a"}));
  listener.take();

  ASSERT_TRUE(consumer->subscribe({"words"}, &listener).ok());
  poll(*consumer);

  EXPECT_EQ(listener.take(), (Values{"revoked lines-0", "assigned words-0"}));
  EXPECT_EQ(world_.committed("g"), 1) << "automatic commit comes before the revocation";
}

// Seeks in on_assigned, commits in on_revoked.
class Steering : public Listener {
 public:
  Consumer* consumer = nullptr;
  void on_assigned(std::span<const TopicPartition> partitions) override {
    Listener::on_assigned(partitions);
    EXPECT_TRUE(consumer->seek(partitions[0], Offset(2)).ok());
  }
  void on_revoked(std::span<const TopicPartition> partitions) override {
    Listener::on_revoked(partitions);
    EXPECT_TRUE(consumer->commit().ok());
  }
};

TEST_P(ConsumerSubscribe, TheListenerMaySeekAndCommit) {
  world_.create();
  world_.send({"0", "1", "2"});
  Steering listener;
  ConsumerOptions options = world_.options("g", "earliest");
  options.auto_commit = false;
  const auto consumer = world_.open(options);
  listener.consumer = consumer.get();
  ASSERT_TRUE(consumer->subscribe({"lines"}, &listener).ok());

  EXPECT_EQ(poll(*consumer), (Values{"2"}));
  ASSERT_TRUE(consumer->unsubscribe().ok());

  EXPECT_EQ(listener.take(), (Values{"assigned lines-0", "revoked lines-0"}));
  EXPECT_EQ(world_.committed("g"), 3);
  EXPECT_TRUE(consumer->assignment().empty());
  EXPECT_EQ(poll_error(*consumer), Errc::kInvalidArgument);
}

TEST_P(ConsumerSubscribe, CloseRevokesCommitsAndLeaves) {
  world_.create();
  world_.send({"a"});
  Listener listener;
  const auto consumer = world_.open("g", "earliest");
  ASSERT_TRUE(consumer->subscribe({"lines"}, &listener).ok());
  poll(*consumer);
  ASSERT_TRUE(consumer->close().ok());

  EXPECT_EQ(listener.take(), (Values{"assigned lines-0", "revoked lines-0"}));
  EXPECT_EQ(world_.committed("g"), 1);
  world_.send({"b"});
  const auto next = world_.open("g", "none");
  ASSERT_TRUE(next->subscribe({"lines"}).ok());
  EXPECT_EQ(poll(*next), (Values{"b"}));
}

TEST_P(ConsumerSubscribe, IsEitherThatOrAssign) {
  world_.create();
  const auto consumer = world_.open("g", "earliest");
  ASSERT_TRUE(consumer->assign({kLines}).ok());
  EXPECT_EQ(consumer->subscribe({"lines"}).error().code(), Errc::kInvalidArgument);
  ASSERT_TRUE(consumer->unsubscribe().ok());
  ASSERT_TRUE(consumer->subscribe({"lines"}).ok());
  EXPECT_EQ(consumer->assign({kLines}).error().code(), Errc::kInvalidArgument);
  ASSERT_TRUE(consumer->subscribe({}).ok()) << "without topics: unsubscribe";
  EXPECT_TRUE(consumer->assign({kLines}).ok());
}

// A commit whose sync does not come.
TEST(ConsumerEmbedded, PollsWhileAnAsyncCommitIsUnderWay) {
  ConsumerWorld world(ConsumerWorld::Kind::kEmbedded);
  world.create();
  world.send({"a", "b"});
  world.commit("g", 0);
  ConsumerOptions options = world.options("g", "earliest");
  options.poll_records_max = 1;
  const auto consumer = world.open(options);
  ASSERT_TRUE(consumer->assign({kLines}).ok());
  EXPECT_EQ(poll(*consumer), (Values{"a"}));
  world.fixture().files->hold_submits(true);
  bool told = false;
  ASSERT_TRUE(
      consumer->commit_async([&](const ConsumerOffsets&, const Status&) { told = true; }).ok());

  EXPECT_EQ(poll(*consumer), (Values{"b"}));

  EXPECT_FALSE(told);
  world.fixture().files->hold_submits(false);
  world.fixture().files->run_submitted();
  ASSERT_TRUE(consumer->close().ok());
  EXPECT_TRUE(told);
  EXPECT_EQ(world.committed("g"), 2);
}

TEST(ConsumerMemory, AFailedAutomaticCommitStopsNobodyAndIsTriedAgain) {
  ConsumerWorld world(ConsumerWorld::Kind::kMemory);
  world.create();
  world.send({"a"});
  const auto consumer = world.reader("g", "earliest");
  poll(*consumer);
  static_cast<weir::testing::MemoryBackend&>(world.log())
      .fail_next(weir::testing::MemoryBackend::FaultPoint::kCommit,
                 Error(Errc::kNoSpace, "no room"));
  world.clock().advance(std::chrono::seconds(5));
  EXPECT_EQ(poll(*consumer), Values{});
  EXPECT_EQ(consumer->committed(kLines).value(), std::nullopt);

  world.clock().advance(std::chrono::seconds(5));
  EXPECT_EQ(poll(*consumer), Values{});

  EXPECT_EQ(consumer->committed(kLines).value()->offset, Offset(1));
}

TEST(ConsumerOptions, AreReadByKafkasNames) {
  const auto options = ConsumerOptions::parse({{"group.id", "g"},
                                               {"auto.offset.reset", "by_duration:P1DT2H"},
                                               {"enable.auto.commit", "false"},
                                               {"auto.commit.interval.ms", "7"},
                                               {"max.poll.records", "9"},
                                               {"isolation.level", "read_committed"}});
  ASSERT_TRUE(options.ok()) << options.error().to_string();
  EXPECT_FALSE(options->auto_commit);
  EXPECT_EQ(options->auto_commit_interval, std::chrono::milliseconds(7));
  EXPECT_EQ(options->poll_records_max, 9U);
  ConsumerWorld world(ConsumerWorld::Kind::kMemory);
  EXPECT_TRUE(Consumer::open(world.log(), *options).ok());

  const auto defaults = ConsumerOptions::parse({});
  ASSERT_TRUE(defaults.ok());
  EXPECT_TRUE(defaults->auto_commit);
  EXPECT_EQ(defaults->poll_records_max, 500U);
  EXPECT_EQ(defaults->auto_commit_interval, std::chrono::seconds(5));
  const auto wrong = ConsumerOptions::parse({{"auto.offset.reset", "middle"}, {"group.i", "g"}});
  ASSERT_FALSE(wrong.ok());
  EXPECT_EQ(wrong.error().code(), Errc::kInvalidConfig);
  for (const char* part : {"middle", "group.id"}) {
    EXPECT_NE(wrong.error().message().find(part), std::string::npos) << wrong.error().message();
  }
  EXPECT_EQ(ConsumerOptions::parse({{"enable.auto.commit", "true"}}).error().code(),
            Errc::kInvalidConfig);
}

// Durations as java.time.Duration.parse reads them.
TEST(ConsumerOptions, DurationsAreIso8601) {
  for (const char* right : {"PT0S", "P2D", "PT15M", "PT10H", "P2DT3H4M", "PT20.345S", "PT1H0.5S"}) {
    EXPECT_TRUE(
        ConsumerOptions::parse({{"auto.offset.reset", std::string("by_duration:") + right}}).ok())
        << right;
  }
  for (const char* wrong : {"", "P", "PT", "P1", "PT1", "1D", "P-1D", "PT-1S", "P1DT", "PT1S2H",
                            "PT1M1M", "P1.5D", "PT1.5H", "PT S", "P1H", "P99999999D", "PTS"}) {
    const auto parsed =
        ConsumerOptions::parse({{"auto.offset.reset", std::string("by_duration:") + wrong}});
    ASSERT_FALSE(parsed.ok()) << wrong;
    EXPECT_NE(parsed.error().message().find("PnDTnHnMn.nS"), std::string::npos);
  }
}

// tests/data/log/rolls: segments that Kafka wrote, copied into a data directory, and what its
// broker answered to offsetsForTimes.
TEST(ConsumerEmbedded, AnswersTimesOverACopiedFolderAsKafka) {
  for (const char* name : {"size", "time", "index-full", "logappendtime", "lz4"}) {
    SCOPED_TRACE(name);
    const std::string folder = std::string("rolls/") + name;
    const nlohmann::json expected = testing::json_of(folder + "/expected.json");
    ConsumerWorld world(ConsumerWorld::Kind::kEmbedded);
    world.create();
    world.fixture().crash();
    const Result<std::vector<DirectoryEntry>> entries =
        posix_file_system().list(testing::data_folder(folder));
    ASSERT_TRUE(entries.ok());
    weir::testing::MemoryFileSystem& files = *world.fixture().files;
    ASSERT_TRUE(files.create_directories("data/log/lines-0").ok());
    for (const DirectoryEntry& entry : *entries) {
      if (entry.name != "partition.metadata") {
        testing::write_text(
            files, join_path("data/log/lines-0", entry.name),
            testing::file_text(posix_file_system(),
                               join_path(testing::data_folder(folder), entry.name)));
      }
    }
    world.fixture().open();
    const auto consumer = world.open("", "earliest");
    EXPECT_EQ(consumer->end_offsets({kLines})->at(kLines).value(),
              expected["logEndOffset"].get<std::int64_t>());
    for (const nlohmann::json& question : expected["offsetsForTimes"]) {
      const auto time = question["time"].get<Timestamp>();
      const auto answer = consumer->offsets_for_times({{kLines, time}});
      ASSERT_TRUE(answer.ok()) << answer.error().to_string();
      const std::optional<OffsetAndTimestamp>& found = answer->at(kLines);
      EXPECT_EQ(found ? nlohmann::json(found->offset.value()) : nlohmann::json(),
                question["offset"])
          << time;
      EXPECT_TRUE(!found || found->timestamp >= time) << time;
    }
  }
}

}  // namespace
}  // namespace weir::log
