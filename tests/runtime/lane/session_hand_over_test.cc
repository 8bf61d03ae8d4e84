#include "tests/runtime/lane/session_engine_fixture.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

// What a session engine commits, and when, while partitions come and go.

namespace weir {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;
using testing::with_threads;
using testing::without_threads;
using World = testing::EngineWorld;

// Commits only when partitions are given up.
SessionOptions only_last_commits(SessionOptions options) {
  options.commit_interval = std::chrono::hours(1'000'000);
  return options;
}

// Fails once, as a sink does that reports a failure and forgets it.
std::function<Status()> flush_that_fails_once() {
  return [left = 1]() mutable {
    return left-- > 0 ? Status(Error(Errc::kIo, "a record was not written")) : Status();
  };
}

// C7: what a failed flush lost is never passed by a later commit.
TEST(SessionHandOver, C7_CommitsNeverAgainAfterAFailedFlush) {
  World world(without_threads());
  world.handlers.flush = flush_that_fails_once();
  world.produce(4, 10);
  Status status;
  for (int round = 0; round < 2'000 && status.ok(); ++round) {
    status = world.engine->run_once(milliseconds(0));
    world.clock.advance(milliseconds(5));
  }
  ASSERT_FALSE(status.ok());
  EXPECT_EQ(status.error().code(), Errc::kIo);
  status = world.engine->run_once(milliseconds(0));
  ASSERT_FALSE(status.ok());
  EXPECT_EQ(status.error().code(), Errc::kIo);
  status = world.engine->close(SessionEngine::Close::kDrainRunning, seconds(1));
  ASSERT_FALSE(status.ok());
  EXPECT_EQ(status.error().code(), Errc::kIo);
  EXPECT_EQ(world.group.commits, 0);
}

TEST(SessionHandOver, C7_AFlushThatFailsAtARevokeEndsAllCommits) {
  World world(only_last_commits(without_threads()));
  world.produce(4, 10);
  world.run_all();
  world.handlers.flush = flush_that_fails_once();
  world.group.due.emplace_back(
      [&](GroupListener& listener) { listener.on_revoked({world.all.data(), 1}); });
  Status status = world.engine->run_once(milliseconds(0));
  ASSERT_FALSE(status.ok());
  EXPECT_EQ(status.error().code(), Errc::kIo);
  status = world.engine->close(SessionEngine::Close::kDrainRunning, seconds(1));
  ASSERT_FALSE(status.ok());
  EXPECT_EQ(status.error().code(), Errc::kIo);
  EXPECT_EQ(world.group.commits, 0);
}

// A flush that ends after its commit was given up.
TEST(SessionHandOver, C7_ALateFlushThatFailsEndsAllCommits) {
  SessionOptions options = only_last_commits(with_threads(SessionDispatch::kLocal));
  options.workers = 1;
  options.drain_max = milliseconds(50);
  World world(options);
  world.produce(4, 10);
  world.run_all();
  std::atomic<int> calls = 0;
  world.handlers.flush = [&]() -> Status {
    if (calls++ > 0) {
      return {};
    }
    const MutexLock lock(world.handlers.mutex);
    while (world.handlers.is_shut) {
      world.handlers.condition.wait(world.handlers.mutex);
    }
    return Error(Errc::kIo, "a record was not written");
  };
  {
    const MutexLock lock(world.handlers.mutex);
    world.handlers.is_shut = true;
  }
  world.group.due.emplace_back(
      [&](GroupListener& listener) { listener.on_revoked({world.all.data(), 1}); });
  ASSERT_TRUE(world.engine->run_once(milliseconds(0)).ok());
  EXPECT_EQ(world.engine->positions().size(), 1U);
  world.handlers.open_gate();
  const Status status = world.engine->close(SessionEngine::Close::kDrainRunning, seconds(30));
  ASSERT_FALSE(status.ok());
  EXPECT_EQ(status.error().code(), Errc::kIo);
  EXPECT_EQ(world.group.commits, 0);
}

// T55: a rebalance while a close drains is served, and never from inside a callback.
TEST(SessionHandOver, T55_ARebalanceDuringACloseDoesNotPollAgain) {
  World world(without_threads());
  world.produce(4, 10);
  world.run_all();
  world.group.due.emplace_back([&](GroupListener& listener) { listener.on_revoked(world.all); });
  ASSERT_TRUE(world.engine->close(SessionEngine::Close::kDrainQueued, seconds(1)).ok());

  EXPECT_EQ(world.group.nested_polls, 0);
  EXPECT_EQ(world.group.offset(0), Offset(20));
}

// 2.6 step 1: the gate closes before anything is waited for, an earlier commit's flush too.
TEST(SessionHandOver, RevokeStopsQueuedRecordsWhileACommitIsInFlight) {
  SessionOptions options = without_threads();
  options.commit_interval = milliseconds(1);
  World world(options);
  world.handlers.attempts_max = 1;
  int handled = 0;
  world.handlers.outcome = [&](const Attempt&) {
    ++handled;
    return Outcome::ok();
  };
  world.produce(2, 50);
  // One record a round, and a commit of the one before is always in flight.
  world.run_until([&] { return world.engine->signals().commits >= 5; });
  const int before = handled;
  world.group.due.emplace_back([&](GroupListener& listener) {
    listener.on_revoked(world.all);
    EXPECT_EQ(handled, before);
  });
  ASSERT_TRUE(world.engine->run_once(milliseconds(0)).ok());
  EXPECT_EQ(world.group.offset(0).value() + world.group.offset(1).value(), before);
}

// C6, 2.14: what passes is waited for, so that what was done is not done again.
TEST(SessionHandOver, C6_CloseRepeatsACommitThatMaySucceedLater) {
  World world(only_last_commits(without_threads()));
  world.produce(4, 10);
  world.run_all();
  world.group.commit_error = Error(Errc::kTimedOut, "rebalance in progress");
  ASSERT_TRUE(world.engine->close(SessionEngine::Close::kDrainRunning, seconds(1)).ok());
  EXPECT_EQ(world.group.offset(0), Offset(20));
  EXPECT_EQ(world.group.offset(1), Offset(20));
}

TEST(SessionHandOver, C6_CloseReportsACommitThatNeverSucceeded) {
  for (const Errc code : {Errc::kTimedOut, Errc::kFenced}) {
    World world(only_last_commits(without_threads()));
    world.produce(4, 10);
    world.run_all();
    world.group.commit_error = Error(code, "no");
    world.group.repeats_commit_error = true;
    const Status status = world.engine->close(SessionEngine::Close::kDrainRunning, seconds(1));
    ASSERT_FALSE(status.ok());
    EXPECT_EQ(status.error().code(), code);
  }
}

TEST(SessionHandOver, C6_TheLastCommitFollowsWithoutItsMap) {
  World world(only_last_commits(without_threads()));
  world.produce(4, 10);
  world.run_all();
  world.group.commit_error = Error(Errc::kInvalidArgument, "metadata too large");
  world.group.due.emplace_back([&](GroupListener& listener) { listener.on_revoked(world.all); });
  ASSERT_TRUE(world.engine->run_once(milliseconds(0)).ok());
  EXPECT_EQ(world.group.offset(0), Offset(20));
  EXPECT_EQ(world.group.offset(1), Offset(20));
}

}  // namespace
}  // namespace weir
