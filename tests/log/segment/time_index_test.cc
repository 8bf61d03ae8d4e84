#include "log/segment/time_index.h"

#include "tests/support/hex.h"

#include <gtest/gtest.h>

namespace weir::log {
namespace {

using weir::testing::from_hex;

TimeIndex two_entries() {
  TimeIndex index(Offset(36));
  index.append(1'700'000'013'040, Offset(45));
  index.append(1'700'000'014'500, Offset(50));
  return index;
}

TEST(TimeIndex, WritesTimestampAndRelativeOffsetBigEndian) {
  EXPECT_EQ(two_entries().encode(),
            from_hex("0000018bcfe59af0 00000009 0000018bcfe5a0a4 0000000e"));
}

TEST(TimeIndex, TakesOnlyEntriesThatRise) {
  TimeIndex index = two_entries();
  index.append(1'700'000'014'500, Offset(60));
  index.append(1'700'000'014'000, Offset(61));
  index.append(1'700'000'099'000, Offset(50));
  TimeIndex timeless(Offset(0));
  timeless.append(kNoTimestamp, Offset(3));

  EXPECT_EQ(index.size(), 2U);
  EXPECT_TRUE(timeless.empty());
}

TEST(TimeIndex, FindsTheLastEntryAtOrBeforeATime) {
  const TimeIndex index = two_entries();
  EXPECT_EQ(index.lookup(1'700'000'013'039), std::nullopt);
  EXPECT_EQ(index.lookup(1'700'000'013'040), (TimeIndex::Entry{1'700'000'013'040, Offset(45)}));
  EXPECT_EQ(index.lookup(INT64_MAX), (TimeIndex::Entry{1'700'000'014'500, Offset(50)}));
}

TEST(TimeIndex, ReadsWhatItWroteAndRefusesWhatDoesNotRise) {
  const std::string good = two_entries().encode();
  const Result<TimeIndex> read = TimeIndex::parse(Offset(36), good + std::string(48, '\0'));
  ASSERT_TRUE(read.ok());
  EXPECT_EQ(read->encode(), good);
  EXPECT_EQ(TimeIndex::parse(Offset(36), good + good).error().code(), Errc::kCorrupt);
  EXPECT_EQ(TimeIndex::parse(Offset(36), good.substr(0, 20)).error().code(), Errc::kCorrupt);
}

}  // namespace
}  // namespace weir::log
