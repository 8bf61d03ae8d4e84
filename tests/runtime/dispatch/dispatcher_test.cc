#include "tests/runtime/lane/lanes_world.h"

#include <weir/runtime/lane_map.h>
#include <weir/runtime/session_hash.h>

#include <gtest/gtest.h>

namespace weir::internal {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;
using Names = std::vector<std::string>;

// Session "s" is stuck at its first record; all others are finished.
void run_all_but(LanesTest& test, const std::string& stuck) {
  while (const std::optional<Attempt> attempt = test.start()) {
    if (attempt->session.view_or_empty() != stuck) {
      test.finish(*attempt, Outcome::ok());
    }
  }
}

// A new owner of the partition, in a new process.
std::unique_ptr<LanesTest> restarted(const LanesTest& before, DispatchOptions dispatch = {}) {
  auto after = std::make_unique<LanesTest>(LaneOptions{}, dispatch);
  after->log = before.log;
  after->committed = before.committed;
  after->assign();
  after->fetch();
  return after;
}

// 2.4, P4: after a restart only what was not finished runs, and in order.
TEST(Dispatcher, E5_SkipsWhatAFormerOwnerFinished) {
  LanesTest test;
  test.assign();
  test.feed({"s", "a", "s", "b", "a", "s"});
  run_all_but(test, "s");
  test.commit();
  EXPECT_EQ(test.committed.offset, Offset(0));

  const auto after = restarted(test);
  EXPECT_EQ(after->run_all(), (Names{"s/1", "s/2", "s/3"}));
  EXPECT_EQ(after->engine.dispatcher.counters().replay_skipped, 3U);
  EXPECT_EQ(after->commit_value(), Offset(6));
}

// T2 (PC #893), C3, E3: a map of another base, another extractor or another writer is not used, and
// the start is the committed offset all the same.
TEST(Dispatcher, E3_T2_T8_T9_IgnoresAMapThatIsNotItsOwn) {
  LanesTest test;
  test.assign();
  test.feed({"a", "s", "a", "b", "b", "s", "b"});
  run_all_but(test, "s");
  test.commit();
  ASSERT_EQ(test.committed.offset, Offset(1));

  CommittedOffset moved = test.committed;
  moved.offset = Offset(2);
  for (const CommittedOffset& committed :
       {moved, CommittedOffset{Offset(2), kNoLeaderEpoch, "TGFsbG8="},
        CommittedOffset{Offset(2), kNoLeaderEpoch, "not base64"}}) {
    LanesTest after;
    after.log = test.log;
    after.committed = committed;
    after.assign();
    after.fetch();
    EXPECT_EQ(after.run_all().size(), 5U);
    EXPECT_EQ(after.engine.dispatcher.counters().maps_ignored, 1U);
  }
}

TEST(Dispatcher, E3_IgnoresSessionsOfAnotherExtractor) {
  LanesTest test;
  test.assign();
  // So that the map is by session: many waiting records of one.
  for (std::uint64_t i = 1; i <= 500; ++i) {
    test.log.add("s", i);
    test.log.add("a", i);
  }
  test.fetch();
  run_all_but(test, "s");
  test.commit();

  DispatchOptions other;
  other.extractor = 7;
  EXPECT_EQ(restarted(test, other)->run_all().size(), 1'000U);
  EXPECT_EQ(restarted(test)->run_all().size(), 500U);
}

// A map by session means nothing once records without a key make other sessions.
TEST(Dispatcher, E3_IgnoresSessionsOfAnotherNullSession) {
  DispatchOptions ordered;
  DispatchOptions unordered;
  unordered.has_unordered_null_sessions = true;
  for (const DispatchOptions& mode : {ordered, unordered}) {
    LanesTest test({}, mode);
    test.assign();
    for (std::uint64_t i = 1; i <= 500; ++i) {
      test.log.add("s", i);
      test.log.add("a", i);
    }
    test.log.add("", 1);
    test.log.add("b", 1);
    test.fetch();
    while (const std::optional<Attempt> attempt = test.start()) {
      if (attempt->session.view_or_empty() != "s" && !attempt->record->key.is_null()) {
        test.finish(*attempt, Outcome::ok());
      }
    }
    test.commit();

    EXPECT_EQ(restarted(test, mode)->run_all().size(), 501U);
    const bool is_ordered = !mode.has_unordered_null_sessions;
    EXPECT_EQ(restarted(test, is_ordered ? unordered : ordered)->run_all().size(), 1'002U);
  }
}

// T3 (PC #664): what ends while a commit is under way is committed by the next one.
TEST(Dispatcher, C4_T3_CompletionDuringACommitIsNotForgotten) {
  LanesTest test;
  test.assign();
  test.feed({"a", "b"});
  test.finish(*test.start(), Outcome::ok());
  Dispatcher& dispatcher = test.engine.dispatcher;
  ASSERT_EQ(dispatcher.begin_commit(test.engine.now).size(), 1U);
  test.finish(*test.start(), Outcome::ok());
  dispatcher.finish_commit(CommitResult::kOk);

  const std::vector<PartitionCommit> next = dispatcher.begin_commit(test.engine.now);
  ASSERT_EQ(next.size(), 1U);
  EXPECT_EQ(next[0].offset.offset, Offset(2));
  dispatcher.finish_commit(CommitResult::kOk);
  EXPECT_TRUE(dispatcher.begin_commit(test.engine.now).empty());
}

// T4 (PC #409), E4: records that the map names and compaction removed hold nothing up.
TEST(Dispatcher, E4_T4_RecordsThatAreGoneHoldNothingUp) {
  LanesTest test;
  test.assign();
  test.feed({"s", "a", "s", "a", "b"});
  run_all_but(test, "s");
  test.commit();
  std::erase_if(test.log.records, [](const TestRecord& record) { return record.session == "s"; });

  const auto after = restarted(test);
  EXPECT_TRUE(after->run_all().empty());
  EXPECT_EQ(after->commit_value(), Offset(5));
}

// E4: what lies above a truncated log's end is new, whatever the map says.
TEST(Dispatcher, E4_RecordsAboveATruncatedEndRun) {
  LanesTest test;
  test.assign();
  test.feed({"s", "a", "a", "a"});
  run_all_but(test, "s");
  test.commit();
  LanesTest after;
  after.committed = test.committed;
  after.log.add("s", 1);
  after.log.add("a", 1);
  after.assign();
  after.log.add("new", 1);
  after.log.add("new", 2);
  after.fetch();

  EXPECT_EQ(after.run_all(), (Names{"s/1", "new/1", "new/2"}));
}

// T10 (PC #647), E2: with more unfinished sessions than a map holds it says what it can; intake
// goes on and nothing is skipped that was not finished.
void expect_shrunk_map_is_true(std::uint64_t waiting) {
  LaneOptions lanes;
  lanes.running_max = 10'000;
  lanes.stash_records_high = 1'000'000;
  LanesTest test(lanes);
  test.assign();
  constexpr std::size_t kStuck = 2'000;
  for (std::uint64_t number = 1; number <= waiting; ++number) {
    for (std::size_t i = 0; i < kStuck; ++i) {
      test.log.add("stuck-" + std::to_string(i), number, static_cast<std::int64_t>(i % 7 * 1'000));
      test.log.add("done", (number - 1) * kStuck + i + 1);
    }
  }
  test.fetch();
  while (const std::optional<Attempt> attempt = test.start()) {
    if (attempt->session.view() == "done") {
      test.engine.finish(0, *attempt, Outcome::ok());
    }
  }
  test.engine.settle();
  // "done" waits behind the stash of nobody: everything of it is finished.
  EXPECT_EQ(test.engine.shards[0]->size().records, kStuck * waiting);
  test.commit();
  EXPECT_LE(test.committed.metadata.size(), kCommitMetadataBytesMax);

  const auto after = restarted(test);
  const Names again = after->run_all();
  EXPECT_EQ(std::count_if(again.begin(), again.end(),
                          [](const std::string& name) { return name.starts_with("stuck"); }),
            static_cast<std::ptrdiff_t>(kStuck * waiting));
  EXPECT_GT(after->engine.dispatcher.counters().replay_skipped, 400U);
  EXPECT_EQ(after->commit_value(), after->log.end);
}

TEST(Dispatcher, E2_T10_ShrinksTheMapAndGoesOn) {
  expect_shrunk_map_is_true(1);
}

// By session: more sessions than a map lists, each with records behind its head.
TEST(Dispatcher, E2_T10_ShrinksAMapOfSessionsAndGoesOn) {
  expect_shrunk_map_is_true(8);
}

// 2.7 T6: attempts survive a restart, so that a poison record's budget does not start anew.
TEST(Dispatcher, AttemptsSurviveARestart) {
  LaneOptions lanes;
  lanes.retry.backoff_base = milliseconds(0);
  LanesTest test(lanes);
  test.assign();
  test.feed({"a"});
  for (int i = 0; i < 4; ++i) {
    test.fail(*test.start());
  }
  test.commit();
  EXPECT_EQ(restarted(test)->start()->number, 5U);
}

// T15 (SP #3186), T16 (SR): a failed commit is followed by a higher one, never a lower one.
TEST(Dispatcher, C2_T15_T16_CommitsNeverGoBack) {
  LanesTest test;
  test.assign();
  test.feed({"a", "b", "c"});
  Dispatcher& dispatcher = test.engine.dispatcher;
  Offset last;
  for (int i = 0; i < 3; ++i) {
    test.finish(*test.start(), Outcome::ok());
    const std::vector<PartitionCommit> commits = dispatcher.begin_commit(test.engine.now);
    ASSERT_EQ(commits.size(), 1U);
    EXPECT_GT(commits[0].offset.offset, last);
    last = commits[0].offset.offset;
    dispatcher.finish_commit(i == 1 ? CommitResult::kOk : CommitResult::kRetry);
  }
  EXPECT_EQ(dispatcher.counters().commit_regressions, 0U);
  EXPECT_EQ(dispatcher.begin_commit(test.engine.now).size(), 1U);
}

// T17 (SR #1396): the first commit is never below where the group stood.
TEST(Dispatcher, T17_StartsAtTheCommittedOffset) {
  LanesTest test;
  test.committed.offset = Offset(100);
  test.log.end = Offset(100);
  test.assign();
  EXPECT_EQ(test.commit_value(), Offset(100));
  EXPECT_TRUE(test.engine.dispatcher.begin_commit(test.engine.now).empty());
}

// C6 error 12.
TEST(Dispatcher, C6_CommitsWithoutItsMapWhenTheLogRefusesIt) {
  LanesTest test;
  test.assign();
  test.feed({"s", "a", "a"});
  run_all_but(test, "s");
  Dispatcher& dispatcher = test.engine.dispatcher;
  const std::string with_map = dispatcher.begin_commit(test.engine.now)[0].offset.metadata;
  dispatcher.finish_commit(CommitResult::kMetadataTooLarge);
  EXPECT_TRUE(dispatcher.is_commit_due(test.engine.now));

  EXPECT_TRUE(decode_commit_metadata(dispatcher.begin_commit(test.engine.now)[0].offset.metadata)
                  ->lane_map.empty());
  EXPECT_EQ(dispatcher.counters().maps_dropped, 1U);
}

TEST(Dispatcher, C5_CommitsByTimeOrByFinishedRecords) {
  DispatchOptions dispatch;
  dispatch.commit_records = 2;
  LanesTest test({}, dispatch);
  test.assign();
  test.feed({"a", "b", "c"});
  const auto due = [&] { return test.engine.dispatcher.is_commit_due(test.engine.now); };
  test.commit();
  EXPECT_FALSE(due());
  test.finish(*test.start(), Outcome::ok());
  EXPECT_FALSE(due());
  test.finish(*test.start(), Outcome::ok());
  EXPECT_TRUE(due());
  test.commit();
  EXPECT_FALSE(due());
  test.finish(*test.start(), Outcome::ok());
  test.engine.advance(seconds(1));
  EXPECT_TRUE(due());
}

// T45 (Karafka #1900), T4 of 2.7: at its window a partition pauses alone and loses nothing.
TEST(Dispatcher, T45_PausesAtItsWindowAlone) {
  DispatchOptions dispatch;
  dispatch.window_max = 4;
  LanesTest test({}, dispatch);
  test.assign();
  test.engine.dispatcher.assign(1, {Offset(0), kNoLeaderEpoch, ""}, 1, kNoOffset);
  test.feed({"a", "b", "c", "d", "e", "f"});
  const std::vector<PauseChange> paused = test.engine.dispatcher.pauses();
  ASSERT_EQ(paused.size(), 1U);
  EXPECT_EQ(paused[0].partition, 0U);

  EXPECT_EQ(test.run_all().size(), 6U);
  EXPECT_EQ(test.engine.dispatcher.pauses().size(), 1U);
  EXPECT_EQ(test.commit_value(), Offset(6));
}

// T41 (PC #832), T53 (PC #836): bytes count until the last reader of a block is gone, in back-off
// too.
TEST(Dispatcher, T41_T53_CountsBytesOfRecordsInBackOff) {
  DispatchOptions dispatch;
  dispatch.bytes_max = 5'000;
  LanesTest test({}, dispatch);
  test.assign();
  test.feed({"a"});
  test.feed({"b"});
  const std::uint64_t two = test.engine.dispatcher.bytes();
  EXPECT_GT(two, 0U);
  test.fail(*test.start());
  EXPECT_EQ(test.run_all(), (Names{"b/1"}));
  EXPECT_EQ(test.engine.dispatcher.bytes(), two / 2);
  while (test.engine.dispatcher.bytes() < 5'000) {
    test.feed({"a"});
  }
  ASSERT_EQ(test.engine.dispatcher.pauses().size(), 1U);

  test.engine.advance(seconds(60));
  test.run_all();
  EXPECT_EQ(test.engine.dispatcher.bytes(), 0U);
  EXPECT_EQ(test.engine.dispatcher.pauses().size(), 1U);
}

// T52 (PC #606): load of an epoch that ended does not pause the next one.
TEST(Dispatcher, T52_LoadOfAFormerEpochDoesNotPause) {
  LaneOptions lanes;
  lanes.lane_records_max = 1;
  lanes.stash_records_high = 2;
  lanes.stash_records_low = 1;
  LanesTest test(lanes);
  test.assign();
  test.feed({"a", "a", "a", "a", "a"});
  ASSERT_EQ(test.engine.dispatcher.pauses().size(), 1U);
  test.engine.dispatcher.release(0);
  test.engine.settle();
  test.assign();

  EXPECT_TRUE(test.engine.dispatcher.pauses().empty());
}

// T56 (RX #259): the tracker starts anew with each epoch.
TEST(Dispatcher, T56_FetchesAgainAfterAReassignment) {
  LanesTest test;
  test.assign();
  test.feed({"a", "b"});
  test.engine.dispatcher.release(0);
  test.assign();
  test.fetch();

  EXPECT_EQ(test.run_all().size(), 2U);
  EXPECT_EQ(test.engine.dispatcher.counters().duplicates, 0U);
}

// T60 (SP #2581): one partition's hand-over leaves the others alone.
TEST(Dispatcher, T60_HandOverOfOnePartitionLeavesOthersAlone) {
  LanesTest test;
  test.assign();
  Dispatcher& dispatcher = test.engine.dispatcher;
  dispatcher.assign(1, {Offset(0), kNoLeaderEpoch, ""}, 1, kNoOffset);
  test.feed({"a", "b"});
  dispatcher.drain(1, Dispatcher::Drain::kRunning);
  test.engine.settle();
  dispatcher.release(1);
  test.engine.settle();

  EXPECT_EQ(test.run_all().size(), 2U);
  EXPECT_EQ(test.commit_value(), Offset(2));
}

// 2.5: a batch of markers or aborted data gives no record and moves the position.
TEST(Dispatcher, T19_EmptyBlocksMoveTheCommit) {
  LanesTest test;
  test.assign();
  test.feed({"a"});
  test.log.add_marker();
  test.log.add_marker();
  test.fetch();
  EXPECT_EQ(test.commit_value(), Offset(0));
  test.run_all();
  EXPECT_EQ(test.commit_value(), Offset(3));
}

// --- tier one -----------------------------------------------------------------------------------

TEST(SlotTable, C2_ANewWorkerTakesOneSlotInNPlusOne) {
  SlotTable table(4);
  std::vector<std::uint32_t> before;
  for (std::size_t slot = 0; slot < kSlots; ++slot) {
    before.push_back(table.worker(static_cast<std::uint16_t>(slot)));
  }
  table.resize(5);
  std::size_t moved = 0;
  for (std::size_t slot = 0; slot < kSlots; ++slot) {
    const std::uint32_t now = table.worker(static_cast<std::uint16_t>(slot));
    moved += now != before[slot] ? 1U : 0U;
    EXPECT_TRUE(now == before[slot] || now == 4);
  }
  EXPECT_EQ(moved, kSlots / 5);
  table.resize(4);
  for (std::size_t slot = 0; slot < kSlots; ++slot) {
    EXPECT_LT(table.worker(static_cast<std::uint16_t>(slot)), 4U);
  }
}

// D3, T28 (Pulsar #23307), T30 (Pulsar #23795): a slot moves when its last record is back, then at
// once.
TEST(SlotTable, D3_T28_T30_MovesASlotOnlyOnceItIsDrained) {
  SlotTable table(2);
  table.sent(5);
  table.sent(5);
  table.move(5, 1);
  EXPECT_EQ(table.worker(5), 0U);
  table.returned(5);
  EXPECT_EQ(table.worker(5), 0U);
  EXPECT_EQ(table.pending(), 1U);
  table.returned(5);
  EXPECT_EQ(table.worker(5), 1U);
  EXPECT_EQ(table.pending(), 0U);
}

TEST(Dispatcher, SpreadUsesAllWorkersForOnePartition) {
  DispatchOptions dispatch;
  dispatch.workers = 4;
  dispatch.mode = DispatchMode::kSpread;
  LanesTest test({}, dispatch);
  test.assign();
  for (int i = 0; i < 1'000; ++i) {
    test.log.add("session-" + std::to_string(i), 1);
  }
  test.fetch();
  for (const auto& shard : test.engine.shards) {
    EXPECT_NEAR(static_cast<double>(shard->size().records), 250, 60);
  }
}

}  // namespace
}  // namespace weir::internal
