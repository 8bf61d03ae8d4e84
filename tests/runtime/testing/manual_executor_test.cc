#include <weir/runtime/testing/manual_executor.h>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <memory>
#include <thread>
#include <vector>

namespace weir::testing {
namespace {

using std::chrono::milliseconds;
using ::testing::ElementsAre;
using ::testing::IsEmpty;

TEST(ManualExecutor, RunsNothingUntilAsked) {
  ManualClock clock;
  ManualExecutor executor(clock);
  int ran = 0;

  executor.post([&] { ++ran; });

  EXPECT_EQ(ran, 0);
  EXPECT_EQ(executor.run_ready(), 1U);
  EXPECT_EQ(ran, 1);
  EXPECT_EQ(executor.run_ready(), 0U);
}

TEST(ManualExecutor, RunsTimersWhenTheClockReachesThem) {
  ManualClock clock;
  ManualExecutor executor(clock);
  std::vector<int> order;
  executor.post_after(milliseconds(10), [&] { order.push_back(10); });
  executor.post_after(milliseconds(5), [&] { order.push_back(5); });

  clock.advance(milliseconds(4));
  executor.run_ready();
  EXPECT_THAT(order, IsEmpty());
  clock.advance(milliseconds(1));
  executor.run_ready();
  EXPECT_THAT(order, ElementsAre(5));
  clock.advance(milliseconds(100));
  executor.run_ready();
  EXPECT_THAT(order, ElementsAre(5, 10));
}

TEST(ManualExecutor, OrdersByDueTimeThenByPosting) {
  ManualClock clock;
  ManualExecutor executor(clock);
  std::vector<char> order;
  executor.post_after(milliseconds(2), [&] { order.push_back('c'); });
  executor.post([&] { order.push_back('a'); });
  executor.post_after(milliseconds(2), [&] { order.push_back('d'); });
  executor.post_after(Duration(0), [&] { order.push_back('b'); });
  clock.advance(milliseconds(3));
  executor.post([&] { order.push_back('e'); });

  EXPECT_EQ(executor.run_ready(), 5U);

  EXPECT_THAT(order, ElementsAre('a', 'b', 'c', 'd', 'e'));
}

TEST(ManualExecutor, RunsWhatTasksPostAndTheTimersThatBecomeDue) {
  ManualClock clock;
  ManualExecutor executor(clock);
  std::vector<int> order;
  executor.post([&] {
    order.push_back(1);
    executor.post([&] { order.push_back(2); });
    executor.post_after(milliseconds(1), [&] { order.push_back(3); });
    clock.advance(milliseconds(1));
    executor.post_after(milliseconds(1), [&] { order.push_back(4); });
  });

  EXPECT_EQ(executor.run_ready(), 3U);

  EXPECT_THAT(order, ElementsAre(1, 2, 3));
}

TEST(ManualExecutor, CancelIsTrueOnlyBeforeTheTimerRan) {
  ManualClock clock;
  ManualExecutor executor(clock);
  auto owned = std::make_shared<int>(0);
  const Executor::TimerId cancelled = executor.post_after(Duration(0), [owned] { FAIL(); });
  const Executor::TimerId ran = executor.post_after(Duration(0), [] {});

  EXPECT_TRUE(executor.cancel(cancelled));
  EXPECT_EQ(owned.use_count(), 1);
  EXPECT_FALSE(executor.cancel(cancelled));
  EXPECT_EQ(executor.run_ready(), 1U);
  EXPECT_FALSE(executor.cancel(ran));
}

TEST(ManualExecutor, ATaskMayCancelATimerThatIsAlsoDue) {
  ManualClock clock;
  ManualExecutor executor(clock);
  Executor::TimerId second = 0;
  executor.post([&] { EXPECT_TRUE(executor.cancel(second)); });
  second = executor.post_after(Duration(0), [] { FAIL(); });

  EXPECT_EQ(executor.run_ready(), 1U);
}

TEST(ManualExecutor, TakesTheLongestDelayAndNegativeOnes) {
  ManualClock clock;
  ManualExecutor executor(clock);
  int ran = 0;
  executor.post_after(Duration::max(), [] { FAIL(); });
  executor.post_after(milliseconds(-1), [&] { ++ran; });

  executor.run_ready();

  EXPECT_EQ(ran, 1);
}

TEST(ManualExecutor, TakesTasksOfOtherThreads) {
  ManualClock clock;
  ManualExecutor executor(clock);
  int ran = 0;
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t) {
    threads.emplace_back([&] {
      for (int i = 0; i < 100; ++i) {
        executor.post([&] { ++ran; });
      }
    });
  }
  while (ran < 400) {
    executor.run_ready();
    std::this_thread::yield();
  }
  for (std::thread& thread : threads) {
    thread.join();
  }

  EXPECT_EQ(ran, 400);
  EXPECT_EQ(executor.run_ready(), 0U);
}

}  // namespace
}  // namespace weir::testing
