#include "log/compaction/cleanable_range.h"

#include <gtest/gtest.h>

namespace weir::log {
namespace {

// Segments of ten offsets and a hundred bytes, written at 1000, 2000, ...
std::vector<SegmentFacts> segments(int count) {
  std::vector<SegmentFacts> all;
  for (int i = 0; i < count; ++i) {
    all.push_back({Offset(i * 10), Offset(i * 10 + 10), 100, 1000 * (i + 1), 1000 * (i + 1)});
  }
  return all;
}

CleanupSettings compacted() {
  CleanupSettings settings;
  settings.deletes = false;
  settings.compacts = true;
  return settings;
}

TEST(CleanableRange, HasAllSealedSegmentsOfALogThatWasNeverCompacted) {
  const CleanableRange range =
      cleanable_range(segments(4), compacted(), Offset(INT64_MAX), std::nullopt, 10'000);
  EXPECT_EQ(range.first_dirty, Offset(0));
  EXPECT_EQ(range.end, Offset(40));
  EXPECT_EQ(range.clean_bytes, 0U);
  EXPECT_EQ(range.dirty_bytes, 400U);
  EXPECT_TRUE(range.is_due);
}

TEST(CleanableRange, IsNothingWithoutSealedSegments) {
  const CleanableRange range =
      cleanable_range({}, compacted(), Offset(INT64_MAX), Offset(7), 10'000);
  EXPECT_FALSE(range.is_due);
  EXPECT_EQ(range.end, Offset(0));
}

TEST(CleanableRange, EndsAtTheSegmentThatReachesTheLimit) {
  const auto end = [](std::int64_t limit) {
    return cleanable_range(segments(4), compacted(), Offset(limit), std::nullopt, 10'000).end;
  };
  EXPECT_EQ(end(40), Offset(40));
  EXPECT_EQ(end(39), Offset(30));
  EXPECT_EQ(end(30), Offset(30));
  EXPECT_EQ(end(9), Offset(0));
}

// KAFKA-13194: what is not below the high watermark may not replace what is.
TEST(CleanableRange, TouchesNothingAboveAStalledHighWatermark) {
  const CleanableRange range =
      cleanable_range(segments(4), compacted(), Offset(5), std::nullopt, 10'000);
  EXPECT_FALSE(range.is_due);
  EXPECT_EQ(range.dirty_bytes, 0U);
}

TEST(CleanableRange, IsDueAboveTheRatioAndNotAtIt) {
  CleanupSettings settings = compacted();
  settings.min_cleanable_dirty_ratio = 0.5;
  const auto due = [&](std::int64_t clean_end) {
    return cleanable_range(segments(4), settings, Offset(40), Offset(clean_end), 10'000).is_due;
  };
  EXPECT_TRUE(due(10));
  EXPECT_FALSE(due(20));  // half
  settings.min_cleanable_dirty_ratio = 0;
  EXPECT_TRUE(due(30));
  EXPECT_FALSE(due(40));  // nothing is dirty
}

TEST(CleanableRange, LeavesRecordsAloneThatAreYoungerThanTheShortestLag) {
  CleanupSettings settings = compacted();
  settings.min_compaction_lag_ms = 2500;
  const CleanableRange range =
      cleanable_range(segments(4), settings, Offset(40), std::nullopt, 5000);
  EXPECT_EQ(range.end, Offset(20));  // written at 2000; that of 3000 is 2000 old
  settings.min_compaction_lag_ms = INT64_MAX;
  EXPECT_EQ(cleanable_range(segments(4), settings, Offset(40), std::nullopt, 5000).end, Offset(0));
}

TEST(CleanableRange, IsDueWhenARecordIsOlderThanTheLongestLag) {
  CleanupSettings settings = compacted();
  settings.min_cleanable_dirty_ratio = 1;
  settings.max_compaction_lag_ms = 2000;
  const auto due = [&](Timestamp now) {
    return cleanable_range(segments(4), settings, Offset(40), Offset(20), now).is_due;
  };
  EXPECT_FALSE(due(5000));  // the first dirty one was written at 3000
  EXPECT_TRUE(due(5001));
}

TEST(CleanableRange, BeginsAtTheLogStartWhenTheCheckpointIsOfAnotherLog) {
  const auto first = [](std::int64_t checkpoint) {
    std::vector<SegmentFacts> all = segments(4);
    all.erase(all.begin());
    return cleanable_range(all, compacted(), Offset(40), Offset(checkpoint), 10'000).first_dirty;
  };
  EXPECT_EQ(first(25), Offset(25));
  EXPECT_EQ(first(40), Offset(40));
  EXPECT_EQ(first(5), Offset(10));   // records below the log's start are gone
  EXPECT_EQ(first(41), Offset(10));  // the log lost its end
}

TEST(CleanableRange, CountsASegmentThatThePassBeforeEndedInAsDirty) {
  const CleanableRange range =
      cleanable_range(segments(4), compacted(), Offset(40), Offset(15), 10'000);
  EXPECT_EQ(range.first_dirty, Offset(15));
  EXPECT_EQ(range.clean_bytes, 100U);
  EXPECT_EQ(range.dirty_bytes, 300U);
}

TEST(SegmentGroups, MakeNeighboursOneAsLongAsTheyFit) {
  const GroupLimits limits{.segment_bytes = 250, .index_bytes_max = 1 << 20};
  EXPECT_EQ(group_segments(segments(5), limits), (std::vector<std::size_t>{2, 2, 1}));
  EXPECT_EQ(group_segments(segments(5), {.segment_bytes = 99, .index_bytes_max = 1 << 20}),
            (std::vector<std::size_t>{1, 1, 1, 1, 1}));
  EXPECT_EQ(group_segments(segments(5), {.segment_bytes = 500, .index_bytes_max = 1 << 20}),
            (std::vector<std::size_t>{5}));
  EXPECT_TRUE(group_segments({}, limits).empty());
}

TEST(SegmentGroups, StayWithinTheSizeOfAnIndex) {
  // At most two batches of 61 bytes in each: entries of 12 bytes for them and one more.
  EXPECT_EQ(group_segments(segments(4), {.segment_bytes = 1000, .index_bytes_max = 48}),
            (std::vector<std::size_t>{2, 2}));
}

TEST(SegmentGroups, StayWithinTheReachOfAnIndexEntry) {
  std::vector<SegmentFacts> all = segments(3);
  all[1].end = all[2].base = Offset(std::int64_t{1} << 31);
  all[2].end = Offset((std::int64_t{1} << 31) + 1);
  EXPECT_EQ(group_segments(all, {.segment_bytes = 1000, .index_bytes_max = 1 << 20}),
            (std::vector<std::size_t>{2, 1}));
}

}  // namespace
}  // namespace weir::log
