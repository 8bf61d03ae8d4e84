#include "tests/runtime/lane/session_engine_fixture.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <string>
#include <thread>
#include <vector>

namespace weir {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;
using testing::with_threads;
using testing::without_threads;
using World = testing::EngineWorld;

TEST(SessionEngine, RunsAndCommitsEverything) {
  World world(without_threads());
  world.produce(20, 50);
  world.run_all();
  ASSERT_TRUE(world.engine->close(SessionEngine::Close::kDrainRunning, seconds(30)).ok());

  world.expect_everything_in_order();
  EXPECT_EQ(world.group.offset(0), Offset(500));
  EXPECT_EQ(world.group.offset(1), Offset(500));
  EXPECT_TRUE(world.group.has_left);
}

// Retries, dead letters and real threads, every order checked.
void run_threads(SessionDispatch dispatch) {
  World world(with_threads(dispatch));
  std::atomic<std::uint32_t> draws = 0;
  world.handlers.outcome = [&](const Attempt& attempt) {
    return attempt.number == 1 && draws++ % 10 == 0
               ? Outcome::retry(Error(Errc::kTimedOut, "transient"))
               : Outcome::ok();
  };
  world.produce(50, 100);
  world.run_all();
  ASSERT_TRUE(world.engine->close(SessionEngine::Close::kDrainRunning, seconds(30)).ok());

  world.expect_everything_in_order();
  EXPECT_EQ(world.group.offset(0), Offset(2'500));
  EXPECT_EQ(world.engine->signals().commit_regressions, 0U);
}

TEST(SessionEngine, C1_KeepsOrderWithThreadsAndFailuresLocal) {
  run_threads(SessionDispatch::kLocal);
}

TEST(SessionEngine, C2_KeepsOrderWithThreadsAndFailuresSpread) {
  run_threads(SessionDispatch::kSpread);
}

// T2 and T40 (SP #2128), T68 (franz-go #1200): polling goes on while every handler is stuck.
TEST(SessionEngine, T40_T68_PollsWhileHandlersBlock) {
  World world(with_threads(SessionDispatch::kSpread));
  {
    const MutexLock lock(world.handlers.mutex);
    world.handlers.is_shut = true;
  }
  world.produce(50, 10);
  world.run_until([&] { return world.engine->signals().accepted == world.total(); });
  world.handlers.wait_inside(3);

  EXPECT_EQ(world.engine->signals().terminal, 0U);
  EXPECT_EQ(world.engine->stuck(5).size(), 10U);  // C12: five a partition
  world.handlers.open_gate();
  world.run_all();
  world.expect_everything_in_order();
}

// T64 (backbeat #2740), T66 (PostHog #80897), C10: what runs ends and is committed; then the rest
// is the next owner's.
TEST(SessionEngine, T64_T66_RevokeDrainsThenCommitsThenReleases) {
  World world(with_threads(SessionDispatch::kLocal));
  {
    const MutexLock lock(world.handlers.mutex);
    world.handlers.is_shut = true;
  }
  world.produce(2, 10);
  world.run_until([&] { return world.engine->signals().accepted == world.total(); });
  world.handlers.wait_inside(2);
  std::thread opener([&] { world.handlers.open_gate(); });
  world.group.due.emplace_back([&](GroupListener& listener) { listener.on_revoked(world.all); });
  ASSERT_TRUE(world.engine->run_once(milliseconds(0)).ok());
  opener.join();

  // Each session's running record, and whatever ran before the drain arrived; never a hole.
  const MutexLock lock(world.handlers.mutex);
  for (std::int32_t partition = 0; partition < 2; ++partition) {
    const auto done = world.handlers.seen["session-" + std::to_string(partition)].size();
    EXPECT_GE(done, 1U);
    EXPECT_EQ(world.group.offset(partition), Offset(static_cast<std::int64_t>(done)));
  }
  EXPECT_TRUE(world.engine->positions().empty());
}

// R2 and T62 (AL #1263): lost partitions commit nothing.
TEST(SessionEngine, R2_T62_LostPartitionsCommitNothing) {
  World world(without_threads());
  world.produce(4, 10);
  world.run_until([&] { return world.engine->signals().terminal > 0; });
  const int commits = world.group.commits;
  world.group.due.emplace_back([&](GroupListener& listener) { listener.on_lost(world.all); });
  ASSERT_TRUE(world.engine->run_once(milliseconds(0)).ok());
  ASSERT_TRUE(world.engine->close(SessionEngine::Close::kDrainRunning, seconds(1)).ok());

  EXPECT_EQ(world.group.commits, commits);
}

// C6, T55 (PC-fork #100), T59 (RX #314): a rebalance in progress is no failure and loses no commit.
TEST(SessionEngine, T55_T59_CommitsAgainAfterARebalanceInProgress) {
  World world(without_threads());
  world.group.commit_error = Error(Errc::kTimedOut, "rebalance in progress");
  world.produce(4, 10);
  world.run_until([&] { return world.engine->signals().commits > 0; });

  EXPECT_EQ(world.engine->signals().commit_failures, 1U);
  world.run_until([&] { return world.group.offset(0) == Offset(20); });
}

// C6 error 12: the commit goes without its lane map.
TEST(SessionEngine, C6_CommitsWithoutMapWhenMetadataIsRefused) {
  World world(without_threads());
  world.group.commit_error = Error(Errc::kInvalidArgument, "metadata too large");
  world.produce(4, 10);
  world.run_until([&] { return world.group.offset(1) == Offset(20); });
}

TEST(SessionEngine, C6_ReportsARefusalThatIsNotTheMaps) {
  World world(without_threads());
  world.produce(4, 10);
  Status status;
  for (int round = 0; round < 2'000 && status.ok(); ++round) {
    world.group.commit_error = Error(Errc::kInvalidArgument, "never");
    status = world.engine->run_once(milliseconds(0));
    world.clock.advance(milliseconds(5));
  }
  EXPECT_EQ(status.error().message(), "never");
  EXPECT_EQ(world.group.commits, 2);
}

// C6: a fenced member's partitions are lost; the group gives them anew.
TEST(SessionEngine, C6_FencedCommitLosesThePartitions) {
  World world(without_threads());
  world.group.commit_error = Error(Errc::kFenced, "unknown member");
  world.produce(4, 10);
  world.run_until([&] { return world.engine->positions().empty() && world.group.commits > 0; });

  EXPECT_EQ(world.group.offset(0), Offset(0));
  world.group.due.emplace_back([&](GroupListener& listener) { listener.on_assigned(world.all); });
  world.run_until([&] { return world.group.offset(0) == Offset(20); });
}

// T20 (PC-fork #108): what the group refused at the end is not taken for committed.
TEST(SessionEngine, T20_CloseReportsARejectedLastCommit) {
  SessionOptions options = without_threads();
  options.commit_interval = std::chrono::hours(1'000'000);
  World world(options);
  world.produce(4, 10);
  world.run_all();
  world.group.commit_error = Error(Errc::kIo, "the disk is gone");

  EXPECT_EQ(world.engine->close(SessionEngine::Close::kDrainRunning, seconds(1)).error().code(),
            Errc::kIo);
  EXPECT_EQ(world.group.offset(0), Offset(0));
}

// C7: every worker flushes between the snapshot and the commit.
TEST(SessionEngine, C7_EveryWorkerFlushesBeforeACommit) {
  SessionOptions options = with_threads(SessionDispatch::kLocal);
  options.commit_interval = milliseconds(1);
  World world(options);
  world.produce(4, 10);
  world.run_until([&] { return world.group.offset(0) == Offset(20); });

  const MutexLock lock(world.handlers.mutex);
  for (std::uint32_t worker = 0; worker < 3; ++worker) {
    EXPECT_GE(world.handlers.flushes[worker], 1);
  }
}

// C12 and 2.14: a close waits for dead letters, and with kDrainQueued for all that was fetched.
TEST(SessionEngine, C12_CloseDrainsWhatWasFetched) {
  SessionOptions options = with_threads(SessionDispatch::kSpread);
  options.retry.attempts_max = 1;
  World world(options);
  world.handlers.outcome = [](const Attempt& attempt) {
    return attempt.record->value.view().ends_with("/3")
               ? Outcome::dead(Error(Errc::kInvalidRecord, "bad"))
               : Outcome::ok();
  };
  world.produce(10, 10);
  world.run_until([&] { return world.engine->signals().accepted == world.total(); });
  ASSERT_TRUE(world.engine->close(SessionEngine::Close::kDrainQueued, seconds(60)).ok());

  EXPECT_EQ(world.group.offset(0), Offset(50));
  EXPECT_EQ(world.group.offset(1), Offset(50));
  const MutexLock lock(world.handlers.mutex);
  EXPECT_EQ(world.handlers.letters.size(), 10U);
}

// T51 (PC #787), 2.14: a close has an absolute end, also while a record keeps failing.
TEST(SessionEngine, T51_CloseEndsAtItsDeadline) {
  SessionOptions options = with_threads(SessionDispatch::kLocal);
  options.retry = {.backoff_base = milliseconds(1),
                   .backoff_max = milliseconds(1),
                   .attempts_max = 0,
                   .elapsed_max = Duration::zero()};
  World world(options);
  world.handlers.outcome = [](const Attempt& attempt) {
    return attempt.record->value.view() == "session-0/5"
               ? Outcome::retry(Error(Errc::kTimedOut, "never"))
               : Outcome::ok();
  };
  world.produce(2, 10);
  world.run_until([&] { return world.engine->signals().terminal >= 15; });

  ASSERT_TRUE(world.engine->close(SessionEngine::Close::kDrainQueued, milliseconds(300)).ok());
  EXPECT_EQ(world.group.offset(0), Offset(5));
  EXPECT_EQ(world.group.offset(1), Offset(10));
}

// R4: a callback of the group ends by its deadline although a handler does not.
TEST(SessionEngine, R4_RevokeEndsAtItsDeadlineWhileAHandlerHangs) {
  SessionOptions options = with_threads(SessionDispatch::kLocal);
  options.drain_max = milliseconds(200);
  World world(options);
  {
    const MutexLock lock(world.handlers.mutex);
    world.handlers.is_shut = true;
  }
  world.produce(2, 3);
  world.run_until([&] { return world.engine->signals().accepted == world.total(); });
  world.handlers.wait_inside(2);
  world.group.due.emplace_back([&](GroupListener& listener) { listener.on_revoked(world.all); });
  const MonotonicTime before = system_clock().monotonic();
  ASSERT_TRUE(world.engine->run_once(milliseconds(0)).ok());
  EXPECT_LT(system_clock().monotonic() - before, seconds(1) + milliseconds(200));
  EXPECT_EQ(world.group.offset(0), Offset(0));

  // Given back, the sessions wait for the old handlers (R1); what these did counts for nothing.
  world.group.due.emplace_back([&](GroupListener& listener) { listener.on_assigned(world.all); });
  ASSERT_TRUE(world.engine->run_once(milliseconds(0)).ok());
  world.handlers.open_gate();
  world.run_until([&] { return world.group.offset(0) == Offset(3); });
  const MutexLock lock(world.handlers.mutex);
  EXPECT_EQ(world.handlers.seen["session-0"],
            (std::vector<std::string>{"session-0/0", "session-0/0", "session-0/1", "session-0/2"}));
}

// R5 and T50 (PC #637): a storm of hand-overs makes progress, keeps order and closes.
TEST(SessionEngine, R5_T50_RebalanceStormMakesProgress) {
  World world(with_threads(SessionDispatch::kSpread));
  world.produce(20, 500);
  int storms = 0;
  world.run_until([&] {
    if (world.engine->positions().empty()) {
      world.group.due.emplace_back(
          [&](GroupListener& listener) { listener.on_assigned(world.all); });
    } else if (++storms <= 60) {
      world.group.due.emplace_back(
          [&](GroupListener& listener) { listener.on_revoked(world.all); });
    }
    return world.group.offset(0) == Offset(5'000) && world.group.offset(1) == Offset(5'000);
  });
  ASSERT_TRUE(world.engine->close(SessionEngine::Close::kDrainRunning, seconds(30)).ok());
  world.expect_everything_in_order();
}

// T55 (PC-fork #80): a close that drains goes on polling the group.
TEST(SessionEngine, T55_CloseGoesOnPollingTheGroup) {
  World world(without_threads());
  world.produce(2, 3);
  world.run_all();
  const int polls = world.group.polls;
  ASSERT_TRUE(world.engine->close(SessionEngine::Close::kDrainQueued, seconds(1)).ok());
  EXPECT_GT(world.group.polls, polls);
}

// T57 (RX #237): a new assignment does not resume what is paused.
TEST(SessionEngine, T57_PausesStayOverAnAssignment) {
  SessionOptions options = without_threads();
  options.window_records_max = 4;
  options.retry.backoff_base = options.retry.backoff_max = std::chrono::hours(1);
  World world(options);
  world.group.due.clear();
  world.group.due.emplace_back(
      [&](GroupListener& listener) { listener.on_assigned({world.all.data(), 1}); });
  world.handlers.outcome = [](const Attempt&) {
    return Outcome::retry(Error(Errc::kTimedOut, "broken"));
  };
  world.produce(2, 20);
  const auto run_rounds = [&] {
    for (int round = 0; round < 20; ++round) {
      ASSERT_TRUE(world.engine->run_once(milliseconds(0)).ok());
    }
  };
  run_rounds();
  const std::uint64_t bytes = world.engine->signals().bytes;
  EXPECT_EQ(world.engine->signals().accepted, 4U);
  world.group.due.emplace_back(
      [&](GroupListener& listener) { listener.on_assigned({world.all.data() + 1, 1}); });
  run_rounds();
  const std::uint64_t with_the_other = world.engine->signals().bytes;
  EXPECT_EQ(world.engine->signals().accepted, 8U);
  world.produce(2, 20);
  run_rounds();

  EXPECT_GT(bytes, 0U);
  EXPECT_EQ(world.engine->signals().bytes, with_the_other);
}

// The lane map at work: finished records above the committed offset do not run again.
TEST(SessionEngine, E_RestartRunsOnlyWhatWasNotFinished) {
  SessionOptions options = without_threads();
  options.retry.attempts_max = 0;
  options.retry.elapsed_max = Duration::zero();
  World world(options);
  bool is_broken = true;
  world.handlers.outcome = [&](const Attempt& attempt) {
    return is_broken && attempt.session.view() == "session-0"
               ? Outcome::retry(Error(Errc::kTimedOut, "broken"))
               : Outcome::ok();
  };
  world.produce(10, 100);
  world.run_until([&] { return world.engine->signals().terminal == 900; });
  ASSERT_TRUE(world.engine->close(SessionEngine::Close::kDrainRunning, seconds(1)).ok());
  EXPECT_EQ(world.group.offset(0), Offset(0));

  is_broken = false;
  world.engine.reset();
  world.group.due.emplace_back([&](GroupListener& listener) { listener.on_assigned(world.all); });
  world.start();
  world.run_until([&] { return world.group.offset(0) == Offset(500); });
  EXPECT_EQ(world.engine->signals().replay_skipped, 400U);
  world.expect_everything_in_order();
}

TEST(SessionEngine, StopsWithTheHandlersCause) {
  World world(without_threads());
  world.handlers.outcome = [](const Attempt& attempt) {
    return attempt.record->offset == Offset(3) ? Outcome::stop(Error(Errc::kInternal, "enough"))
                                               : Outcome::ok();
  };
  world.produce(2, 10);
  Status status;
  for (int round = 0; round < 100 && status.ok(); ++round) {
    status = world.engine->run_once(milliseconds(0));
    world.clock.advance(milliseconds(5));
  }
  EXPECT_EQ(status.error().message(), "enough");
  ASSERT_TRUE(world.engine->close(SessionEngine::Close::kDrainQueued, seconds(1)).ok());
  EXPECT_EQ(world.group.offset(0), Offset(3));
}

TEST(SessionEngine, RefusesBoundsThatMakeNoSense) {
  SessionOptions options;
  options.workers = 0;
  EXPECT_EQ(SessionEngine::open(options, {}, {}).error().code(), Errc::kInvalidConfig);
  options = {};
  options.stash_records_low = options.stash_records_high;
  EXPECT_EQ(SessionEngine::open(options, {}, {}).error().code(), Errc::kInvalidConfig);
}

// A lane map by session belongs to the extractor that made the sessions: it has a name of its own.
TEST(SessionEngine, E3_RefusesAnExtractorWithoutAnId) {
  for (const std::uint16_t id : {std::uint16_t{0}, std::uint16_t{0x8000}}) {
    SessionOptions options = without_threads();
    options.extractor_id = id;
    SessionEngine::Parts parts;
    parts.extractor = [](const RecordBlock& block) {
      return std::vector<NullableBytes>(block.records.size());
    };
    EXPECT_THAT(SessionEngine::open(options, std::move(parts), {}).error().message(),
                ::testing::HasSubstr("extractor"));
  }
}

}  // namespace
}  // namespace weir
