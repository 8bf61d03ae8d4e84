#include <weir/runtime/testing/manual_clock.h>
#include <weir/runtime/testing/memory_backend.h>
#include <weir/state/checkpoint_validity.h>

#include <gtest/gtest.h>

namespace weir::state {
namespace {

constexpr Timestamp kNow = 1'700'000'000'000;
constexpr std::int64_t kDay = 86'400'000;

Uuid id(std::uint8_t last) {
  Uuid uuid;
  uuid.bytes[15] = last;
  return uuid;
}

// A checkpoint at 50 in a changelog [10, 100) that can tell everything.
StorePosition position() {
  return {.changelog_topic_id = id(1),
          .next_offset = Offset(50),
          .leader_epoch = LeaderEpoch(3),
          .time = kNow - 1000};
}
ChangelogFacts facts() {
  return {.exists = true,
          .topic_id = id(1),
          .log_start = Offset(10),
          .readable_end = Offset(100),
          .epoch_end = Offset(100),
          .tombstone_horizon = Offset(10),
          .delete_retention_ms = kDay,
          .now = kNow};
}

struct Case {
  const char* name;
  void (*change)(StorePosition&, ChangelogFacts&);
  CheckpointVerdict expected;
  const char* reason;
};

const Case kCases[] = {
    {"Untouched", [](StorePosition&, ChangelogFacts&) {}, CheckpointVerdict::kValid, ""},
    {"ChangelogIsGone", [](StorePosition&, ChangelogFacts& f) { f.exists = false; },
     CheckpointVerdict::kChangelogLost, "gone"},
    {"AnotherTopicId", [](StorePosition&, ChangelogFacts& f) { f.topic_id = id(2); },
     CheckpointVerdict::kChangelogLost, "made anew"},
    {"AnotherTopicIdOutweighsItsOffsets",
     [](StorePosition&, ChangelogFacts& f) {
       f.topic_id = id(2);
       f.log_start = f.readable_end = Offset(0);
     },
     CheckpointVerdict::kChangelogLost, "made anew"},
    {"BackendWithoutTopicIds", [](StorePosition&, ChangelogFacts& f) { f.topic_id = {}; },
     CheckpointVerdict::kValid, ""},
    {"PositionWithoutTopicId", [](StorePosition& p, ChangelogFacts&) { p.changelog_topic_id = {}; },
     CheckpointVerdict::kValid, ""},
    {"WithoutTopicIdsAnEmptyLogIsANewOne",
     [](StorePosition&, ChangelogFacts& f) {
       f.topic_id = {};
       f.log_start = f.readable_end = Offset(0);
       f.epoch_end.reset();
     },
     CheckpointVerdict::kChangelogLost, "never held"},
    {"EpochEndsAtThePosition", [](StorePosition&, ChangelogFacts& f) { f.epoch_end = Offset(50); },
     CheckpointVerdict::kValid, ""},
    {"EpochEndsBelowThePosition",
     [](StorePosition&, ChangelogFacts& f) { f.epoch_end = Offset(49); },
     CheckpointVerdict::kRebuild, "epoch 3 ends at offset 49"},
    {"EpochUnknownToTheLog", [](StorePosition&, ChangelogFacts& f) { f.epoch_end.reset(); },
     CheckpointVerdict::kValid, ""},
    {"PositionWithoutEpoch",
     [](StorePosition& p, ChangelogFacts& f) {
       p.leader_epoch = kNoLeaderEpoch;
       f.epoch_end = Offset(0);
     },
     CheckpointVerdict::kValid, ""},
    {"AtTheLogStart", [](StorePosition&, ChangelogFacts& f) { f.log_start = Offset(50); },
     CheckpointVerdict::kValid, ""},
    {"BelowTheLogStart", [](StorePosition&, ChangelogFacts& f) { f.log_start = Offset(51); },
     CheckpointVerdict::kRebuild, "starts at offset 51"},
    {"AtTheEnd", [](StorePosition&, ChangelogFacts& f) { f.readable_end = Offset(50); },
     CheckpointVerdict::kValid, ""},
    {"BehindTheEnd", [](StorePosition&, ChangelogFacts& f) { f.readable_end = Offset(49); },
     CheckpointVerdict::kRebuild, "ends at offset 49"},
    {"HorizonAtThePosition",
     [](StorePosition&, ChangelogFacts& f) { f.tombstone_horizon = Offset(50); },
     CheckpointVerdict::kValid, ""},
    {"HorizonAboveThePosition",
     [](StorePosition&, ChangelogFacts& f) { f.tombstone_horizon = Offset(51); },
     CheckpointVerdict::kRebuild, "tombstones"},
    {"OldButTheHorizonIsKnown", [](StorePosition& p, ChangelogFacts&) { p.time = 0; },
     CheckpointVerdict::kValid, ""},
    {"AsOldAsTheRetentionWithoutHorizon",
     [](StorePosition& p, ChangelogFacts& f) {
       f.tombstone_horizon.reset();
       p.time = kNow - kDay;
     },
     CheckpointVerdict::kValid, ""},
    {"OlderThanTheRetentionWithoutHorizon",
     [](StorePosition& p, ChangelogFacts& f) {
       f.tombstone_horizon.reset();
       p.time = kNow - kDay - 1;
     },
     CheckpointVerdict::kRebuild, "delete.retention.ms"},
    {"WithoutTimeAndHorizon",
     [](StorePosition& p, ChangelogFacts& f) {
       f.tombstone_horizon.reset();
       p.time = kNoTimestamp;
     },
     CheckpointVerdict::kRebuild, "no time"},
};

class JudgeCheckpoint : public ::testing::TestWithParam<Case> {};

TEST_P(JudgeCheckpoint, DecidesAsDesigned) {
  StorePosition at = position();
  ChangelogFacts changelog = facts();
  GetParam().change(at, changelog);

  const CheckpointDecision decision = judge_checkpoint(at, changelog);

  EXPECT_EQ(decision.verdict, GetParam().expected) << decision.reason;
  EXPECT_NE(decision.reason.find(GetParam().reason), std::string::npos) << decision.reason;
  EXPECT_EQ(decision.reason.empty(), decision.verdict == CheckpointVerdict::kValid);
}

INSTANTIATE_TEST_SUITE_P(Table, JudgeCheckpoint, ::testing::ValuesIn(kCases),
                         [](const auto& instance) { return instance.param.name; });

TEST(JudgeCheckpointWithoutPosition, SaysThatThereIsNone) {
  EXPECT_EQ(judge_checkpoint(std::nullopt, facts()).verdict, CheckpointVerdict::kNoCheckpoint);
}

TEST(ChangelogFacts, AreWhatAdminTells) {
  weir::testing::ManualClock clock(kNow);
  weir::testing::MemoryBackend backend(clock);
  const TopicPartition changelog{"app-counts-changelog", PartitionId(0)};
  const ChangelogFacts absent =
      changelog_facts(backend.admin(), changelog, std::nullopt, false, kNow).value();
  EXPECT_FALSE(absent.exists);
  const TopicDescription topic = backend.admin()
                                     .create_topic({.name = changelog.topic,
                                                    .partitions = 1,
                                                    .config = {{"cleanup.policy", "compact"},
                                                               {"delete.retention.ms", "5000"}}})
                                     .value();
  auto sink = backend.make_sink({}).value();
  const SinkTopicInfo info = sink->open_topic(changelog.topic).value();
  const RecordRef record{
      .key = ByteView("k"), .value = ByteView("v"), .timestamp = 1, .headers = {}};
  ASSERT_TRUE(sink->send(info.handle, PartitionId(0), std::span(&record, 1)).ok());
  ASSERT_TRUE(sink->flush().ok());

  const ChangelogFacts known =
      changelog_facts(backend.admin(), changelog, position(), false, kNow).value();

  EXPECT_TRUE(known.exists);
  EXPECT_EQ(known.topic_id, topic.id);
  EXPECT_EQ(known.readable_end, Offset(1));
  EXPECT_EQ(known.delete_retention_ms, 5000);
  EXPECT_EQ(known.now, kNow);
}

}  // namespace
}  // namespace weir::state
