#include "tests/runtime/observe/capture.h"

#include <weir/runtime/executor.h>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <csignal>
#include <future>
#include <memory>
#include <stdexcept>
#include <thread>
#include <vector>

namespace weir {
namespace {

void (*disposition_of(int signal))(int) {
  struct sigaction present{};
  sigaction(signal, nullptr, &present);
  return present.sa_handler;
}

void some_handler(int /*signal*/) {}

TEST(SignalWatch, CallsTheHandlerOnItsOwnThreadForEachSignal) {
  std::vector<int> signals;
  std::vector<std::promise<void>> seen(3);
  std::thread::id ran_on;
  {
    const auto watch = watch_termination_signals([&](int signal) {
      ran_on = std::this_thread::get_id();
      signals.push_back(signal);
      seen[signals.size() - 1].set_value();
    });
    int next = 0;
    for (const int signal : {SIGTERM, SIGINT, SIGTERM}) {
      ASSERT_EQ(raise(signal), 0);
      seen[static_cast<std::size_t>(next++)].get_future().wait();
    }
  }

  EXPECT_THAT(signals, ::testing::ElementsAre(SIGTERM, SIGINT, SIGTERM));
  EXPECT_NE(ran_on, std::this_thread::get_id());
}

TEST(SignalWatch, RestoresWhatWasThereBefore) {
  struct sigaction before{};
  struct sigaction mine{};
  mine.sa_handler = some_handler;
  sigaction(SIGTERM, &mine, &before);
  void (*const interrupt)(int) = disposition_of(SIGINT);
  {
    const auto watch = watch_termination_signals([](int) {});
    EXPECT_NE(disposition_of(SIGTERM), some_handler);
    EXPECT_NE(disposition_of(SIGINT), interrupt);
  }

  EXPECT_EQ(disposition_of(SIGTERM), some_handler);
  EXPECT_EQ(disposition_of(SIGINT), interrupt);
  sigaction(SIGTERM, &before, nullptr);
}

TEST(SignalWatch, CanBeMadeAgain) {
  for (int i = 0; i < 3; ++i) {
    std::promise<int> seen;
    const auto watch = watch_termination_signals([&](int signal) { seen.set_value(signal); });
    raise(SIGINT);
    EXPECT_EQ(seen.get_future().get(), SIGINT);
  }
}

TEST(SignalWatch, LogsWhatTheHandlerThrowsAndGoesOn) {
  testing::LogCapture capture;
  std::promise<void> first;
  std::promise<void> second;
  int calls = 0;
  {
    const auto watch = watch_termination_signals([&](int) {
      (++calls == 1 ? first : second).set_value();
      if (calls == 1) {
        throw std::runtime_error("handler broke");
      }
    });
    raise(SIGTERM);
    first.get_future().wait();
    raise(SIGTERM);
    second.get_future().wait();
  }

  EXPECT_THAT(capture.lines(),
              ::testing::ElementsAre(testing::LogCapture::Line(
                  LogLevel::kError, "signal handler threw signal=15 what=\"handler broke\"")));
}

}  // namespace
}  // namespace weir
