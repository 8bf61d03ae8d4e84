#include "tests/runtime/lane/lanes_world.h"

#include <gtest/gtest.h>

namespace weir::internal {
namespace {

using Names = std::vector<std::string>;

LaneOptions short_lanes() {
  LaneOptions options;
  options.lane_records_max = 1;
  return options;
}

Outcome stop() {
  return Outcome::stop(Error(Errc::kInternal, "enough"));
}

// 2.14: what waits behind a record that stopped the program is the next owner's, wherever it waits;
// what is stashed behind it runs to its end.
TEST(LaneDrain, QueuedDrainGivesUpTheStashOfAStoppedLane) {
  for (const bool is_stopped_first : {true, false}) {
    LanesTest test(short_lanes());
    test.assign();
    test.feed({"a", "a", "a", "b", "a", "c"});
    const Attempt attempt = *test.start();
    if (is_stopped_first) {
      test.finish(attempt, stop());
    }
    test.engine.dispatcher.drain(0, Dispatcher::Drain::kQueued);
    test.engine.settle();
    if (!is_stopped_first) {
      test.finish(attempt, stop());
    }

    EXPECT_EQ(test.run_all(), (Names{"b/1", "c/1"}));
    EXPECT_TRUE(test.engine.dispatcher.is_drained(0));
    EXPECT_EQ(test.commit_value(), Offset(0));
    EXPECT_EQ(test.engine.dispatcher.counters().discarded, 4U);
    EXPECT_EQ(test.engine.dispatcher.blocks(), 0U);
  }
}

// 2.6: a record that stops the program does not hold up a drain.
TEST(LaneDrain, RunningDrainEndsWhenItsLastRecordStops) {
  LanesTest test;
  test.assign();
  test.feed({"a", "a"});
  const Attempt attempt = *test.start();
  test.engine.dispatcher.drain(0, Dispatcher::Drain::kRunning);
  test.engine.settle();
  test.finish(attempt, stop());

  EXPECT_TRUE(test.engine.dispatcher.is_drained(0));
  EXPECT_TRUE(test.engine.dispatcher.stop_cause().has_value());
  EXPECT_EQ(test.commit_value(), Offset(0));
  EXPECT_EQ(test.engine.dispatcher.blocks(), 0U);
}

// A handler may ask to stop after its partition went, too.
TEST(LaneDrain, AHandlerBehindItsEpochStopsTheProgram) {
  LanesTest test;
  test.assign();
  test.feed({"a"});
  const Attempt attempt = *test.start();
  test.engine.dispatcher.release(0);
  test.engine.settle();
  test.finish(attempt, stop());

  EXPECT_TRUE(test.engine.dispatcher.stop_cause().has_value());
  EXPECT_EQ(test.engine.dispatcher.blocks(), 0U);
}

}  // namespace
}  // namespace weir::internal
