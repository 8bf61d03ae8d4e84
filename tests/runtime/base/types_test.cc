#include "tests/runtime/base/vector_file.h"

#include <weir/runtime/types.h>

#include <gtest/gtest.h>

#include <cstring>
#include <type_traits>
#include <unordered_set>

namespace weir {
namespace {

TEST(StrongInt, DoesNotMixWithOtherKinds) {
  static_assert(!std::is_convertible_v<Offset, LeaderEpoch>);
  static_assert(!std::is_convertible_v<std::int64_t, Offset>);
  static_assert(!std::is_convertible_v<Offset, std::int64_t>);
  static_assert(sizeof(Offset) == 8 && sizeof(ProducerEpoch) == 2);

  EXPECT_EQ(Offset(41).next(), Offset(42));
  EXPECT_EQ(Offset(40).plus(-2).value(), 38);
  EXPECT_LT(Offset(2), Offset(10));
  EXPECT_EQ(Offset(), Offset(0));
}

TEST(Uuid, PrintsAndReadsKafkasTextForm) {
  for (const auto& row : testing::read_vectors("uuid.txt")) {
    const std::string bytes = testing::from_hex(row.at(0));
    Uuid id;
    std::memcpy(id.bytes.data(), bytes.data(), id.bytes.size());

    EXPECT_EQ(id.to_string(), row.at(1));
    EXPECT_EQ(Uuid::parse(row.at(1)).value(), id);
  }
}

TEST(Uuid, RefusesWhatIsNotAnId) {
  for (const std::string_view text : {"", "AAAAAAAAAAAAAAAAAAAAA", "AAAAAAAAAAAAAAAAAAAAAAA",
                                      "AAAAAAAAAAAAAAAAAAAAAA==", "AAAAAAAAAA+AAAAAAAAAAA",
                                      "AAAAAAAAAA/AAAAAAAAAAA", "AAAAAAAAAA AAAAAAAAAAA",
                                      "AAAAAAAAAA\xc3\xa4"
                                      "AAAAAAAAAA"}) {
    EXPECT_EQ(Uuid::parse(text).error().code(), Errc::kInvalidArgument) << text;
  }
}

// What java.util.Base64's URL decoder does with the four bits that an id does not use.
TEST(Uuid, IgnoresUnusedBitsOfTheLastCharacter) {
  EXPECT_EQ(Uuid::parse("AAAAAAAAAAAAAAAAAAAAAf").value(),
            Uuid::parse("AAAAAAAAAAAAAAAAAAAAAQ").value());
}

TEST(Uuid, IsZeroOnlyWhenAllBytesAre) {
  EXPECT_TRUE(Uuid{}.is_zero());
  EXPECT_FALSE(Uuid::parse("AAAAAAAAAAAAAAAAAAAAAQ").value().is_zero());
}

TEST(TopicPartition, PrintsTheFolderNameAndSortsByTopicThenPartition) {
  const TopicPartition orders_2{"orders", PartitionId(2)};
  const TopicPartition orders_10{"orders", PartitionId(10)};
  const TopicPartition a{"a-b", PartitionId(11)};

  EXPECT_EQ(orders_10.to_string(), "orders-10");
  EXPECT_EQ(a.to_string(), "a-b-11");
  EXPECT_LT(orders_2, orders_10);
  EXPECT_LT(a, orders_2);
}

TEST(Hashes, TellEqualFromDifferent) {
  const std::unordered_set<TopicPartition> partitions{
      {"a", PartitionId(0)}, {"a", PartitionId(1)}, {"b", PartitionId(0)}, {"a", PartitionId(0)}};
  const std::unordered_set<Uuid> ids{Uuid{}, Uuid{}, Uuid::parse("AAAAAAAAAAAAAAAAAAAAAQ").value()};
  const std::unordered_set<Offset> offsets{Offset(1), Offset(1), Offset(2)};

  EXPECT_EQ(partitions.size(), 3U);
  EXPECT_EQ(ids.size(), 2U);
  EXPECT_EQ(offsets.size(), 2U);
}

}  // namespace
}  // namespace weir
