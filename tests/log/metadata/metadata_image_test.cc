#include "log/metadata/metadata_image.h"

#include <gtest/gtest.h>

namespace weir::log {
namespace {

Uuid id(std::uint8_t n) {
  Uuid uuid;
  uuid.bytes.fill(n);
  return uuid;
}

PartitionMetadataRecord partition(std::uint8_t topic, std::int32_t index, std::int32_t epoch = 0) {
  PartitionMetadataRecord record;
  record.topic_id = id(topic);
  record.partition_id = PartitionId(index);
  record.leader_epoch = LeaderEpoch(epoch);
  return record;
}

TEST(MetadataImage, HoldsTopicsWithSettingsAndPartitions) {
  MetadataImage image;
  ASSERT_TRUE(image.apply(TopicMetadataRecord{"orders", id(1)}).ok());
  ASSERT_TRUE(image.apply(ConfigMetadataRecord{2, "orders", "segment.bytes", "1024"}).ok());
  ASSERT_TRUE(image.apply(partition(1, 0)).ok());
  ASSERT_TRUE(image.apply(partition(1, 1, 4)).ok());

  const TopicImage* topic = image.find("orders");

  ASSERT_NE(topic, nullptr);
  EXPECT_EQ(topic->config.at("segment.bytes"), "1024");
  EXPECT_EQ(topic->leader_epochs, (std::vector<LeaderEpoch>{LeaderEpoch(0), LeaderEpoch(4)}));
  EXPECT_EQ(image.find(id(1)), topic);
}

TEST(MetadataImage, RaisesTheEpochWhenALeaderIsNamedAnew) {
  MetadataImage image;
  ASSERT_TRUE(image.apply(TopicMetadataRecord{"orders", id(1)}).ok());
  ASSERT_TRUE(image.apply(partition(1, 0)).ok());

  ASSERT_TRUE(image.apply(PartitionChangeMetadataRecord{PartitionId(0), id(1), 1}).ok());
  ASSERT_TRUE(image.apply(PartitionChangeMetadataRecord{PartitionId(0), id(1), std::nullopt}).ok());

  EXPECT_EQ(image.find("orders")->leader_epochs[0], LeaderEpoch(1));
}

TEST(MetadataImage, RemembersRemovedTopicsUnderTheirId) {
  MetadataImage image;
  ASSERT_TRUE(image.apply(TopicMetadataRecord{"orders", id(1)}).ok());
  ASSERT_TRUE(image.apply(RemoveTopicMetadataRecord{id(1)}).ok());
  ASSERT_TRUE(image.apply(TopicMetadataRecord{"orders", id(2)}).ok());

  EXPECT_TRUE(image.was_removed(id(1)));
  EXPECT_FALSE(image.was_removed(id(2)));
  EXPECT_EQ(image.find("orders")->id, id(2));
}

TEST(MetadataImage, RemovesASettingByANullValue) {
  MetadataImage image;
  ASSERT_TRUE(image.apply(TopicMetadataRecord{"orders", id(1)}).ok());
  ASSERT_TRUE(image.apply(ConfigMetadataRecord{2, "orders", "retention.ms", "5"}).ok());
  ASSERT_TRUE(image.apply(ConfigMetadataRecord{2, "orders", "retention.ms", std::nullopt}).ok());

  EXPECT_TRUE(image.find("orders")->config.empty());
}

TEST(MetadataImage, IgnoresSettingsOfBrokers) {
  MetadataImage image;
  ASSERT_TRUE(image.apply(ConfigMetadataRecord{4, "", "min.insync.replicas", "1"}).ok());
  ASSERT_TRUE(image.apply(TopicMetadataRecord{"", id(1)}).ok());

  EXPECT_TRUE(image.find("")->config.empty());
}

TEST(MetadataImage, KnowsTheEpochOfANodesLastRegistration) {
  MetadataImage image;
  EXPECT_EQ(image.broker_epoch(1), -1);
  for (const std::int64_t epoch : {8, 4000}) {
    RegisterBrokerMetadataRecord node;
    node.broker_id = 1;
    node.broker_epoch = epoch;
    ASSERT_TRUE(image.apply(node).ok());
    EXPECT_EQ(image.broker_epoch(1), epoch);
  }
  EXPECT_EQ(image.broker_epoch(2), -1);
}

TEST(MetadataImage, RefusesWhatContradictsItself) {
  MetadataImage image;
  ASSERT_TRUE(image.apply(TopicMetadataRecord{"orders", id(1)}).ok());

  EXPECT_EQ(image.apply(partition(9, 0)).error().code(), Errc::kCorrupt);
  EXPECT_EQ(image.apply(partition(1, 1)).error().code(), Errc::kCorrupt);
  EXPECT_EQ(image.apply(partition(1, -1)).error().code(), Errc::kCorrupt);
  EXPECT_EQ(image.apply(PartitionChangeMetadataRecord{PartitionId(0), id(1), 1}).error().code(),
            Errc::kCorrupt);
}

}  // namespace
}  // namespace weir::log
