#include "tests/runtime/observe/capture.h"

#include <weir/runtime/clock.h>
#include <weir/runtime/executor.h>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <future>
#include <latch>
#include <memory>
#include <stdexcept>
#include <thread>
#include <vector>

namespace weir {
namespace {

using std::chrono::hours;
using std::chrono::milliseconds;

TEST(AsioExecutor, RunsTasksOfOneThreadInOrderAndOffTheCallersThread) {
  std::vector<int> order;
  std::thread::id ran_on;
  {
    const std::unique_ptr<Executor> executor = make_asio_executor(1);
    for (int i = 0; i < 1000; ++i) {
      executor->post([&, i] {
        order.push_back(i);
        ran_on = std::this_thread::get_id();
      });
    }
  }

  ASSERT_EQ(order.size(), 1000U);
  EXPECT_TRUE(std::is_sorted(order.begin(), order.end()));
  EXPECT_NE(ran_on, std::this_thread::get_id());
}

// A task's own post must not be overtaken by a post that another thread makes afterwards.
TEST(AsioExecutor, KeepsTheOrderOfPostsFromInsideAndOutside) {
  std::vector<int> order;
  {
    std::latch posted_inside(1);
    std::latch posted_outside(1);
    const std::unique_ptr<Executor> executor = make_asio_executor(1);
    executor->post([&] {
      executor->post([&] { order.push_back(1); });
      posted_inside.count_down();
      posted_outside.wait();
    });
    posted_inside.wait();
    executor->post([&] { order.push_back(2); });
    posted_outside.count_down();
  }

  EXPECT_THAT(order, ::testing::ElementsAre(1, 2));
}

TEST(AsioExecutor, RunsTasksOfSeveralThreadsAtTheSameTime) {
  std::latch both(2);
  std::promise<void> done;
  const std::unique_ptr<Executor> executor = make_asio_executor(2);

  executor->post([&] { both.arrive_and_wait(); });
  executor->post([&] {
    both.arrive_and_wait();
    done.set_value();
  });

  done.get_future().wait();
}

TEST(AsioExecutor, RunsATimerNotBeforeItsDelay) {
  std::promise<MonotonicTime> ran;
  const std::unique_ptr<Executor> executor = make_asio_executor(1);
  const MonotonicTime start = system_clock().monotonic();

  executor->post_after(milliseconds(20), [&] { ran.set_value(system_clock().monotonic()); });

  EXPECT_GE(ran.get_future().get() - start, milliseconds(20));
}

TEST(AsioExecutor, RunsTimersByDueTime) {
  std::vector<int> order;
  std::promise<void> done;
  const std::unique_ptr<Executor> executor = make_asio_executor(1);

  executor->post_after(milliseconds(40), [&] {
    order.push_back(2);
    done.set_value();
  });
  executor->post_after(milliseconds(1), [&] { order.push_back(1); });
  executor->post_after(milliseconds(-5), [&] { order.push_back(0); });

  done.get_future().wait();
  EXPECT_THAT(order, ::testing::ElementsAre(0, 1, 2));
}

TEST(AsioExecutor, CancelIsTrueOnlyBeforeTheTimerStarted) {
  std::promise<void> ran;
  const std::unique_ptr<Executor> executor = make_asio_executor(1);

  const Executor::TimerId far = executor->post_after(hours(1), [] { FAIL() << "was cancelled"; });
  const Executor::TimerId near = executor->post_after(Duration(0), [&] { ran.set_value(); });
  ran.get_future().wait();

  EXPECT_NE(far, near);
  EXPECT_TRUE(executor->cancel(far));
  EXPECT_FALSE(executor->cancel(far));
  EXPECT_FALSE(executor->cancel(near));
  EXPECT_FALSE(executor->cancel(99));
}

// Timers expire while they are cancelled: each either runs once or was cancelled, never both.
TEST(AsioExecutor, ACancelledTimerNeverRunsEvenWhenItIsDue) {
  constexpr int kTimers = 500;
  std::atomic<int> ran{0};
  int cancelled = 0;
  {
    const std::unique_ptr<Executor> executor = make_asio_executor(2);
    for (int i = 0; i < kTimers; ++i) {
      const Executor::TimerId timer = executor->post_after(Duration(0), [&] { ++ran; });
      cancelled += executor->cancel(timer) ? 1 : 0;
    }
  }

  EXPECT_EQ(ran.load() + cancelled, kTimers);
}

TEST(AsioExecutor, TakesTheLongestDelay) {
  std::promise<void> ran;
  const std::unique_ptr<Executor> executor = make_asio_executor(1);

  const Executor::TimerId never = executor->post_after(Duration::max(), [] { FAIL(); });
  executor->post([&] { ran.set_value(); });
  ran.get_future().wait();

  EXPECT_TRUE(executor->cancel(never));
}

TEST(AsioExecutor, DestructorFinishesPostedTasksAndDropsTimers) {
  std::atomic<int> tasks{0};
  std::atomic<int> timers{0};
  auto owned = std::make_shared<int>(1);
  std::latch started(1);
  std::promise<void> go;
  std::thread release;
  {
    const std::unique_ptr<Executor> executor = make_asio_executor(1);
    executor->post([&] {
      started.count_down();
      go.get_future().wait();
      executor->post([&] { ++tasks; });  // posted while the destructor waits
      executor->post_after(hours(1), [&] { ++timers; });
    });
    for (int i = 0; i < 100; ++i) {
      executor->post([&] { ++tasks; });
    }
    executor->post_after(hours(1), [&, owned] { ++timers; });
    started.wait();
    release = std::thread([&] { go.set_value(); });
  }
  release.join();

  EXPECT_EQ(tasks.load(), 101);
  EXPECT_EQ(timers.load(), 0);
  EXPECT_EQ(owned.use_count(), 1) << "a dropped timer frees what its task owns";
}

TEST(AsioExecutor, LogsWhatATaskThrowsAndGoesOn) {
  testing::LogCapture capture;
  std::atomic<bool> went_on{false};
  {
    const std::unique_ptr<Executor> executor = make_asio_executor(1);
    executor->post([] { throw std::runtime_error("user code broke"); });
    executor->post_after(Duration(0), [] { throw 7; });
    executor->post([&] { went_on = true; });
  }

  EXPECT_TRUE(went_on.load());
  EXPECT_THAT(capture.lines(),
              ::testing::UnorderedElementsAre(
                  testing::LogCapture::Line(LogLevel::kError,
                                            "executor task threw what=\"user code broke\""),
                  testing::LogCapture::Line(LogLevel::kError,
                                            "executor task threw what=\"not a std::exception\"")));
}

TEST(AsioExecutor, TakesPostsAndTimersFromManyThreads) {
  std::atomic<int> ran{0};
  std::atomic<int> cancelled{0};
  std::latch due_timers(4 * 100);
  {
    const std::unique_ptr<Executor> executor = make_asio_executor(3);
    std::vector<std::thread> threads;
    for (int t = 0; t < 4; ++t) {
      threads.emplace_back([&] {
        for (int i = 0; i < 100; ++i) {
          executor->post([&] { ++ran; });
          executor->post_after(milliseconds(1), [&] { due_timers.count_down(); });
          const Executor::TimerId timer = executor->post_after(hours(1), [] { FAIL(); });
          cancelled += executor->cancel(timer) ? 1 : 0;
        }
      });
    }
    for (std::thread& thread : threads) {
      thread.join();
    }
    due_timers.wait();
  }

  EXPECT_EQ(ran.load(), 400);
  EXPECT_EQ(cancelled.load(), 400);
}

}  // namespace
}  // namespace weir
