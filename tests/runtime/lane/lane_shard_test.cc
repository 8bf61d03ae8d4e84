#include "tests/runtime/lane/lanes_world.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <set>

namespace weir::internal {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;
using ::testing::ElementsAre;
using Names = std::vector<std::string>;

LaneOptions plain_retry() {
  LaneOptions options;
  options.retry.jitter = 0;
  options.retry.backoff_base = milliseconds(100);
  return options;
}

// C1, T31 (azure-sdk #24487): one record of a session at a time, sessions beside each other.
TEST(Lanes, C1_T31_RunsOneRecordOfASessionAtATime) {
  LanesTest test;
  test.assign();
  test.feed({"a", "a", "b", "a"});

  const Attempt first = *test.start();
  const Attempt second = *test.start();
  EXPECT_EQ(name_of(first), "a/1");
  EXPECT_EQ(name_of(second), "b/1");
  EXPECT_FALSE(test.start().has_value());
  test.finish(first, Outcome::ok());
  EXPECT_EQ(name_of(*test.start()), "a/2");
}

// C4, C5, T21 (PC #534): what failed holds back its own session only, and runs before it.
TEST(Lanes, C4_C5_T21_KeepsLaterRecordsBehindARetryingHead) {
  LanesTest test(plain_retry());
  test.assign();
  test.feed({"a", "b"});
  const Attempt failing = *test.start();
  test.fail(failing);
  test.feed({"a", "b", "c"});

  EXPECT_EQ(test.run_all(), (Names{"b/1", "b/2", "c/1"}));
  test.engine.advance(milliseconds(99));
  EXPECT_FALSE(test.start().has_value());
  test.engine.advance(milliseconds(1));
  const Attempt again = *test.start();
  EXPECT_EQ(name_of(again), "a/1");
  EXPECT_EQ(again.number, 2U);
  test.finish(again, Outcome::ok());
  EXPECT_EQ(test.run_all(), (Names{"a/2"}));
}

// T34 (SP #4504), T48 (monoscope #443): two records that fail at once both come back, from memory.
TEST(Lanes, T34_T48_TwoFailingRecordsBothComeBack) {
  LanesTest test(plain_retry());
  test.assign();
  test.feed({"a", "b"});
  const Attempt a = *test.start();
  const Attempt b = *test.start();
  test.fail(a);
  test.fail(b);
  EXPECT_EQ(test.commit_value(), Offset(0));
  test.engine.advance(milliseconds(100));

  EXPECT_EQ(test.run_all().size(), 2U);
  EXPECT_EQ(test.commit_value(), Offset(2));
}

// T35 (SP #4465), T36 (SP #1237): attempts are counted per record and start anew behind a success.
TEST(Lanes, T35_T36_CountsAttemptsPerRecord) {
  LaneOptions options = plain_retry();
  options.retry.attempts_max = 3;
  options.retry.on_exhausted = OnExhausted::kDrop;
  LanesTest test(options);
  test.assign();
  test.feed({"a", "a", "b"});
  for (std::uint32_t number = 1; number <= 2; ++number) {
    const Attempt attempt = *test.start();
    EXPECT_EQ(attempt.number, number);
    test.fail(attempt);
    if (number == 1) {
      EXPECT_EQ(test.run_all(), (Names{"b/1"}));
    }
    test.engine.advance(seconds(1));
  }
  test.finish(*test.start(), Outcome::ok());
  const Attempt next = *test.start();
  EXPECT_EQ(name_of(next), "a/2");
  EXPECT_EQ(next.number, 1U);
  for (int i = 0; i < 3; ++i) {
    test.fail(i == 0 ? next : *test.start());
    test.engine.advance(seconds(1));
  }
  EXPECT_EQ(test.counters().dropped, 1U);
  EXPECT_EQ(test.commit_value(), Offset(3));
}

TEST(Lanes, MinDelayOfAnOutcomeLengthensTheBackOff) {
  LanesTest test(plain_retry());
  test.assign();
  test.feed({"a"});
  test.finish(*test.start(), Outcome::retry(Error(Errc::kTimedOut, "x"), seconds(5)));
  test.engine.advance(milliseconds(4'999));
  EXPECT_FALSE(test.start().has_value());
  test.engine.advance(milliseconds(1));
  EXPECT_TRUE(test.start().has_value());
}

// 2.7: at its time-out a handler is asked to stop, once; nothing else of its session starts.
TEST(Lanes, AsksAHandlerToStopAtItsTimeout) {
  LaneOptions options = plain_retry();
  options.handler_timeout = seconds(1);
  LanesTest test(options);
  test.assign();
  test.feed({"a", "a", "b"});
  const Attempt slow = *test.start();
  test.finish(*test.start(), Outcome::ok());
  LaneShard& shard = *test.engine.shards[0];
  test.engine.advance(milliseconds(999));
  EXPECT_TRUE(shard.cancels().empty());
  test.engine.advance(milliseconds(1));
  EXPECT_EQ(shard.cancels(), std::vector<RunId>{slow.run});
  test.engine.advance(seconds(60));
  EXPECT_EQ(shard.cancels().size(), 1U);

  EXPECT_FALSE(test.start().has_value());
  test.finish(slow, Outcome::ok());
  EXPECT_EQ(test.run_all(), (Names{"a/2"}));
  EXPECT_EQ(test.counters().handler_timeouts, 1U);
  EXPECT_EQ(shard.size().waiting, 0U);
}

// 2.7: PC's way; it never ends, at the longest back-off.
TEST(Lanes, BlocksTheSessionWhenThePolicySaysSo) {
  LaneOptions options = plain_retry();
  options.retry.attempts_max = 1;
  options.retry.on_exhausted = OnExhausted::kBlock;
  LanesTest test(options);
  test.assign();
  test.feed({"a"});
  for (std::uint32_t number = 1; number < 100; ++number) {
    const Attempt attempt = *test.start();
    EXPECT_EQ(attempt.number, number);
    test.fail(attempt);
    test.engine.advance(seconds(30));
  }
  EXPECT_EQ(test.commit_value(), Offset(0));
}

// T8, T39 (SP #2968), T46 (DE #48): a second completion is ignored and counted.
TEST(Lanes, T8_T39_T46_IgnoresASecondCompletion) {
  LanesTest test;
  test.assign();
  test.feed({"a", "a", "a"});
  const Attempt first = *test.start();
  test.finish(first, Outcome::ok());
  test.finish(first, Outcome::ok());
  const Attempt second = *test.start();
  test.finish(first, Outcome::ok());
  test.finish(Attempt{.run = {99'999, 1}}, Outcome::ok());

  EXPECT_EQ(test.counters().duplicate_completions, 3U);
  EXPECT_EQ(test.commit_value(), Offset(1));
  test.finish(second, Outcome::ok());
  EXPECT_EQ(test.commit_value(), Offset(2));
}

// D2, T23 (PC #184): the same key in two partitions is two sessions.
TEST(Lanes, D2_T23_KeepsPartitionsApart) {
  LanesTest test;
  test.assign();
  test.engine.dispatcher.assign(1, {Offset(0), kNoLeaderEpoch, ""}, 1, kNoOffset);
  TestLog other;
  other.add("a", 77);
  test.feed({"a"});
  test.engine.dispatcher.offer(1, make_block(other, Offset(0), 10), {}, test.engine.now);
  test.engine.settle();

  const Attempt first = *test.start();
  const Attempt second = *test.start();
  EXPECT_NE(first.partition, second.partition);
  EXPECT_EQ(first.session, second.session);
}

// D5, T24 (PC #579): keys are equal when their bytes are, wherever these are, short or long.
TEST(Lanes, D5_T24_ComparesKeysByTheirBytes) {
  LanesTest test;
  test.assign();
  const std::string long_key(100, 'k');
  test.feed({long_key, "short"});
  test.feed({long_key, "short"});
  test.start();
  test.start();
  EXPECT_FALSE(test.start().has_value());
}

// D1, T25 (PC #318): records without a key are one session, and not that of the empty key.
TEST(Lanes, D1_T25_RecordsWithoutAKeyAreOneSession) {
  LanesTest test;
  test.assign();
  test.feed({"", "", "a"});
  EXPECT_TRUE(test.start()->session.is_null());
  EXPECT_EQ(name_of(*test.start()), "a/1");
  EXPECT_FALSE(test.start().has_value());
}

TEST(Lanes, D1_RecordsWithoutAKeyWaitForNobodyWhenUnordered) {
  DispatchOptions dispatch;
  dispatch.has_unordered_null_sessions = true;
  LanesTest test({}, dispatch);
  test.assign();
  test.feed({"", "", "", ""});
  std::set<Offset> running;
  while (const std::optional<Attempt> attempt = test.start()) {
    running.insert(attempt->record->offset);
  }
  EXPECT_EQ(running.size(), 4U);
}

// C11, D4: a full lane sends what follows into the partition's stash, in order; pressure goes up
// and down at the marks.
TEST(Lanes, C11_D4_StashesInOrderAndAsksForAPause) {
  LaneOptions options;
  options.lane_records_max = 2;
  options.stash_records_high = 4;
  options.stash_records_low = 1;
  LanesTest test(options);
  test.assign();
  const Attempt blocking = [&] {
    test.feed({"a"});
    return *test.start();
  }();
  test.feed({"a", "a", "a", "b", "a"});
  EXPECT_TRUE(test.engine.dispatcher.pauses().empty());
  test.feed({"c"});
  const std::vector<PauseChange> paused = test.engine.dispatcher.pauses();
  ASSERT_EQ(paused.size(), 1U);
  EXPECT_TRUE(paused[0].is_paused);
  EXPECT_FALSE(test.start().has_value());  // b and c wait behind a's third record

  test.finish(blocking, Outcome::ok());
  EXPECT_EQ(test.run_all(), (Names{"a/2", "a/3", "a/4", "a/5", "b/1", "c/1"}));
  const std::vector<PauseChange> resumed = test.engine.dispatcher.pauses();
  ASSERT_EQ(resumed.size(), 1U);
  EXPECT_FALSE(resumed[0].is_paused);
}

// C4: a failing session waits on the back-off budget, so that its partition's others go on.
TEST(Lanes, C4_BackOffBudgetKeepsHealthySessionsGoing) {
  LaneOptions options = plain_retry();
  options.lane_records_max = 2;
  options.backoff_records_max = 3;
  LanesTest test(options);
  test.assign();
  test.feed({"a"});
  test.fail(*test.start());
  test.feed({"a", "a", "a", "a", "b"});
  EXPECT_EQ(test.run_all(), (Names{"b/1"}));
  test.feed({"a", "b"});  // over the budget
  EXPECT_FALSE(test.start().has_value());

  test.engine.advance(milliseconds(100));
  EXPECT_EQ(test.run_all().size(), 7U);
}

// 2.10: a hot session gives way after its quantum.
TEST(Lanes, HotSessionGivesWayAfterItsQuantum) {
  LaneOptions options;
  options.lane_quantum = 3;
  LanesTest test(options);
  test.assign();
  test.feed({"hot", "hot", "hot", "hot", "hot", "cold", "cool"});

  EXPECT_EQ(test.run_all(),
            (Names{"hot/1", "hot/2", "hot/3", "cold/1", "cool/1", "hot/4", "hot/5"}));
}

// 2.10: a partition with many lanes does not starve another.
TEST(Lanes, PartitionsTakeTurns) {
  LaneOptions options;
  options.partition_quantum = 2;
  LanesTest test(options);
  test.assign();
  test.engine.dispatcher.assign(1, {Offset(0), kNoLeaderEpoch, ""}, 1, kNoOffset);
  TestLog other;
  other.add("x", 1);
  other.add("y", 1);
  test.feed({"a", "b", "c", "d", "e"});
  test.engine.dispatcher.offer(1, make_block(other, Offset(0), 10), {}, test.engine.now);
  test.engine.settle();

  EXPECT_EQ(test.run_all(), (Names{"a/1", "b/1", "x/1", "y/1", "c/1", "d/1", "e/1"}));
}

// C3, T69 (Akka.NET #8501): idle lanes go; one that runs, waits or holds something does not.
TEST(Lanes, C3_T69_EvictsOnlyLanesThatHaveNothing) {
  LaneOptions options = plain_retry();
  options.lane_idle = milliseconds(10);
  options.retry.backoff_base = seconds(100);
  options.retry.backoff_max = seconds(100);
  LanesTest test(options);
  test.assign();
  test.feed({"waiting", "running", "idle"});
  test.fail(*test.start());
  const Attempt running = *test.start();
  test.run_all();
  EXPECT_EQ(test.engine.shards[0]->size().lanes, 3U);
  test.engine.advance(milliseconds(10));
  EXPECT_EQ(test.engine.shards[0]->size().lanes, 2U);

  test.finish(running, Outcome::ok());
  test.engine.advance(seconds(100));
  EXPECT_EQ(test.run_all(), (Names{"waiting/1"}));
  test.engine.advance(seconds(1));
  EXPECT_EQ(test.engine.shards[0]->size().lanes, 0U);
}

// T67 (KP #228): at the bound of lanes the partitions pause, and resume without a further record.
TEST(Lanes, T67_ResumesWhenLanesAreFreeAgain) {
  LaneOptions options;
  options.lanes_max = 2;
  LanesTest test(options);
  test.assign();
  test.feed({"a", "b"});
  test.engine.advance(milliseconds(1));
  test.engine.settle();
  ASSERT_EQ(test.engine.dispatcher.pauses().size(), 1U);

  test.run_all();
  test.engine.advance(milliseconds(1));
  test.engine.settle();
  const std::vector<PauseChange> resumed = test.engine.dispatcher.pauses();
  ASSERT_EQ(resumed.size(), 1U);
  EXPECT_FALSE(resumed[0].is_paused);
}

// T22 (PC #843), R1: revoked and given back while its handler runs: the session waits for it, and
// its late end counts for nothing.
TEST(Lanes, R1_T22_SessionWaitsBehindTheTombstoneOfAFormerEpoch) {
  LanesTest test;
  test.assign();
  test.feed({"a", "b"});
  const Attempt old = *test.start();
  test.engine.dispatcher.drain(0, Dispatcher::Drain::kRunning);
  test.engine.settle();
  EXPECT_FALSE(test.engine.dispatcher.is_drained(0));
  test.engine.dispatcher.release(0);
  test.assign();
  test.fetch();

  EXPECT_EQ(test.run_all(), (Names{"b/1"}));
  EXPECT_TRUE(test.engine.shards[0]->busy_lanes(10)[0].is_tombstone);
  test.finish(old, Outcome::ok());
  EXPECT_EQ(test.commit_value(), Offset(0));
  const Attempt again = *test.start();
  EXPECT_EQ(name_of(again), "a/1");
  EXPECT_GT(again.fence, old.fence);
  test.finish(again, Outcome::ok());
  EXPECT_EQ(test.commit_value(), Offset(2));
  EXPECT_EQ(test.counters().detached_returns, 1U);
}

// T27 (SR #3403): a tombstone takes no run slot; T12 (PC #909): it does not keep fresh records out.
TEST(Lanes, T12_T27_TombstonesTakeNoRunSlot) {
  LaneOptions options;
  options.running_max = 1;
  LanesTest test(options);
  test.assign();
  test.feed({"a", "b"});
  const Attempt old = *test.start();
  test.engine.dispatcher.release(0);
  test.engine.settle();
  test.assign();
  test.fetch();

  EXPECT_EQ(test.run_all(), (Names{"b/1"}));
  test.finish(old, Outcome::ok());
  EXPECT_EQ(test.run_all(), (Names{"a/1"}));
}

// 2.6 steps 1 to 3: what waits is the next owner's, what runs may end and counts.
TEST(Lanes, C10_DrainLetsWhatRunsEndAndDiscardsTheRest) {
  LanesTest test(plain_retry());
  test.assign();
  test.feed({"a", "a", "b", "b"});
  const Attempt a = *test.start();
  const Attempt b = *test.start();
  test.engine.dispatcher.drain(0, Dispatcher::Drain::kRunning);
  test.engine.settle();
  test.finish(a, Outcome::ok());
  EXPECT_FALSE(test.engine.dispatcher.is_drained(0));
  test.fail(b);

  EXPECT_TRUE(test.engine.dispatcher.is_drained(0));
  EXPECT_FALSE(test.start().has_value());
  EXPECT_EQ(test.commit_value(), Offset(1));
  EXPECT_EQ(test.engine.dispatcher.counters().discarded, 3U);
  test.engine.dispatcher.release(0);
  test.engine.settle();
  EXPECT_EQ(test.engine.dispatcher.blocks(), 0U);
}

// The bounds of the design: 160 bytes an active lane, 32 a queued record, none for an idle one.
TEST(Lanes, C3_MemoryOfAHundredThousandSessions) {
  LaneOptions options;
  options.lane_idle = milliseconds(1);
  DispatchOptions dispatch;
  dispatch.batches_max = 1'000'000;
  LanesTest test(options, dispatch);
  test.assign();
  constexpr std::size_t kSessionCount = 100'000;
  for (std::size_t i = 0; i < kSessionCount; ++i) {
    test.log.add("session-" + std::to_string(1'000'000 + i), 1);
  }
  test.fetch(10'000);
  const LaneShard& shard = *test.engine.shards[0];
  EXPECT_LE(shard.size().memory, kSessionCount * (160 + 32));

  test.run_all();
  test.engine.advance(milliseconds(10));
  EXPECT_EQ(shard.size().lanes, 0U);
  EXPECT_LE(shard.size().memory, 300'000U);
}

}  // namespace
}  // namespace weir::internal
