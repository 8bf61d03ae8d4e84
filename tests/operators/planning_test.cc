#include "operators/app/assignor.h"
#include "operators/app/drain_watch.h"
#include "operators/app/start_offset.h"
#include "operators/app/topic_plan.h"
#include "operators/plan/recorded_plan.h"

#include <weir/operators/stream_builder.h>
#include <weir/runtime/testing/memory_file_system.h>

#include <gtest/gtest.h>

#include <algorithm>
#include <string>

namespace weir::internal {
namespace {

using Text = std::string;

Topic<Text, Text> topic(const char* name) {
  return {name};
}
Text same(const Text& value) {
  return value;
}

Topology word_count(std::int32_t partitions = 0) {
  StreamBuilder b;
  auto words =
      b.from(topic("lines")).map([](const Text&, const Text& v) { return std::pair(v, v); });
  if (partitions != 0) {
    words = words.repartition({.name = "words", .partitions = partitions});
  }
  words.group_by_key()
      .count(KvStore<Text, std::int64_t>{"counts"})
      .to_stream()
      .to(Topic<Text, std::int64_t>{"out"});
  return std::move(b).build();
}

const TopicSpec* find(const TopicPlan& plan, const Text& name) {
  const auto found = std::find_if(plan.internal_topics.begin(), plan.internal_topics.end(),
                                  [&](const TopicSpec& spec) { return spec.name == name; });
  return found == plan.internal_topics.end() ? nullptr : &*found;
}

// REP-5, TOP-1, TOP-3.
TEST(TopicPlan, GivesARepartitionTopicThePartitionsOfItsSource) {
  const Topology topology = word_count();

  const Result<TopicPlan> plan =
      plan_topics(topology.plan(), "wc", {{"lines", {{}, 3}}, {"out", {{}, 1}}}, "fsync");

  ASSERT_TRUE(plan.ok());
  EXPECT_EQ(plan->tasks, (std::vector<std::int32_t>{3, 3}));
  const TopicSpec* repartition = find(*plan, "wc-counts-repartition");
  ASSERT_NE(repartition, nullptr);
  EXPECT_EQ(repartition->partitions, 3);
  const TopicConfig expected = {{"cleanup.policy", "delete"},
                                {"message.timestamp.type", "CreateTime"},
                                {"retention.ms", "-1"},
                                {"segment.bytes", "52428800"},
                                {"weir.durability", "fsync"}};
  EXPECT_EQ(repartition->config, expected);
  const TopicSpec* changelog = find(*plan, "wc-counts-changelog");
  ASSERT_NE(changelog, nullptr);
  EXPECT_EQ(changelog->partitions, 3);
  EXPECT_EQ(changelog->config.at("cleanup.policy"), "compact");
}

TEST(TopicPlan, TakesTheExplicitNumberOfPartitions) {
  const Topology topology = word_count(7);

  const Result<TopicPlan> plan = plan_topics(topology.plan(), "wc", {{"lines", {{}, 3}}}, "memory");

  ASSERT_TRUE(plan.ok());
  EXPECT_EQ(plan->tasks, (std::vector<std::int32_t>{3, 7}));
  EXPECT_EQ(find(*plan, "wc-words-repartition")->partitions, 7);
  EXPECT_EQ(find(*plan, "wc-words-repartition")->config.at("weir.durability"), "memory");
}

TEST(TopicPlan, FollowsAChainOfRepartitions) {
  StreamBuilder b;
  b.from(topic("in")).repartition({.name = "a"}).repartition({.name = "b"}).to(topic("out"));
  const Topology topology = std::move(b).build();

  const Result<TopicPlan> plan = plan_topics(topology.plan(), "x", {{"in", {{}, 5}}}, "fsync");

  ASSERT_TRUE(plan.ok());
  EXPECT_EQ(plan->tasks, (std::vector<std::int32_t>{5, 5, 5}));
}

TEST(TopicPlan, WaitsForAnInputThatDoesNotExist) {
  const Topology topology = word_count();

  const Result<TopicPlan> plan = plan_topics(topology.plan(), "wc", {}, "fsync");

  ASSERT_TRUE(plan.ok());
  EXPECT_EQ(plan->tasks, (std::vector<std::int32_t>{0, 0}));
  EXPECT_EQ(plan->missing_inputs, (std::vector<Text>{"lines"}));
  EXPECT_TRUE(plan->internal_topics.empty());
}

// The store goes on with what stands in the repartition topic.
TEST(TopicPlan, KeepsInternalTopicsThatExistWhileTheInputIsGone) {
  const Topology topology = word_count();

  const Result<TopicPlan> plan =
      plan_topics(topology.plan(), "wc",
                  {{"wc-counts-repartition", {{}, 4}}, {"wc-counts-changelog", {{}, 4}}}, "fsync");

  ASSERT_TRUE(plan.ok());
  EXPECT_EQ(plan->tasks, (std::vector<std::int32_t>{0, 4}));
}

TEST(TopicPlan, RefusesAChangelogWithAnotherNumberOfPartitions) {
  const Topology topology = word_count();

  const Result<TopicPlan> plan = plan_topics(
      topology.plan(), "wc", {{"lines", {{}, 3}}, {"wc-counts-changelog", {{}, 2}}}, "fsync");

  ASSERT_FALSE(plan.ok());
  EXPECT_EQ(plan.error().code(), Errc::kInvalidConfig);
  EXPECT_NE(plan.error().message().find("wc-counts-changelog"), Text::npos);
}

TEST(TopicPlan, RefusesARepartitionTopicThatExistsWithAnotherExplicitNumber) {
  const Topology topology = word_count(7);

  const Result<TopicPlan> plan = plan_topics(
      topology.plan(), "wc", {{"lines", {{}, 3}}, {"wc-words-repartition", {{}, 3}}}, "fsync");

  ASSERT_FALSE(plan.ok());
  EXPECT_EQ(plan.error().code(), Errc::kInvalidConfig);
}

TEST(TopicPlan, RefusesToAggregateTopicsThatAreNotCopartitioned) {
  StreamBuilder b;
  b.from({topic("a"), topic("b")})
      .group_by_key()
      .count(KvStore<Text, std::int64_t>{"c"})
      .to_stream();
  const Topology topology = std::move(b).build();

  const Result<TopicPlan> plan =
      plan_topics(topology.plan(), "x", {{"a", {{}, 3}}, {"b", {{}, 4}}}, "fsync");

  ASSERT_FALSE(plan.ok());
  EXPECT_NE(plan.error().message().find("a (3 partitions) and b (4 partitions)"), Text::npos)
      << plan.error().message();
}

TEST(Assignor, SpreadsTasksEvenlyAndDeterministically) {
  std::vector<TaskId> tasks;
  for (std::uint32_t sub = 0; sub < 2; ++sub) {
    for (std::int32_t p = 4; p >= 0; --p) {
      tasks.push_back({sub, PartitionId(p)});
    }
  }
  for (std::size_t threads = 1; threads <= 12; ++threads) {
    const std::vector<std::vector<TaskId>> spread = assign_tasks(tasks, threads);
    std::vector<TaskId> all;
    std::size_t most = 0;
    std::size_t least = tasks.size();
    for (const std::vector<TaskId>& one : spread) {
      all.insert(all.end(), one.begin(), one.end());
      most = std::max(most, one.size());
      least = std::min(least, one.size());
    }
    std::sort(all.begin(), all.end());
    std::vector<TaskId> expected = tasks;
    std::sort(expected.begin(), expected.end());
    EXPECT_EQ(all, expected);
    EXPECT_LE(most - least, 1U);
    EXPECT_EQ(spread, assign_tasks(tasks, threads));
  }
}

// ---- start offsets (N17, N39, N47) -------------------------------------------------------------

const TopicPartition kPartition{"orders", PartitionId(1)};

StartFacts facts(std::optional<std::int64_t> committed, std::int64_t start, std::int64_t end) {
  StartFacts made;
  if (committed.has_value()) {
    made.committed = CommittedOffset{Offset(*committed), LeaderEpoch(3), {}};
  }
  made.log = {Offset(start), Offset(end), Offset(end), Offset(end), LeaderEpoch(3)};
  return made;
}

TEST(StartOffset, GoesOnAtTheCommittedOffset) {
  for (const std::int64_t committed : {7, 9, 10}) {
    const Result<StartDecision> start =
        decide_start(kPartition, facts(committed, 7, 10), OffsetReset::kNone);
    ASSERT_TRUE(start.ok());
    EXPECT_EQ(start->offset, Offset(committed));
    EXPECT_TRUE(start->warning.empty());
  }
}

TEST(StartOffset, FollowsThePolicyWhenNothingWasCommitted) {
  EXPECT_EQ(decide_start(kPartition, facts({}, 7, 10), OffsetReset::kEarliest)->offset, Offset(7));
  EXPECT_EQ(decide_start(kPartition, facts({}, 7, 10), OffsetReset::kLatest)->offset, Offset(10));
  EXPECT_FALSE(decide_start(kPartition, facts({}, 7, 10), OffsetReset::kNone).ok());
}

TEST(StartOffset, SaysHowManyRecordsAreGoneBelowTheLog) {
  const Result<StartDecision> earliest =
      decide_start(kPartition, facts(5, 7, 10), OffsetReset::kEarliest);
  const Result<StartDecision> latest =
      decide_start(kPartition, facts(5, 7, 10), OffsetReset::kLatest);

  EXPECT_EQ(earliest->offset, Offset(7));
  EXPECT_NE(earliest->warning.find("missing=2"), Text::npos) << earliest->warning;
  EXPECT_EQ(latest->offset, Offset(10));
  EXPECT_NE(latest->warning.find("missing=5"), Text::npos) << latest->warning;
}

TEST(StartOffset, NamesPartitionOffsetsAndResetWhenThePolicyIsNone) {
  const Result<StartDecision> none = decide_start(kPartition, facts(5, 7, 10), OffsetReset::kNone);

  ASSERT_FALSE(none.ok());
  EXPECT_EQ(none.error().code(), Errc::kOffsetOutOfRange);
  for (const char* part : {"orders-1", "5", "7", "10", "app reset"}) {
    EXPECT_NE(none.error().message().find(part), Text::npos) << none.error().message();
  }
}

// DESIGN D4: an offset that outlived its records is set back to the end of its epoch.
TEST(StartOffset, IsSetBackToTheEndOfItsEpoch) {
  StartFacts cut = facts(9, 0, 20);
  cut.epoch_end = Offset(6);

  const Result<StartDecision> start = decide_start(kPartition, cut, OffsetReset::kEarliest);

  EXPECT_EQ(start->offset, Offset(6));
  EXPECT_NE(start->warning.find("missing=3"), Text::npos) << start->warning;
}

TEST(StartOffset, IsSetBackToTheEndOfTheLog) {
  EXPECT_EQ(decide_start(kPartition, facts(12, 7, 10), OffsetReset::kEarliest)->offset, Offset(10));
  EXPECT_FALSE(decide_start(kPartition, facts(12, 7, 10), OffsetReset::kNone).ok());
}

// ---- drain stages ------------------------------------------------------------------------------

TEST(DrainStages, FollowRecordsThroughRepartitionsAndOwnTopics) {
  StreamBuilder b;
  b.from(topic("x")).filter([](const Text&) { return true; }).to(topic("y"));
  b.from(topic("y"))
      .group_by(same)
      .count(KvStore<Text, std::int64_t>{"c"})
      .to_stream()
      .to(Topic<Text, std::int64_t>{"z"});
  const Topology topology = std::move(b).build();

  const std::vector<std::set<Text>> expected = {{"x"}, {"y"}, {"c-repartition"}};
  EXPECT_EQ(drain_stages(topology.plan()), expected);
}

TEST(DrainStages, EndForATopologyThatFeedsItself) {
  StreamBuilder b;
  b.from(topic("x")).filter([](const Text&) { return false; }).to(topic("x"));
  const Topology topology = std::move(b).build();

  const std::vector<std::set<Text>> expected = {{"x"}};
  EXPECT_EQ(drain_stages(topology.plan()), expected);
}

// ---- recorded plan -----------------------------------------------------------------------------

RecordedPlan recorded() {
  RecordedPlan plan;
  plan.application_id = "wc";
  plan.sub_topologies = {{{"lines"}, {"wc-counts-repartition"}, {}, 3},
                         {{"wc-counts-repartition"}, {"word-counts"}, {"counts"}, 3}};
  plan.stores = {{"counts", "string", "long", "wc-counts-changelog"}};
  Uuid id;
  id.bytes[0] = 7;
  plan.source_topics = {{"lines", id, 3}, {"other", Uuid{}, 1}};
  return plan;
}

TEST(RecordedPlan, ReadsWhatItWrote) {
  const Result<RecordedPlan> read = decode_recorded_plan(encode_recorded_plan(recorded()));

  ASSERT_TRUE(read.ok());
  EXPECT_EQ(*read, recorded());
  EXPECT_EQ(read->find_source("lines")->partitions, 3);
  EXPECT_EQ(read->find_source("nothing"), nullptr);
}

// Bytes by hand: field 1 (format) = 1, field 2 (application id) = "wc".
TEST(RecordedPlan, HasTheDocumentedFieldNumbers) {
  const Result<RecordedPlan> read = decode_recorded_plan(std::string_view("\x08\x01\x12\x02wc", 6));

  ASSERT_TRUE(read.ok());
  EXPECT_EQ(read->application_id, "wc");
}

TEST(RecordedPlan, RefusesDamageAndNewerFormats) {
  EXPECT_EQ(decode_recorded_plan("\xff\xff\xff").error().code(), Errc::kCorrupt);
  EXPECT_EQ(decode_recorded_plan(std::string_view("\x08\x02", 2)).error().code(),
            Errc::kUnsupported);
  EXPECT_EQ(decode_recorded_plan("").error().code(), Errc::kCorrupt);
}

}  // namespace
}  // namespace weir::internal
