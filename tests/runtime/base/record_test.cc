#include "tests/runtime/base/vector_file.h"

#include <weir/runtime/record.h>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <utility>
#include <vector>

namespace weir {
namespace {

using Pair = std::pair<std::string, std::optional<std::string>>;

std::vector<Pair> read_all(HeadersView headers) {
  std::vector<Pair> pairs;
  for (const HeaderView& header : headers) {
    pairs.emplace_back(header.name, header.value.to_owned());
  }
  return pairs;
}

TEST(Headers, KeepOrderDuplicatesNullsAndEmptyNames) {
  Headers headers;
  headers.add("trace", ByteView("1"));
  headers.add("", ByteView(""));
  headers.add("trace", NullableBytes());

  EXPECT_EQ(headers.view().count(), 3U);
  EXPECT_EQ(read_all(headers.view()),
            (std::vector<Pair>{{"trace", "1"}, {"", ""}, {"trace", std::nullopt}}));
}

// Worked by hand from DefaultRecord's layout: zigzag lengths 2 -> 04, 1 -> 02, null -> 01, 0 -> 00.
TEST(Headers, AreEncodedAsKafkaDoes) {
  Headers headers;
  headers.add("h1", ByteView("v"));
  headers.add("h2", NullableBytes());
  headers.add("", ByteView(""));

  EXPECT_EQ(headers.view().encoded(), testing::from_hex("04683102760468320100"
                                                        "00"));
}

TEST(Headers, KeepLongValues) {
  const std::string name(64, 'n');
  const std::string value(100'000, 'v');
  Headers headers;
  headers.add(name, ByteView(value));

  // 64 and 100,000 in zigzag varints are 80 01 and c0 9a 0c.
  EXPECT_EQ(headers.view().encoded(),
            testing::from_hex("8001") + name + testing::from_hex("c09a0c") + value);
  EXPECT_EQ(read_all(headers.view()), (std::vector<Pair>{{name, value}}));
}

TEST(Headers, CopyEncodedBytesOfAView) {
  Headers first;
  first.add("a", ByteView("1"));
  const Headers copy(first.view());
  first.clear();

  EXPECT_TRUE(first.view().empty());
  EXPECT_EQ(read_all(copy.view()), (std::vector<Pair>{{"a", "1"}}));
}

TEST(HeadersView, LastFindsTheLastOfThatName) {
  Headers headers;
  headers.add("a", ByteView("1"));
  headers.add("b", NullableBytes());
  headers.add("a", ByteView("2"));

  EXPECT_EQ(headers.view().last("a")->view(), "2");
  ASSERT_TRUE(headers.view().last("b").has_value());
  EXPECT_TRUE(headers.view().last("b")->is_null());
  EXPECT_FALSE(headers.view().last("c").has_value());
  EXPECT_FALSE(HeadersView().last("a").has_value());
}

TEST(HeadersViewDeathTest, AbortsWhenTheBytesAreShorterThanPromised) {
  const HeadersView broken(ByteView("\x04h", 2), 1);

  EXPECT_DEATH(read_all(broken), "assertion failed");
}

TEST(RecordView, IsOneCacheLine) {
  EXPECT_EQ(sizeof(RecordView), 64U);
}

}  // namespace
}  // namespace weir
