#include "runtime/lane/timer_wheel.h"

#include <weir/runtime/rng.h>

#include <gtest/gtest.h>

#include <map>
#include <vector>

namespace weir::internal {
namespace {

using std::chrono::hours;
using std::chrono::microseconds;
using std::chrono::milliseconds;

struct Node {
  MonotonicTime due{};
  std::uint32_t prev = kNone;
  std::uint32_t next = kNone;
  std::uint16_t timer_slot = 0;
};

struct Wheel {
  std::vector<Node> nodes = std::vector<Node>(1'000);
  TimerWheel<std::vector<Node>> timers{nodes};
  std::vector<std::uint32_t> fired;

  void advance(MonotonicTime now) {
    timers.advance(now, [this](std::uint32_t node) { fired.push_back(node); });
  }
};

TEST(TimerWheel, FiresAtTheExactTimeAndNeverEarly) {
  Wheel wheel;
  wheel.timers.add(1, microseconds(5'900));
  EXPECT_GT(wheel.timers.next_due(), MonotonicTime(0));

  wheel.advance(microseconds(5'900) - Duration(1));
  EXPECT_TRUE(wheel.fired.empty());
  EXPECT_EQ(wheel.timers.next_due(), MonotonicTime(microseconds(5'900)));
  wheel.advance(microseconds(5'900));
  EXPECT_EQ(wheel.fired, std::vector<std::uint32_t>{1});
  EXPECT_EQ(wheel.timers.next_due(), std::nullopt);
}

TEST(TimerWheel, RemovedTimersDoNotFire) {
  Wheel wheel;
  for (std::uint32_t node = 0; node < 3; ++node) {
    wheel.timers.add(node, milliseconds(1));
  }
  wheel.timers.remove(1);
  wheel.advance(milliseconds(2));

  EXPECT_EQ(wheel.fired.size(), 2U);
  EXPECT_EQ(wheel.timers.size(), 0U);
}

TEST(TimerWheel, KeepsTimersOfDaysAndOfThePast) {
  Wheel wheel;
  wheel.advance(hours(1));
  wheel.timers.add(0, MonotonicTime(0));
  wheel.timers.add(1, hours(24 * 30));
  wheel.advance(hours(1));
  EXPECT_EQ(wheel.fired, std::vector<std::uint32_t>{0});

  for (MonotonicTime now = hours(2); now < hours(24 * 30); now += hours(7)) {
    wheel.advance(now);
    ASSERT_EQ(wheel.fired.size(), 1U);
  }
  wheel.advance(hours(24 * 30));
  EXPECT_EQ(wheel.fired.size(), 2U);
}

// T42 (PC #423): no ordering set, so no comparator that forgets a timer.
TEST(TimerWheel, T42_AgreesWithAMapOfDueTimes) {
  constexpr std::uint64_t kSeed = 31;
  Rng rng(kSeed);
  Wheel wheel;
  std::map<std::uint32_t, MonotonicTime> model;
  MonotonicTime now{};
  for (int step = 0; step < 200'000; ++step) {
    const auto node = static_cast<std::uint32_t>(rng.below(wheel.nodes.size()));
    const std::int64_t range = std::int64_t{1} << rng.below(50);
    if (model.contains(node)) {
      wheel.timers.remove(node);
      model.erase(node);
    } else {
      model[node] = now + Duration(rng.between(0, range));
      wheel.timers.add(node, model[node]);
    }
    if (rng.chance(1, 4)) {
      const std::optional<MonotonicTime> due = wheel.timers.next_due();
      ASSERT_EQ(due.has_value(), !model.empty());
      now += Duration(rng.between(0, std::int64_t{1} << rng.below(44)));
      now = due.has_value() && rng.chance(1, 2) ? std::max(now, *due) : now;
      wheel.fired.clear();
      wheel.advance(now);
      for (const std::uint32_t fired : wheel.fired) {
        ASSERT_TRUE(model.contains(fired)) << "seed " << kSeed << " step " << step;
        ASSERT_LE(model[fired], now);
        model.erase(fired);
      }
      for (const auto& [left, time] : model) {
        ASSERT_GT(time, now) << "seed " << kSeed << " step " << step;
      }
    }
  }
}

}  // namespace
}  // namespace weir::internal
