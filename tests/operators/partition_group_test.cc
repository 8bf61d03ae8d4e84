#include "operators/task/partition_group.h"

#include <gtest/gtest.h>

#include <vector>

namespace weir::internal {
namespace {

RecordBlock block(Offset first, std::vector<Timestamp> times, LeaderEpoch epoch = LeaderEpoch(0)) {
  RecordBlock made;
  made.leader_epoch = epoch;
  for (const Timestamp time : times) {
    made.records.push_back(
        {.key = {}, .value = {}, .offset = first, .timestamp = time, .headers = {}});
    first = first.next();
  }
  made.next_offset = first;
  return made;
}

// The timestamps in the order in which they are chosen, with the partition that each comes from.
std::vector<std::pair<std::size_t, Timestamp>> drain(PartitionGroup& group,
                                                     std::size_t records_max = 100) {
  std::vector<std::pair<std::size_t, Timestamp>> order;
  while (true) {
    const Result<std::optional<PartitionGroup::Run>> run = group.next(records_max);
    if (!run.ok() || !run->has_value()) {
      return order;
    }
    for (const RecordView& record : (*run)->records) {
      order.emplace_back((*run)->partition, record.timestamp);
    }
    group.take((*run)->partition, (*run)->records.size());
  }
}

// TIME-1.
TEST(PartitionGroup, ChoosesTheHeadWithTheSmallestTimestamp) {
  PartitionGroup group;
  group.add_partition(kNoTimestamp);
  group.add_partition(kNoTimestamp);
  group.add(0, block(Offset(0), {1, 4, 9}));
  group.add(1, block(Offset(0), {2, 3, 10}));

  const std::vector<std::pair<std::size_t, Timestamp>> expected = {{0, 1}, {1, 2}, {1, 3},
                                                                   {0, 4}, {0, 9}, {1, 10}};
  EXPECT_EQ(drain(group), expected);
}

// The head decides, not what is behind it: order inside a partition is never changed.
TEST(PartitionGroup, KeepsTheOrderOfAPartitionWhoseTimesGoBack) {
  PartitionGroup group;
  group.add_partition(kNoTimestamp);
  group.add_partition(kNoTimestamp);
  group.add(0, block(Offset(0), {5, 1, 7}));
  group.add(1, block(Offset(0), {4, 6}));

  const std::vector<std::pair<std::size_t, Timestamp>> expected = {
      {1, 4}, {0, 5}, {0, 1}, {1, 6}, {0, 7}};
  EXPECT_EQ(drain(group), expected);
}

TEST(PartitionGroup, PrefersTheFirstPartitionAtEqualTimes) {
  PartitionGroup group;
  group.add_partition(kNoTimestamp);
  group.add_partition(kNoTimestamp);
  group.add(0, block(Offset(0), {3, 3}));
  group.add(1, block(Offset(0), {3, 3}));

  const std::vector<std::pair<std::size_t, Timestamp>> expected = {{0, 3}, {0, 3}, {1, 3}, {1, 3}};
  EXPECT_EQ(drain(group), expected);
}

TEST(PartitionGroup, GivesTheSameOrderWhateverTheLengthOfRuns) {
  for (const std::size_t records_max : {1U, 2U, 3U, 100U}) {
    PartitionGroup group;
    for (int i = 0; i < 3; ++i) {
      group.add_partition(kNoTimestamp);
    }
    group.add(0, block(Offset(0), {5, 5, 8, 2}));
    group.add(1, block(Offset(0), {5, 1, 9}));
    group.add(2, block(Offset(0), {4, 5}));

    const std::vector<std::pair<std::size_t, Timestamp>> expected = {
        {2, 4}, {0, 5}, {0, 5}, {1, 5}, {1, 1}, {2, 5}, {0, 8}, {0, 2}, {1, 9}};
    EXPECT_EQ(drain(group, records_max), expected) << records_max;
  }
}

// TIME-3: partition time with the head, stream time with what was taken.
TEST(PartitionGroup, RaisesPartitionTimeWithTheHeadAndStreamTimeWithWhatWasTaken) {
  PartitionGroup group;
  group.add_partition(kNoTimestamp);
  EXPECT_EQ(group.stream_time(), -1);

  group.add(0, block(Offset(0), {7, 3, 9}));
  EXPECT_EQ(group.partition_time(0), 7);
  EXPECT_EQ(group.stream_time(), -1);

  group.take(0, 1);
  EXPECT_EQ(group.stream_time(), 7);
  group.take(0, 1);
  EXPECT_EQ(group.partition_time(0), 9);
  EXPECT_EQ(group.stream_time(), 7);
}

TEST(PartitionGroup, StartsWithTheCommittedPartitionTime) {
  PartitionGroup group;
  group.add_partition(20);
  group.add_partition(30);

  EXPECT_EQ(group.stream_time(), 30);
  EXPECT_EQ(group.partition_time(0), 20);
}

// F 2.17: the head's offset, or the position behind what was read.
TEST(PartitionGroup, CommitsTheHeadOrThePositionBehindHoles) {
  PartitionGroup group;
  group.add_partition(kNoTimestamp);
  group.set_position(0, Offset(10), LeaderEpoch(1));
  EXPECT_EQ(group.position(0), Offset(10));

  RecordBlock with_hole = block(Offset(10), {1, 2}, LeaderEpoch(2));
  with_hole.next_offset = Offset(15);  // control batches behind the records
  group.add(0, std::move(with_hole));
  EXPECT_EQ(group.position(0), Offset(10));
  group.take(0, 1);
  EXPECT_EQ(group.position(0), Offset(11));
  EXPECT_EQ(group.leader_epoch(0), LeaderEpoch(2));
  group.take(0, 1);
  EXPECT_EQ(group.position(0), Offset(15));
  EXPECT_TRUE(group.empty());
}

TEST(PartitionGroup, MovesThePositionByABlockWithoutRecords) {
  PartitionGroup group;
  group.add_partition(kNoTimestamp);

  group.add(0, block(Offset(0), {}));
  RecordBlock aborted;
  aborted.next_offset = Offset(42);
  group.add(0, std::move(aborted));

  EXPECT_TRUE(group.empty());
  EXPECT_EQ(group.position(0), Offset(42));
}

// TIME-2, default extractor.
TEST(PartitionGroup, RefusesANegativeTimestampWhenItsTurnComes) {
  PartitionGroup group;
  group.add_partition(kNoTimestamp);
  group.add(0, block(Offset(5), {1, -1, 2}));

  const Result<std::optional<PartitionGroup::Run>> first = group.next(100);
  ASSERT_TRUE(first.ok());
  EXPECT_EQ((*first)->records.size(), 1U);
  group.take(0, 1);
  const Result<std::optional<PartitionGroup::Run>> second = group.next(100);

  ASSERT_FALSE(second.ok());
  EXPECT_EQ(second.error().code(), Errc::kInvalidTimestamp);
  EXPECT_NE(second.error().message().find("offset 6"), std::string::npos);
}

}  // namespace
}  // namespace weir::internal
