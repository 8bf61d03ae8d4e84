#include "runtime/lane/lane_runner.h"

#include <weir/runtime/session_hash.h>
#include <weir/runtime/testing/manual_clock.h>

#include <gtest/gtest.h>

#include <deque>
#include <functional>
#include <memory>
#include <string>
#include <vector>

namespace weir::internal {
namespace {

using std::chrono::microseconds;

// A worker that does what the test says.
struct Played : LaneWorker {
  void run(LaneRuns& runs) override { on_run(runs); }
  void write(std::span<const DeadLetter> letters, LaneRuns& runs) override {
    on_write(letters, runs);
  }
  std::function<void(LaneRuns&)> on_run = [](LaneRuns&) {};
  std::function<void(std::span<const DeadLetter>, LaneRuns&)> on_write =
      [](std::span<const DeadLetter>, LaneRuns&) {};
};

// One worker without a thread, one open partition.
struct RunnerWorld {
  explicit RunnerWorld(const LaneOptions& options = {})
      : runner(options, 1, clock, std::unique_ptr<LaneWorker>(worker), [] {}) {
    command(ShardCommand::Kind::kOpen);
    runner.run_round();
  }
  void command(ShardCommand::Kind kind) {
    ShardMessage message;
    message.commands.push_back(
        {.kind = kind, .epoch = kind == ShardCommand::Kind::kDetach ? 2U : 1U});
    send(std::move(message));
  }
  void records(const std::string& session, std::uint32_t count) {
    ShardMessage message;
    const ByteView view(keys.emplace_back(session));
    for (std::uint32_t i = 0; i < count; ++i) {
      message.records.push_back(
          {.record = &record, .session = view, .hash = session_hash(view), .seq = next_seq++});
    }
    send(std::move(message));
  }
  void send(ShardMessage message) {
    std::vector<ShardMessage> messages;
    messages.push_back(std::move(message));
    runner.send(std::move(messages));
  }

  testing::ManualClock clock;
  Played* worker = new Played;  // the runner's
  LaneRunner runner;
  RecordView record;
  std::deque<std::string> keys;
  std::uint32_t next_seq = 0;
};

// lanes.h: a letter's record and session live until write() returns, answered or not.
TEST(LaneRunner, LettersLiveUntilTheyAreWritten) {
  RunnerWorld world;
  world.worker->on_run = [](LaneRuns& runs) {
    for (Attempt attempt; runs.next(attempt);) {
      runs.finish(attempt.run, Outcome::dead(Error(Errc::kInvalidRecord, "bad")));
    }
  };
  int written = 0;
  world.worker->on_write = [&](std::span<const DeadLetter> letters, LaneRuns& runs) {
    for (const DeadLetter& letter : letters) {
      runs.answer_letter(letter.id, true);
      EXPECT_EQ(world.runner.shard().size().records, 1U);
      EXPECT_EQ(letter.session.view(), std::string(100, 'a'));
      ++written;
    }
  };
  world.records(std::string(100, 'a'), 1);
  world.runner.run_round();
  EXPECT_EQ(written, 1);
  EXPECT_EQ(world.runner.shard().size().records, 0U);
}

// A thread that thinks that nothing happened would sleep while a lane is ready.
TEST(LaneRunner, AnOutcomeOrAnAnswerIsWork) {
  RunnerWorld world;
  Attempt open;
  std::vector<RunId> letters;
  world.worker->on_run = [&](LaneRuns& runs) { ASSERT_TRUE(runs.next(open)); };
  world.worker->on_write = [&](std::span<const DeadLetter> written, LaneRuns&) {
    letters.push_back(written[0].id);
  };
  world.records("a", 2);
  EXPECT_TRUE(world.runner.run_round());
  world.worker->on_run = [&](LaneRuns& runs) {
    runs.finish(open.run, Outcome::dead(Error(Errc::kInvalidRecord, "bad")));
  };
  EXPECT_TRUE(world.runner.run_round());
  ASSERT_EQ(letters.size(), 1U);
  world.worker->on_run = [&](LaneRuns& runs) { runs.answer_letter(letters[0], true); };
  EXPECT_TRUE(world.runner.run_round());
  world.worker->on_run = [](LaneRuns&) {};
  EXPECT_FALSE(world.runner.run_round());
}

// A round has a bound in time, so that reports, flushes and letters go on beside slow handlers.
TEST(LaneRunner, ARoundEndsAfterAMillisecond) {
  RunnerWorld world;
  int handled = 0;
  world.worker->on_run = [&](LaneRuns& runs) {
    for (Attempt attempt; runs.next(attempt); ++handled) {
      world.clock.advance(microseconds(50));
      runs.finish(attempt.run, Outcome::ok());
    }
  };
  world.records("a", 1'000);
  world.runner.run_round();
  EXPECT_GE(handled, 16);
  EXPECT_LE(handled, 36);
}

TEST(LaneRunner, ARequestForAFlushEndsTheRound) {
  RunnerWorld world;
  int handled = 0;
  world.worker->on_run = [&](LaneRuns& runs) {
    for (Attempt attempt; runs.next(attempt);) {
      if (++handled == 3) {
        world.runner.request_flush();
      }
      runs.finish(attempt.run, Outcome::ok());
    }
  };
  world.records("a", 1'000);
  world.runner.run_round();
  EXPECT_EQ(handled, 3);
  world.runner.run_round();
  EXPECT_EQ(handled, 1'000);
  LaneRunner::Outbox outbox;
  world.runner.take(outbox);
  EXPECT_EQ(outbox.flushes, 1U);
}

}  // namespace
}  // namespace weir::internal
