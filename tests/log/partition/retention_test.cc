#include "log/partition/retention.h"

#include <gtest/gtest.h>

#include <vector>

namespace weir::log {
namespace {

constexpr Timestamp kNow = 1'000'000;

// Four segments of ten offsets and a hundred bytes, each written 100 s after the one before; the
// last one is active.
std::vector<RetainedSegment> log_of_four() {
  return {{Offset(0), Offset(10), 100, kNow - 350'000},
          {Offset(10), Offset(20), 100, kNow - 250'000},
          {Offset(20), Offset(30), 100, kNow - 150'000},
          {Offset(30), Offset(40), 100, kNow - 50'000}};
}

struct Case {
  const char* name;
  std::int64_t retention_ms = -1;
  std::int64_t retention_bytes = -1;
  std::int64_t high_watermark = 40;
  std::int64_t log_start = 0;
  std::int64_t expected_start = 0;
  bool rolls_active = false;
};

constexpr Case kCases[] = {
    {.name = "NoLimitKeepsAll"},
    {.name = "TooOldGoes", .retention_ms = 200'000, .expected_start = 20},
    {.name = "AsOldAsAllowedStays", .retention_ms = 250'000, .expected_start = 10},
    {.name = "OneMillisecondOlderGoes", .retention_ms = 249'999, .expected_start = 20},
    {.name = "AllTooOldRollsTheActiveOne",
     .retention_ms = 10'000,
     .expected_start = 40,
     .rolls_active = true},
    {.name = "ZeroKeepsNothing", .retention_ms = 0, .expected_start = 40, .rolls_active = true},
    {.name = "ALimitThatReachesBehindTimeKeepsAll", .retention_ms = INT64_MAX},
    {.name = "TooMuchGoes", .retention_bytes = 250, .expected_start = 10},
    {.name = "WhatIsLeftHasStillTheBytes", .retention_bytes = 200, .expected_start = 20},
    {.name = "OneByteMoreKeepsASegment", .retention_bytes = 301, .expected_start = 0},
    {.name = "NoBytesRollTheActiveOne",
     .retention_bytes = 0,
     .expected_start = 40,
     .rolls_active = true},
    {.name = "BothTheOneThatTakesMore",
     .retention_ms = 300'000,
     .retention_bytes = 100,
     .expected_start = 30},
    {.name = "NothingAboveTheHighWatermark",
     .retention_ms = 0,
     .high_watermark = 25,
     .expected_start = 20},
    {.name = "NothingWhenNothingIsDurable", .retention_ms = 0, .high_watermark = 0},
    {.name = "AStartThatIsHigherStays",
     .retention_ms = 300'000,
     .log_start = 15,
     .expected_start = 15},
};

class RetentionTable : public ::testing::TestWithParam<Case> {};

TEST_P(RetentionTable, DecidesWhereTheLogBegins) {
  const Case& one = GetParam();
  CleanupSettings settings;
  settings.retention_ms = one.retention_ms;
  settings.retention_bytes = one.retention_bytes;
  const RetentionDecision decision = decide_retention(
      log_of_four(), settings, Offset(one.log_start), Offset(one.high_watermark), kNow);
  EXPECT_EQ(decision.log_start, Offset(one.expected_start));
  EXPECT_EQ(decision.rolls_active, one.rolls_active);
  EXPECT_EQ(decision.reason == RetentionReason::kNone, one.expected_start == one.log_start);
}

INSTANTIATE_TEST_SUITE_P(Kafka, RetentionTable, ::testing::ValuesIn(kCases),
                         [](const auto& param) { return std::string(param.param.name); });

TEST(Retention, NeverPassesAYoungSegmentToAnOldOneBehindIt) {
  std::vector<RetainedSegment> segments = log_of_four();
  segments[1].largest_timestamp = kNow;  // a producer's clock ran ahead
  CleanupSettings settings;
  settings.retention_ms = 100'000;
  EXPECT_EQ(decide_retention(segments, settings, Offset(0), Offset(40), kNow).log_start,
            Offset(10));
}

TEST(Retention, KeepsRecordsOfTheFuture) {
  CleanupSettings settings;
  settings.retention_ms = 0;
  EXPECT_FALSE(is_expired(kNow + 1, settings, kNow));
  EXPECT_FALSE(is_expired(kNow, settings, kNow));
  EXPECT_TRUE(is_expired(kNow - 1, settings, kNow));
  EXPECT_FALSE(is_expired(INT64_MIN, settings, INT64_MAX));  // no overflow
  settings.retention_ms = -1;
  EXPECT_FALSE(is_expired(0, settings, kNow));
}

TEST(Retention, DoesNothingWithoutDeleteInThePolicy) {
  CleanupSettings settings;
  settings.deletes = false;
  settings.compacts = true;
  settings.retention_ms = 0;
  EXPECT_EQ(decide_retention(log_of_four(), settings, Offset(0), Offset(40), kNow).log_start,
            Offset(0));
}

TEST(Retention, DoesNotRollAnActiveSegmentThatIsEmpty) {
  std::vector<RetainedSegment> segments = log_of_four();
  segments.push_back({Offset(40), Offset(40), 0, std::nullopt});
  CleanupSettings settings;
  settings.retention_ms = 0;
  const RetentionDecision decision =
      decide_retention(segments, settings, Offset(0), Offset(40), kNow);
  EXPECT_EQ(decision.log_start, Offset(40));
  EXPECT_FALSE(decision.rolls_active);
  // And nothing is left to do for the next round.
  segments.erase(segments.begin(), segments.end() - 1);
  EXPECT_EQ(decide_retention(segments, settings, Offset(40), Offset(40), kNow).log_start,
            Offset(40));
  EXPECT_EQ(decide_retention({}, settings, Offset(40), Offset(40), kNow).log_start, Offset(40));
}

}  // namespace
}  // namespace weir::log
