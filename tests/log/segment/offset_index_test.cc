#include "log/segment/offset_index.h"

#include "tests/support/hex.h"

#include <gtest/gtest.h>

namespace weir::log {
namespace {

using weir::testing::from_hex;

OffsetIndex three_entries() {
  OffsetIndex index(Offset(36));
  index.append(Offset(45), 304);
  index.append(Offset(50), 679);
  index.append(Offset(53), 1077);
  return index;
}

TEST(OffsetIndex, WritesRelativeOffsetsBigEndian) {
  // rolls-size, segment 36: (45, 304), (50, 679), (53, 1077).
  EXPECT_EQ(three_entries().encode(),
            from_hex("00000009 00000130 0000000e 000002a7 00000011 00000435"));
}

TEST(OffsetIndex, FindsTheLastEntryAtOrBelowAnOffset) {
  const OffsetIndex index = three_entries();
  EXPECT_EQ(index.lookup(Offset(44)), std::nullopt);
  EXPECT_EQ(index.lookup(Offset(45)), (OffsetIndex::Entry{Offset(45), 304}));
  EXPECT_EQ(index.lookup(Offset(52)), (OffsetIndex::Entry{Offset(50), 679}));
  EXPECT_EQ(index.lookup(Offset(9999)), (OffsetIndex::Entry{Offset(53), 1077}));
}

TEST(OffsetIndex, ReadsWhatItWroteAndIgnoresTheRestOfAPreallocatedFile) {
  const std::string file = three_entries().encode() + std::string(800, '\0');
  const Result<OffsetIndex> index = OffsetIndex::parse(Offset(36), file, 2000);
  ASSERT_TRUE(index.ok());
  EXPECT_EQ(index->size(), 3U);
  EXPECT_EQ(index->encode(), three_entries().encode());
}

TEST(OffsetIndex, RefusesFilesThatCannotBeRight) {
  const std::string good = three_entries().encode();
  EXPECT_EQ(OffsetIndex::parse(Offset(36), good.substr(0, 21), 2000).error().code(),
            Errc::kCorrupt);
  EXPECT_EQ(OffsetIndex::parse(Offset(36), good, 1077).error().code(), Errc::kCorrupt);
  EXPECT_EQ(OffsetIndex::parse(Offset(36), good + good, 2000).error().code(), Errc::kCorrupt);
  EXPECT_EQ(OffsetIndex::parse(Offset(36), from_hex("80000009 00000130"), 2000).error().code(),
            Errc::kCorrupt);
}

TEST(OffsetIndex, LeavesOutWhatDoesNotRiseOrFit) {
  OffsetIndex index = three_entries();
  index.append(Offset(53), 2000);
  index.append(Offset(60), 1077);
  index.append(Offset(36 + (std::int64_t{1} << 31)), 3000);
  index.append(Offset(61), std::uint64_t{1} << 31);
  EXPECT_EQ(index.size(), 3U);
}

}  // namespace
}  // namespace weir::log
