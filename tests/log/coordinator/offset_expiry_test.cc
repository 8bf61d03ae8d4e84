// The rules of Kafka's ClassicGroup.offsetExpirationCondition, row by row.
#include "log/coordinator/offset_expiry.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace weir::log {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

constexpr std::int64_t kRetention = 1'000;
const TopicPartition kRead{"read", PartitionId(0)};
const TopicPartition kLeft{"left", PartitionId(0)};

GroupSnapshot group(GroupState state, const std::string& type, Timestamp since) {
  GroupSnapshot at;
  at.state = state;
  at.protocol_type = type;
  at.state_timestamp = since;
  at.subscribed_topics = std::set<std::string>{"read"};
  return at;
}

std::vector<TopicPartition> expired(const GroupSnapshot& at, Timestamp now, Timestamp used_at = 0) {
  return expired_offsets(at, {{kRead, Offset(1), 100}, {kLeft, Offset(1), 500}}, used_at,
                         kRetention, now);
}

TEST(OffsetExpiry, OfAnEmptyGroupCountsFromWhenItBecameEmpty) {
  const GroupSnapshot at = group(GroupState::kEmpty, "consumer", 2'000);
  EXPECT_THAT(expired(at, 2'999), IsEmpty());
  EXPECT_THAT(expired(at, 3'000), ElementsAre(kRead, kLeft));
}

TEST(OffsetExpiry, WithoutThatTimeItCountsFromTheCommit) {
  const GroupSnapshot at = group(GroupState::kEmpty, "consumer", kNoTimestamp);
  EXPECT_THAT(expired(at, 1'099), IsEmpty());
  EXPECT_THAT(expired(at, 1'100), ElementsAre(kRead));
  EXPECT_THAT(expired(at, 1'500), ElementsAre(kRead, kLeft));
}

TEST(OffsetExpiry, OfAStableGroupOnlyTopicsThatNobodySubscribesTo) {
  GroupSnapshot at = group(GroupState::kStable, "consumer", 0);
  EXPECT_THAT(expired(at, 1'499), IsEmpty());
  EXPECT_THAT(expired(at, 1'000'000), ElementsAre(kLeft));
  at.subscribed_topics.reset();
  EXPECT_THAT(expired(at, 1'000'000), IsEmpty()) << "it cannot be told";
  at = group(GroupState::kStable, "connect", 0);
  EXPECT_THAT(expired(at, 1'000'000), IsEmpty());
}

TEST(OffsetExpiry, NothingDuringARebalance) {
  for (const GroupState state :
       {GroupState::kPreparingRebalance, GroupState::kCompletingRebalance}) {
    EXPECT_THAT(expired(group(state, "consumer", 0), 1'000'000), IsEmpty());
  }
}

TEST(OffsetExpiry, NeverOfWhatAnOpenTransactionSets) {
  const std::vector<GroupOffsets::Stored> offsets = {{kRead, Offset(1), 100, true},
                                                     {kLeft, Offset(1), 500}};
  for (const std::string type : {"consumer", ""}) {
    EXPECT_THAT(
        expired_offsets(group(GroupState::kEmpty, type, 0), offsets, 0, kRetention, 1'000'000),
        ElementsAre(kLeft));
  }
}

TEST(OffsetExpiry, OfAGroupWithoutMembersEverCountsFromItsLastUse) {
  for (const GroupState state : {GroupState::kEmpty, GroupState::kDead}) {
    const GroupSnapshot at = group(state, "", 0);
    EXPECT_THAT(expired(at, 1'499), IsEmpty()) << "its last commit was at 500";
    EXPECT_THAT(expired(at, 1'500), ElementsAre(kRead, kLeft));
    EXPECT_THAT(expired(at, 1'500, 501), IsEmpty());
    EXPECT_THAT(expired(at, 1'501, 501), ElementsAre(kRead, kLeft));
  }
}

}  // namespace
}  // namespace weir::log
