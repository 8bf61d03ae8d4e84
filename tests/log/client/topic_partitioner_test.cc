#include "log/client/topic_partitioner.h"

#include <gtest/gtest.h>

#include <map>
#include <set>

// By hand from KIP-794 ("Uniform Sticky Batch Size") and BuiltInPartitioner's comment: a partition
// is left after batch.size bytes if its open batch is not half-filled, at the latest after twice
// that.

namespace weir::log {
namespace {

constexpr std::int32_t kMany = 1'000'000;  // that the same is drawn again is a rare accident

class Sticky {
 public:
  explicit Sticky(TopicPartitioner::Options options) : partitioner(options) {}

  PartitionId choose() { return partitioner.choose({}, kMany, rng); }
  void append(std::int64_t bytes, OpenBatch open) {
    partitioner.appended({}, choose(), bytes, open);
  }

  Rng rng{1};
  TopicPartitioner partitioner;
};

TopicPartitioner::Options batches_of(std::int64_t bytes) {
  TopicPartitioner::Options options;
  options.batch_bytes = bytes;
  return options;
}

TEST(TopicPartitioner, StaysWhileABatchIsHalfFilledUpToTwiceItsSize) {
  Sticky sticky(batches_of(1000));
  const PartitionId first = sticky.choose();
  for (int i = 0; i < 4; ++i) {
    sticky.append(400, OpenBatch::kTakesMore);
    EXPECT_EQ(sticky.choose(), first) << i;
  }
  sticky.append(400, OpenBatch::kTakesMore);  // 2,000
  const PartitionId second = sticky.choose();
  EXPECT_NE(second, first);
  sticky.append(1999, OpenBatch::kTakesMore);
  EXPECT_EQ(sticky.choose(), second) << "the count starts anew";
}

TEST(TopicPartitioner, LeavesWithAFullBatchOfItsSize) {
  Sticky sticky(batches_of(1000));
  const PartitionId first = sticky.choose();
  sticky.append(999, OpenBatch::kFull);
  EXPECT_EQ(sticky.choose(), first);
  sticky.append(1, OpenBatch::kFull);
  EXPECT_NE(sticky.choose(), first);
}

TEST(TopicPartitioner, LeavesWhenTheHalfFilledBatchWasSent) {
  Sticky sticky(batches_of(1000));
  const PartitionId first = sticky.choose();
  sticky.append(700, OpenBatch::kTakesMore);
  sticky.partitioner.sent(first);
  EXPECT_EQ(sticky.choose(), first) << "700 bytes are not enough";
  sticky.append(700, OpenBatch::kTakesMore);
  EXPECT_EQ(sticky.choose(), first);
  sticky.partitioner.sent(PartitionId(first.value() + 1));
  EXPECT_EQ(sticky.choose(), first) << "another's batch";
  sticky.partitioner.sent(first);
  EXPECT_NE(sticky.choose(), first);
}

TEST(TopicPartitioner, LeavesAfterEachRecordWithoutBatches) {
  Sticky sticky(batches_of(0));
  const PartitionId first = sticky.choose();
  sticky.append(70, OpenBatch::kFull);
  EXPECT_NE(sticky.choose(), first);
}

TEST(TopicPartitioner, KeyedRecordsNeitherFollowNorMoveIt) {
  Sticky sticky(batches_of(1000));
  const PartitionId first = sticky.choose();
  const ByteView key("user-1");
  // kafka-protocol 3.5.
  EXPECT_EQ(sticky.partitioner.choose(key, 12, sticky.rng), PartitionId(8));
  EXPECT_EQ(sticky.partitioner.choose(ByteView(""), 12, sticky.rng), PartitionId(9));
  sticky.partitioner.appended(key, first, 5000, OpenBatch::kFull);
  EXPECT_EQ(sticky.choose(), first);
}

TEST(TopicPartitioner, IgnoresKeysWhenToldTo) {
  TopicPartitioner::Options options = batches_of(1000);
  options.ignore_keys = true;
  Sticky sticky(options);
  const PartitionId first = sticky.partitioner.choose(ByteView("a"), kMany, sticky.rng);
  EXPECT_EQ(sticky.partitioner.choose(ByteView("b"), kMany, sticky.rng), first);
  sticky.partitioner.appended(ByteView("b"), first, 2000, OpenBatch::kTakesMore);
  EXPECT_NE(sticky.partitioner.choose(ByteView("a"), kMany, sticky.rng), first);
}

// Equal chances: each of 4 partitions gets 2,500 of 10,000 draws, give or take five standard
// deviations of 43.
TEST(TopicPartitioner, DrawsPartitionsWithEqualChances) {
  TopicPartitioner partitioner(batches_of(0));
  Rng rng(7);
  std::map<std::int32_t, int> drawn;
  for (int i = 0; i < 10'000; ++i) {
    const PartitionId chosen = partitioner.choose({}, 4, rng);
    ++drawn[chosen.value()];
    partitioner.appended({}, chosen, 100, OpenBatch::kFull);
  }
  ASSERT_EQ(drawn.size(), 4U);
  for (const auto& [partition, count] : drawn) {
    EXPECT_NEAR(count, 2500, 5 * 43) << partition;
  }
}

TEST(TopicPartitioner, RoundRobinTakesPartitionsInTurn) {
  TopicPartitioner::Options options;
  options.kind = TopicPartitioner::Kind::kRoundRobin;
  TopicPartitioner partitioner(options);
  Rng rng(1);
  for (std::int32_t i = 0; i < 9; ++i) {
    EXPECT_EQ(
        partitioner.choose(i % 2 == 0 ? NullableBytes() : NullableBytes(ByteView("k")), 4, rng),
        PartitionId(i % 4));
  }
}

}  // namespace
}  // namespace weir::log
