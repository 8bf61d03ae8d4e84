#include "log/coordinator/offsets_codec.h"
#include "tests/log/client/consumer_world.h"

#include <optional>

// Where a consumer starts: each state of group and log with each policy of auto.offset.reset. The
// expected offsets are worked by hand from Kafka's documentation: the KafkaConsumer javadoc
// ("Offsets and Consumer Position"), auto.offset.reset, KIP-1106 (by_duration), KIP-320 (epochs).

namespace weir::log {
namespace {

using testing::both_logs;
using testing::ConsumerWorld;
using testing::kind_name;
using testing::kLines;
using testing::poll;
using testing::poll_all;
using testing::poll_error;
using testing::Values;

// An offset, or that poll() answers OFFSET_OUT_OF_RANGE.
using Start = std::optional<std::int64_t>;
constexpr Start kError = std::nullopt;

struct State {
  const char* name;
  void (*make)(ConsumerWorld&);
  Start earliest, latest, none, last_4_seconds;
};

// Ten records, 0 to 9, a second apart; the last is a second old.
void ten_records(ConsumerWorld& world) {
  world.create("lines", 1, {{"segment.bytes", "200"}});
  for (int i = 0; i < 10; ++i) {
    world.send({std::to_string(i)});
    world.clock().advance(std::chrono::seconds(1));
  }
}

const State kStates[] = {
    {"nothing committed", [](ConsumerWorld& world) { ten_records(world); }, 0, 10, kError, 6},
    {"committed inside",
     [](ConsumerWorld& world) {
       ten_records(world);
       world.commit("g", 4);
     },
     4, 4, 4, 4},
    {"committed at the end",
     [](ConsumerWorld& world) {
       ten_records(world);
       world.commit("g", 10);
     },
     10, 10, 10, 10},
    {"committed below the log start",
     [](ConsumerWorld& world) {
       ten_records(world);
       world.commit("g", 2);
       world.delete_before(3);
     },
     3, 10, kError, 6},
    {"committed below a log start that is younger than the duration",
     [](ConsumerWorld& world) {
       ten_records(world);
       world.commit("g", 2);
       world.delete_before(8);
     },
     8, 10, kError, 8},
    {"committed at a log start that moved up to it",
     [](ConsumerWorld& world) {
       ten_records(world);
       world.commit("g", 3);
       world.delete_before(3);
     },
     3, 3, 3, 3},
    {"committed above the end",
     [](ConsumerWorld& world) {
       ten_records(world);
       world.commit("g", 15);
     },
     0, 10, kError, 6},
    {"nothing committed, log without records", [](ConsumerWorld& world) { world.create(); }, 0, 0,
     kError, 0},
    {"committed at 0, log without records",
     [](ConsumerWorld& world) {
       world.create();
       world.commit("g", 0);
     },
     0, 0, 0, 0},
    {"committed above 0, log without records",
     [](ConsumerWorld& world) {
       world.create();
       world.commit("g", 7);
     },
     0, 0, kError, 0},
    {"nothing committed, every record deleted",
     [](ConsumerWorld& world) {
       ten_records(world);
       world.delete_before(10);
     },
     10, 10, kError, 10},
    {"committed inside what was deleted, nothing left",
     [](ConsumerWorld& world) {
       ten_records(world);
       world.commit("g", 5);
       world.delete_before(10);
     },
     10, 10, kError, 10},
    {"nothing young enough for the duration",
     [](ConsumerWorld& world) {
       ten_records(world);
       world.clock().advance(std::chrono::hours(1));
     },
     0, 10, kError, 10},
    {"topic deleted and made anew: its offsets went with it",
     [](ConsumerWorld& world) {
       ten_records(world);
       world.commit("g", 1);
       world.replace();
       world.send({"0", "1"});
     },
     0, 2, kError, 0},
    {"another group committed",
     [](ConsumerWorld& world) {
       ten_records(world);
       world.commit("h", 4);
     },
     0, 10, kError, 6},
};

class ConsumerStart : public ::testing::TestWithParam<ConsumerWorld::Kind> {};

void expect_start(ConsumerWorld& world, const std::string& reset, Start expected) {
  SCOPED_TRACE(reset);
  const auto consumer = world.reader("g", reset);
  if (!expected) {
    EXPECT_EQ(poll_error(*consumer), Errc::kOffsetOutOfRange);
    EXPECT_EQ(poll_error(*consumer), Errc::kOffsetOutOfRange) << "until it is sought";
    return;
  }
  const std::int64_t end = world.log().admin().offsets(kLines)->high_watermark.value();
  Values values;
  for (std::int64_t i = *expected; i < end; ++i) {
    values.push_back(std::to_string(i));
  }

  EXPECT_EQ(poll_all(*consumer), values);
  EXPECT_EQ(consumer->position(kLines).value(), Offset(end));
}

TEST_P(ConsumerStart, FollowsTheTable) {
  for (const State& state : kStates) {
    SCOPED_TRACE(state.name);
    ConsumerWorld world(GetParam());
    state.make(world);
    const std::int64_t committed = world.committed("g");

    expect_start(world, "earliest", state.earliest);
    expect_start(world, "latest", state.latest);
    expect_start(world, "none", state.none);
    expect_start(world, "by_duration:PT4S", state.last_4_seconds);
    EXPECT_EQ(world.committed("g"), committed) << "to start commits nothing";
  }
}

INSTANTIATE_TEST_SUITE_P(Log, ConsumerStart, both_logs(), kind_name);

// The same states without a group: nothing is committed, whatever another group did.
TEST_P(ConsumerStart, WithoutAGroupIsThatOfNothingCommitted) {
  ConsumerWorld world(GetParam());
  ten_records(world);
  world.commit("g", 4);

  EXPECT_EQ(world.reader("", "earliest")->position(kLines).value(), Offset(0));
  EXPECT_EQ(world.reader("", "latest")->position(kLines).value(), Offset(10));
  EXPECT_EQ(world.reader("", "by_duration:PT4S")->position(kLines).value(), Offset(6));
  EXPECT_EQ(world.reader("", "none")->position(kLines).error().code(), Errc::kOffsetOutOfRange);
}

// As kafka-consumer-groups --delete-offsets does: a record without value in __consumer_offsets.
TEST(ConsumerStartEmbedded, AfterItsOffsetsWereDeletedIsThatOfNothingCommitted) {
  ConsumerWorld world(ConsumerWorld::Kind::kEmbedded);
  ten_records(world);
  world.commit("g", 4);
  world.commit("h", 5);
  const std::string key = encode_offset_key({"g", kLines});
  const RecordRef tombstone{ByteView(key), {}, world.clock().now(), {}};
  const auto sink = world.log().make_sink({}).value();
  const SinkTopicInfo offsets = sink->open_topic("__consumer_offsets").value();
  ASSERT_TRUE(
      sink->send(offsets.handle, partition_for_group("g", offsets.partitions), {&tombstone, 1})
          .ok());
  ASSERT_TRUE(sink->flush().ok());
  world.fixture().close();
  world.fixture().open();

  EXPECT_EQ(world.committed("g"), -1);
  EXPECT_EQ(world.committed("h"), 5);
  expect_start(world, "earliest", 0);
  expect_start(world, "latest", 10);
  expect_start(world, "none", kError);
  expect_start(world, "by_duration:PT4S", 6);
}

// KIP-320: an offset that lies behind the end of its leader epoch stands for records that the log
// lost; what stands there now was never read.
TEST(ConsumerStartEmbedded, GoesBackToTheEndOfTheEpochThatItWasCommittedIn) {
  ConsumerWorld world(ConsumerWorld::Kind::kEmbedded);
  world.create();
  world.send({"0", "1", "2"});
  const LeaderEpoch before = world.log().admin().offsets(kLines)->leader_epoch;
  world.fixture().crash();
  world.fixture().open();
  for (int i = 3; i < 8; ++i) {
    world.send({std::to_string(i)});  // in the next epoch
  }
  const LeaderEpoch after = world.log().admin().offsets(kLines)->leader_epoch;
  ASSERT_LT(before, after);
  struct {
    std::int64_t committed;
    LeaderEpoch epoch;
    std::int64_t start;
    bool lost;
  } const cases[] = {
      {2, before, 2, false}, {3, before, 3, false}, {5, before, 3, true}, {99, before, 3, true},
      {5, after, 5, false},  {8, after, 8, false},  {99, after, 8, true},
  };
  for (const auto& one : cases) {
    SCOPED_TRACE(one.committed);
    world.commit("g", one.committed, one.epoch);
    for (const char* reset : {"earliest", "latest", "by_duration:PT4S"}) {
      EXPECT_EQ(world.reader("g", reset)->position(kLines)->value(), one.start) << reset;
    }
    const auto none = world.reader("g", "none");
    const auto position = none->position(kLines);
    ASSERT_EQ(position.ok(), !one.lost);
    if (one.lost) {
      EXPECT_EQ(position.error().code(), Errc::kOffsetOutOfRange);
      EXPECT_NE(position.error().message().find("leader epoch"), std::string::npos);
      EXPECT_EQ(poll_error(*none), Errc::kOffsetOutOfRange);
      ASSERT_TRUE(none->seek(kLines, Offset(7)).ok());
      EXPECT_EQ(poll(*none), (Values{"7"}));
    }
  }
}

class ConsumerLives : public testing::OnBothLogs {};
INSTANTIATE_TEST_SUITE_P(Log, ConsumerLives, both_logs(), kind_name);

// The log start moves past what a running consumer has read.
TEST_P(ConsumerLives, ThroughDeletedRecordsByThePolicy) {
  const std::pair<const char*, Values> expected[] = {
      {"earliest", {"4", "5"}}, {"latest", {}}, {"by_duration:PT1S", {"5"}}};
  for (const auto& [reset, values] : expected) {
    SCOPED_TRACE(reset);
    ConsumerWorld world(GetParam());
    world.create("lines", 1, {{"segment.bytes", "200"}});
    const auto consumer = world.reader("g", reset);
    ASSERT_TRUE(consumer->seek(kLines, Offset(0)).ok());
    for (int i = 0; i < 6; ++i) {
      world.clock().advance(std::chrono::seconds(2));
      world.send({std::to_string(i)});
    }
    world.delete_before(4);

    EXPECT_EQ(poll(*consumer), values);
    EXPECT_EQ(consumer->position(kLines).value(), Offset(6));
  }
}

TEST_P(ConsumerLives, ThroughDeletedRecordsWithNoneOnlyBySeek) {
  world_.create("lines", 1, {{"segment.bytes", "200"}});
  const auto consumer = world_.reader("", "none");
  ASSERT_TRUE(consumer->seek(kLines, Offset(1)).ok());
  for (int i = 0; i < 6; ++i) {
    world_.send({std::to_string(i)});
  }
  world_.delete_before(4);

  EXPECT_EQ(poll_error(*consumer), Errc::kOffsetOutOfRange);
  EXPECT_EQ(poll_error(*consumer), Errc::kOffsetOutOfRange);
  EXPECT_EQ(consumer->position(kLines).value(), Offset(1));
  ASSERT_TRUE(consumer->seek_to_beginning({kLines}).ok());
  EXPECT_EQ(poll(*consumer), (Values{"4", "5"}));
}

TEST_P(ConsumerLives, ThroughATopicMadeAnewBySeek) {
  world_.create();
  world_.send({"old 0", "old 1", "old 2"});
  const auto consumer = world_.reader("g", "earliest");
  EXPECT_EQ(poll(*consumer).size(), 3U);
  world_.replace();
  world_.send({"new 0", "new 1", "new 2", "new 3"});

  EXPECT_EQ(poll_error(*consumer), Errc::kUnknownTopic) << "never \"new 3\" without a word";
  EXPECT_EQ(poll_error(*consumer), Errc::kUnknownTopic);
  ASSERT_TRUE(consumer->seek_to_beginning().ok());
  EXPECT_EQ(poll(*consumer), (Values{"new 0", "new 1", "new 2", "new 3"}));
}

// What stands in the new topic was never read, so nothing of it may count as processed.
TEST_P(ConsumerLives, NeverCommitsAnOldTopicsPositionForTheNewOne) {
  world_.create();
  world_.send({"old 0", "old 1", "old 2"});
  const auto consumer = world_.reader("g", "earliest");
  EXPECT_EQ(poll(*consumer).size(), 3U);
  world_.replace();
  world_.send({"new 0", "new 1", "new 2", "new 3"});
  world_.clock().advance(std::chrono::hours(1));

  EXPECT_EQ(consumer->commit().error().code(), Errc::kUnknownTopic);
  EXPECT_EQ(poll_error(*consumer), Errc::kUnknownTopic);
  ASSERT_TRUE(consumer->close().ok());

  EXPECT_EQ(world_.committed("g"), -1);
}

TEST_P(ConsumerLives, NoticesATopicMadeAnewAlsoAcrossAnAssignment) {
  world_.create();
  world_.send({"old 0"});
  const auto consumer = world_.reader("g", "earliest");
  EXPECT_EQ(poll(*consumer).size(), 1U);
  world_.replace();
  world_.send({"new 0", "new 1"});
  ASSERT_TRUE(consumer->assign({kLines, {"lines", PartitionId(1)}}).ok());
  ASSERT_TRUE(consumer->pause({{"lines", PartitionId(1)}}).ok());
  ASSERT_TRUE(consumer->seek({"lines", PartitionId(1)}, Offset(0)).ok());

  EXPECT_EQ(poll_error(*consumer), Errc::kUnknownTopic) << "never \"new 1\" without a word";
}

TEST_P(ConsumerLives, ThroughATopicMadeAnewWhenSubscribed) {
  const std::pair<const char*, Values> expected[] = {{"earliest", {"new 0", "new 1"}},
                                                     {"latest", {}}};
  for (const auto& [reset, values] : expected) {
    SCOPED_TRACE(reset);
    ConsumerWorld world(GetParam());
    world.create();
    world.send({"old 0", "old 1"});
    testing::Listener listener;
    const auto consumer = world.open("g", reset);
    ASSERT_TRUE(consumer->subscribe({"lines"}, &listener).ok());
    poll(*consumer);
    ASSERT_TRUE(consumer->commit().ok());
    EXPECT_EQ(listener.take(), (Values{"assigned lines-0"}));
    world.replace();
    world.send({"new 0", "new 1"});

    EXPECT_EQ(poll(*consumer), values);
    EXPECT_EQ(listener.take(), (Values{"lost lines-0", "assigned lines-0"}));
    EXPECT_EQ(consumer->position(kLines).value(), Offset(2));
  }
}

}  // namespace
}  // namespace weir::log
