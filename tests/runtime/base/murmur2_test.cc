#include "tests/runtime/base/vector_file.h"

#include <weir/runtime/murmur2.h>

#include <gtest/gtest.h>

#include <string>

namespace weir {
namespace {

TEST(Murmur2, GivesKafkasHashesAndPartitions) {
  for (const auto& row : testing::read_vectors("murmur2.txt")) {
    const std::string key = testing::from_hex(row.at(0));

    EXPECT_EQ(murmur2(key), std::stoi(row.at(1))) << row.at(0);
    for (std::size_t i = 2; i < row.size(); ++i) {
      const std::size_t colon = row[i].find(':');
      const std::int32_t partitions = std::stoi(row[i].substr(0, colon));
      EXPECT_EQ(partition_for_key(key, partitions),
                PartitionId(std::stoi(row[i].substr(colon + 1))))
          << row.at(0) << " of " << partitions;
    }
  }
}

// Seen on brokers: the keys of the Kafka documentation and of other clients' tests.
TEST(Murmur2, GivesTheHashesThatOtherClientsTestFor) {
  EXPECT_EQ(murmur2("21"), -973932308);
  EXPECT_EQ(murmur2("foobar"), -790332482);
  EXPECT_EQ(murmur2("a-little-bit-long-string"), -985981536);
  EXPECT_EQ(murmur2("a-little-bit-longer-string"), -1486304829);
  EXPECT_EQ(murmur2("session-42"), 880271230);
  EXPECT_EQ(murmur2("\xc3\xa7"
                    "a-\xc5\x9f"),
            681891761);
  EXPECT_EQ(murmur2("\xff"), -311467685);
}

TEST(PartitionForKey, MasksTheSignInsteadOfNegating) {
  // murmur2("21") is negative; its absolute value mod 12 would be 8.
  EXPECT_EQ(partition_for_key("21", 12), PartitionId(0));
}

TEST(PartitionForKeyDeathTest, NeedsAPartition) {
  EXPECT_DEATH(partition_for_key("a", 0), "partitions > 0");
}

}  // namespace
}  // namespace weir
