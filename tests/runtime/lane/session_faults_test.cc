#include "tests/runtime/lane/session_engine_fixture.h"

#include <gtest/gtest.h>

#include <stdexcept>

// What users of a session engine do wrong.

namespace weir {
namespace {

using std::chrono::milliseconds;
using testing::with_threads;
using testing::without_threads;
using World = testing::EngineWorld;

Status run_until_error(World& world) {
  Status status;
  for (int round = 0; round < 100'000 && status.ok(); ++round) {
    status = world.engine->run_once(milliseconds(1));
    if (!world.options.has_threads) {
      world.clock.advance(milliseconds(5));
    }
  }
  return status;
}

// D9: no exception leaves the engine, or a thread of it.
TEST(SessionFaults, ExceptionsOfAWorkerAreErrors) {
  for (const SessionOptions& options : {without_threads(), with_threads(SessionDispatch::kLocal)}) {
    World world(options);
    world.handlers.outcome = [](const Attempt&) -> Outcome { throw std::runtime_error("odd"); };
    world.produce(4, 10);
    const Status status = run_until_error(world);
    ASSERT_FALSE(status.ok());
    EXPECT_EQ(status.error().code(), Errc::kHandlerThrew);
    EXPECT_EQ(status.error().message(), "odd");
  }
}

TEST(SessionFaults, AFlushThatThrowsIsAFlushThatFailed) {
  World world(without_threads());
  world.handlers.flush = []() -> Status { throw std::runtime_error("odd"); };
  world.produce(4, 10);
  const Status status = run_until_error(world);
  ASSERT_FALSE(status.ok());
  EXPECT_EQ(status.error().code(), Errc::kHandlerThrew);
  EXPECT_EQ(world.group.commits, 0);
}

// A worker that does not exist is nobody's.
TEST(SessionFaults, OutcomesForOtherWorkersAreIgnored) {
  World world(without_threads());
  world.engine->finish(7, {}, Outcome::ok());
  world.engine->answer_letter(7, {}, true);
  world.produce(2, 2);
  world.run_all();
}

// The lanes are their threads' alone.
TEST(SessionFaults, NextDueIsForEnginesWithoutThreads) {
  World world(with_threads(SessionDispatch::kLocal));
  world.produce(2, 2);
  world.run_all();
  EXPECT_FALSE(world.engine->next_due().has_value());
}

TEST(SessionFaults, AnEngineThatIsNotClosedLeavesItsGroup) {
  World world(without_threads());
  world.engine.reset();
  EXPECT_TRUE(world.group.has_left);
}

TEST(SessionFaults, CloseTakesTheLongestDeadline) {
  World world(without_threads());
  world.produce(2, 2);
  world.run_all();
  ASSERT_TRUE(world.engine->close(SessionEngine::Close::kDrainRunning, Duration::max()).ok());
  EXPECT_EQ(world.group.offset(0), Offset(2));
}

}  // namespace
}  // namespace weir
