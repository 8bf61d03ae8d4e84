#include "log/partition/leader_epoch_cache.h"

#include <gtest/gtest.h>

namespace weir::log {
namespace {

LeaderEpochCache cache_of(std::string_view text) {
  Result<LeaderEpochCache> cache = LeaderEpochCache::parse(text);
  EXPECT_TRUE(cache.ok());
  return *std::move(cache);
}

TEST(LeaderEpochCache, WritesKafkasText) {
  LeaderEpochCache cache;
  EXPECT_TRUE(cache.assign(LeaderEpoch(0), Offset(0)));
  EXPECT_TRUE(cache.assign(LeaderEpoch(4), Offset(362)));
  EXPECT_EQ(cache.encode(), "0\n2\n0 0\n4 362\n");
  EXPECT_EQ(cache_of(cache.encode()).entries(), cache.entries());
  EXPECT_TRUE(cache_of("").empty());
}

TEST(LeaderEpochCache, KeepsTheFirstStartOfAnEpoch) {
  LeaderEpochCache cache = cache_of("0\n1\n3 10\n");
  EXPECT_FALSE(cache.assign(LeaderEpoch(3), Offset(10)));
  EXPECT_FALSE(cache.assign(LeaderEpoch(3), Offset(15)));
  EXPECT_EQ(cache.encode(), "0\n1\n3 10\n");
}

TEST(LeaderEpochCache, ReplacesAnEpochThatStayedEmpty) {
  LeaderEpochCache cache = cache_of("0\n2\n1 0\n3 10\n");
  EXPECT_TRUE(cache.assign(LeaderEpoch(5), Offset(10)));
  EXPECT_EQ(cache.encode(), "0\n2\n1 0\n5 10\n");
}

TEST(LeaderEpochCache, DropsWhatAnEarlierEpochContradicts) {
  LeaderEpochCache cache = cache_of("0\n3\n1 0\n3 10\n5 20\n");
  EXPECT_TRUE(cache.assign(LeaderEpoch(2), Offset(12)));
  EXPECT_EQ(cache.encode(), "0\n2\n1 0\n2 12\n");
}

TEST(LeaderEpochCache, IsCutAtBothEnds) {
  LeaderEpochCache cache = cache_of("0\n3\n1 0\n3 10\n5 20\n");
  cache.truncate_from_end(Offset(20));
  EXPECT_EQ(cache.encode(), "0\n2\n1 0\n3 10\n");
  cache.truncate_from_start(Offset(10));
  EXPECT_EQ(cache.encode(), "0\n1\n3 10\n");
  cache.truncate_from_start(Offset(14));
  EXPECT_EQ(cache.encode(), "0\n1\n3 14\n");
  cache.truncate_from_end(Offset(0));
  EXPECT_TRUE(cache.empty());
}

TEST(LeaderEpochCache, TellsWhereAnEpochEnds) {
  const LeaderEpochCache cache = cache_of("0\n3\n1 0\n3 10\n5 20\n");
  const Offset end(33);
  EXPECT_EQ(cache.end_offset(LeaderEpoch(0), end), Offset(0));
  EXPECT_EQ(cache.end_offset(LeaderEpoch(1), end), Offset(10));
  EXPECT_EQ(cache.end_offset(LeaderEpoch(2), end), Offset(10));
  EXPECT_EQ(cache.end_offset(LeaderEpoch(4), end), Offset(20));
  EXPECT_EQ(cache.end_offset(LeaderEpoch(5), end), end);
  EXPECT_EQ(cache.end_offset(LeaderEpoch(6), end), std::nullopt);
  EXPECT_EQ(cache.end_offset(LeaderEpoch(-1), end), std::nullopt);
  EXPECT_EQ(LeaderEpochCache().end_offset(LeaderEpoch(0), end), std::nullopt);
}

TEST(LeaderEpochCache, RefusesGarbledFiles) {
  for (const char* text : {"garbage", "1\n0\n", "0\n", "0\n1\n", "0\n1\n0 0", "0\n1\n0 0\n1 1\n",
                           "0\n2\n1 0\n1 5\n", "0\n2\n1 5\n2 5\n", "0\n1\n-1 0\n", "0\n1\n0 -1\n",
                           "0\n1\n99999999999 0\n", "0\n99999999999999999999\n"}) {
    EXPECT_EQ(LeaderEpochCache::parse(text).error().code(), Errc::kCorrupt) << text;
  }
}

}  // namespace
}  // namespace weir::log
