#include "log/compaction/offset_map.h"

#include <weir/runtime/rng.h>

#include <fmt/core.h>
#include <gtest/gtest.h>

#include <map>
#include <string>

namespace weir::log {
namespace {

TEST(OffsetMap, KnowsTheLatestOffsetOfEveryKey) {
  OffsetMap map(1U << 20U, 7);
  Rng rng(11);
  std::map<std::string, std::int64_t> model;
  for (std::int64_t offset = 0; offset < 20'000; ++offset) {
    const std::string key(rng.below(40), static_cast<char>('a' + rng.below(3)));
    const std::string named = rng.chance(1, 2) ? key : fmt::format("{}{}", key, rng.below(500));
    ASSERT_TRUE(map.put(named, Offset(offset)));
    model[named] = offset;
  }
  EXPECT_EQ(map.size(), model.size());
  for (const auto& [key, offset] : model) {
    EXPECT_EQ(map.find(key), Offset(offset)) << key;
  }
  EXPECT_EQ(map.find("not there"), std::nullopt);
}

TEST(OffsetMap, TellsEmptyAndPrefixKeysApart) {
  OffsetMap map(4096, 1);
  EXPECT_EQ(map.find(""), std::nullopt);
  ASSERT_TRUE(map.put("", Offset(1)));
  ASSERT_TRUE(map.put(ByteView("\0", 1), Offset(2)));
  ASSERT_TRUE(map.put(ByteView("\0\0", 2), Offset(3)));
  EXPECT_EQ(map.find(""), Offset(1));
  EXPECT_EQ(map.find(ByteView("\0", 1)), Offset(2));
  EXPECT_EQ(map.find(ByteView("\0\0", 2)), Offset(3));
}

TEST(OffsetMap, StaysWithinItsBytesAndKeepsWhatItHas) {
  constexpr std::size_t kBytes = 16U << 10U;
  OffsetMap map(kBytes, 3);
  std::int64_t taken = 0;
  while (map.put(fmt::format("key-{}", taken), Offset(taken))) {
    ++taken;
    ASSERT_LE(map.size_bytes(), kBytes);
  }
  // 24 bytes a key and, when it is full, 4 to 8 of the table.
  EXPECT_GT(taken, 300);
  EXPECT_LT(taken, 600);
  EXPECT_TRUE(map.put("key-0", Offset(taken)));  // a key that it has needs no room
  EXPECT_EQ(map.find("key-0"), Offset(taken));
  EXPECT_EQ(map.find(fmt::format("key-{}", taken - 1)), Offset(taken - 1));
  EXPECT_EQ(map.find(fmt::format("key-{}", taken)), std::nullopt);
}

TEST(OffsetMap, TakesOneKeyWhateverItsSize) {
  OffsetMap map(1024, 3);
  const std::string key(100'000, 'k');
  ASSERT_TRUE(map.put(key, Offset(5)));
  EXPECT_EQ(map.find(key), Offset(5));
  EXPECT_FALSE(map.put(std::string(100'001, 'k'), Offset(6)));
  EXPECT_TRUE(map.put(key, Offset(7)));
  EXPECT_EQ(map.find(key), Offset(7));
}

}  // namespace
}  // namespace weir::log
