#include "runtime/dispatch/commit_tracker.h"

#include <weir/runtime/rng.h>

#include <gtest/gtest.h>

#include <map>

namespace weir::internal {
namespace {

constexpr std::size_t kWindow = 1U << 22U;

CommitTracker tracker_at(std::int64_t committed) {
  return {Offset(committed), LeaderEpoch(1), kWindow};
}

// C1 and T1 (PC #826/#827): the offset of the first unfinished record, never the highest seen.
TEST(CommitTracker, C1_T1_CommitsTheFirstUnfinishedRecord) {
  CommitTracker tracker = tracker_at(10);
  for (std::int64_t offset = 10; offset < 15; ++offset) {
    tracker.accept(Offset(offset), 0);
  }
  EXPECT_EQ(tracker.commit_value(), Offset(10));

  tracker.done(4);
  tracker.done(1);
  EXPECT_EQ(tracker.commit_value(), Offset(10));
  tracker.done(0);
  EXPECT_EQ(tracker.commit_value(), Offset(12));
  tracker.done(2);
  tracker.done(3);
  EXPECT_EQ(tracker.commit_value(), Offset(15));
}

// T13 (SP #4258), T19 (KAFKA-6607): holes and a marker at the end leave no lag.
TEST(CommitTracker, T13_T19_HolesAndMarkersLeaveNoLag) {
  CommitTracker tracker = tracker_at(0);
  tracker.accept(Offset(3), 0);
  tracker.accept(Offset(1'000'000), 0);
  tracker.skip_to(Offset(1'000'007));
  EXPECT_EQ(tracker.commit_value(), Offset(3));

  tracker.done(0);
  EXPECT_EQ(tracker.commit_value(), Offset(1'000'000));
  tracker.done(1);
  EXPECT_EQ(tracker.commit_value(), Offset(1'000'007));
}

TEST(CommitTracker, SkipNeverGoesBack) {
  CommitTracker tracker = tracker_at(5);
  tracker.skip_to(Offset(9));
  tracker.skip_to(Offset(7));

  EXPECT_EQ(tracker.commit_value(), Offset(9));
}

// C8 and T66 (PostHog #95009): an offset that comes again is not accepted again.
TEST(CommitTracker, C8_T66_RefusesAnOffsetThatCameBefore) {
  CommitTracker tracker = tracker_at(5);
  EXPECT_FALSE(tracker.accept(Offset(4), 0).has_value());
  EXPECT_EQ(tracker.accept(Offset(5), 0), 0U);
  EXPECT_FALSE(tracker.accept(Offset(5), 0).has_value());
  tracker.skip_to(Offset(9));
  EXPECT_FALSE(tracker.accept(Offset(8), 0).has_value());
}

// T46 (DE #48): a second completion changes nothing, and says so.
TEST(CommitTracker, T46_SecondCompletionChangesNothing) {
  CommitTracker tracker = tracker_at(0);
  tracker.accept(Offset(0), 0);
  tracker.accept(Offset(1), 0);

  EXPECT_TRUE(tracker.done(1));
  EXPECT_FALSE(tracker.done(1));
  EXPECT_TRUE(tracker.done(0));
  EXPECT_FALSE(tracker.done(0));
  EXPECT_FALSE(tracker.done(2));
  EXPECT_EQ(tracker.commit_value(), Offset(2));
}

TEST(CommitTracker, IsFullAtItsWindow) {
  CommitTracker tracker(Offset(0), kNoLeaderEpoch, 2);
  tracker.accept(Offset(0), 0);
  EXPECT_FALSE(tracker.full());
  tracker.accept(Offset(1), 0);
  EXPECT_TRUE(tracker.full());
  tracker.done(1);
  EXPECT_TRUE(tracker.full());
  tracker.done(0);
  EXPECT_FALSE(tracker.full());
}

// C12: stuck offsets are found one by one, each with its age.
TEST(CommitTracker, C12_ListsStuckOffsetsOneByOne) {
  CommitTracker tracker = tracker_at(0);
  tracker.begin_batch(std::chrono::seconds(1), LeaderEpoch(1));
  for (std::int64_t offset = 0; offset < 1'000; ++offset) {
    tracker.accept(Offset(offset), static_cast<std::uint64_t>(offset));
  }
  tracker.begin_batch(std::chrono::seconds(2), LeaderEpoch(1));
  for (std::int64_t offset = 1'000; offset < 2'000; ++offset) {
    tracker.accept(Offset(offset), static_cast<std::uint64_t>(offset));
  }
  for (std::uint64_t seq = 0; seq < 2'000; ++seq) {
    if (seq != 7 && seq != 777 && seq != 1'999) {
      tracker.done(seq);
    }
  }

  const std::vector<CommitTracker::Unfinished> stuck = tracker.stuck(10);
  ASSERT_EQ(stuck.size(), 3U);
  EXPECT_EQ(stuck[0].offset, Offset(7));
  EXPECT_EQ(stuck[0].accepted_at, MonotonicTime(std::chrono::seconds(1)));
  EXPECT_EQ(stuck[1].session_hash, 777U);
  EXPECT_EQ(stuck[2].offset, Offset(1'999));
  EXPECT_EQ(stuck[2].accepted_at, MonotonicTime(std::chrono::seconds(2)));
  EXPECT_EQ(tracker.stuck(2).size(), 2U);
}

TEST(CommitTracker, CommitsUnderTheEpochOfTheLastFinishedRecord) {
  CommitTracker tracker = tracker_at(0);
  EXPECT_EQ(tracker.commit_epoch(), LeaderEpoch(1));
  tracker.begin_batch(MonotonicTime(0), LeaderEpoch(2));
  tracker.accept(Offset(0), 0);
  tracker.begin_batch(MonotonicTime(0), LeaderEpoch(5));
  tracker.accept(Offset(1), 0);
  tracker.done(1);
  EXPECT_EQ(tracker.commit_epoch(), LeaderEpoch(1));

  tracker.done(0);
  EXPECT_EQ(tracker.commit_epoch(), LeaderEpoch(5));
}

TEST(CommitTracker, WidensSequencesAcrossThirtyTwoBits) {
  CommitTracker tracker(Offset(0), kNoLeaderEpoch, 8);
  for (std::int64_t i = 0; i < 100; ++i) {
    const std::uint64_t seq = *tracker.accept(Offset(i), 0);
    EXPECT_EQ(tracker.widen(static_cast<std::uint32_t>(seq)), seq);
    tracker.done(seq);
  }
  EXPECT_EQ(tracker.widen(99), 99U);
  EXPECT_EQ(tracker.widen(101), 101U);
}

// T14 (SP #4332): against a map of offsets, over random orders and windows of all sizes.
TEST(CommitTracker, T14_AgreesWithAMapOfOffsets) {
  constexpr std::uint64_t kSeed = 23;
  Rng rng(kSeed);
  for (int round = 0; round < 40; ++round) {
    CommitTracker tracker = tracker_at(0);
    std::map<std::uint64_t, Offset> open;
    Offset next(0);
    const std::uint64_t accept_weight = 30 + rng.below(30);
    for (int step = 0; step < 5'000; ++step) {
      const std::uint64_t what = rng.below(100);
      if (what < accept_weight) {
        next = next.plus(rng.between(0, 3));
        open.emplace(*tracker.accept(next, 0), next);
        next = next.next();
      } else if (what < 95 && !open.empty()) {
        auto found = open.lower_bound(tracker.base() + rng.below(tracker.window()));
        found = found == open.end() ? open.begin() : found;
        ASSERT_TRUE(tracker.done(found->first));
        open.erase(found);
      } else {
        next = next.plus(rng.between(0, 1'000));
        tracker.skip_to(next);
      }
      ASSERT_EQ(tracker.commit_value(), open.empty() ? next : open.begin()->second)
          << "seed " << kSeed << " round " << round << " step " << step;
      ASSERT_EQ(tracker.unfinished(), open.size());
    }
    std::vector<std::uint64_t> listed;
    tracker.for_each_unfinished([&](std::uint64_t seq, Offset, std::uint64_t) {
      listed.push_back(seq);
      return true;
    });
    ASSERT_TRUE(
        std::equal(listed.begin(), listed.end(), open.begin(), open.end(),
                   [](std::uint64_t seq, const auto& entry) { return seq == entry.first; }));
  }
}

}  // namespace
}  // namespace weir::internal
