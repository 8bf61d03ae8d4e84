#include "log/metadata/metadata_snapshot.h"

#include "log/record/batch_header.h"
#include "tests/support/size_of_run.h"

#include <weir/runtime/testing/memory_file_system.h>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace weir::log {
namespace {

using ::testing::HasSubstr;
using weir::testing::MemoryFileSystem;

Uuid id(std::uint8_t n) {
  Uuid uuid;
  uuid.bytes.fill(n);
  return uuid;
}

std::vector<MetadataRecord> some_records() {
  return {FeatureLevelMetadataRecord{"metadata.version", 30},
          FeatureLevelMetadataRecord{"group.version", 1},
          RegisterBrokerMetadataRecord{1, id(9), 8, true, id(7)},
          TopicMetadataRecord{"orders", id(1)},
          PartitionMetadataRecord{PartitionId(0), id(1), 1, LeaderEpoch(3), 3, id(7)},
          PartitionMetadataRecord{PartitionId(1), id(1), 1, LeaderEpoch(0), 0, id(7)},
          ConfigMetadataRecord{4, "", "min.insync.replicas", "1"},
          ConfigMetadataRecord{2, "orders", "internal.segment.bytes", "2000"},
          ProducerIdsMetadataRecord{1, 8, ProducerId(3000)}};
}

std::vector<std::string> encoded(const std::vector<MetadataRecord>& records) {
  std::vector<std::string> values;
  for (const MetadataRecord& record : records) {
    values.push_back(encode_metadata_record(record));
  }
  return values;
}

TEST(MetadataSnapshot, HasKafkasName) {
  const SnapshotId snapshot{Offset(141), LeaderEpoch(2)};
  EXPECT_EQ(snapshot_name(snapshot), "00000000000000000141-0000000002.checkpoint");
  EXPECT_EQ(parse_snapshot_name("00000000000000000141-0000000002.checkpoint"), snapshot);
  for (const char* other :
       {"bootstrap.checkpoint", "00000000000000000141.snapshot", "",
        "00000000000000000141-0000000002.checkpoint.tmp",
        "00000000000000000141_0000000002.checkpoint", "0000000000000000014x-0000000002.checkpoint",
        "00000000000000000141-99999999999.checkpoint", "99999999999999999999-0000000002.checkpoint",
        "-0000000000000000141-0000000002.checkpoint"}) {
    EXPECT_FALSE(parse_snapshot_name(other)) << other;
  }
}

TEST(MetadataSnapshot, GivesBackTheImageThatItWasMadeOf) {
  MemoryFileSystem files;
  MetadataImage image;
  for (const MetadataRecord& record : some_records()) {
    ASSERT_TRUE(image.apply(record).ok());
  }
  ASSERT_EQ(encoded(image.records(1, id(7))), encoded(some_records()));

  ASSERT_TRUE(replace_file(files, "snapshot", encode_snapshot(some_records(), 5, 6)).ok());
  const Result<MetadataImage> read = read_snapshot(files, "snapshot");

  ASSERT_TRUE(read.ok()) << read.error().to_string();
  EXPECT_EQ(encoded(read->records(1, id(7))), encoded(some_records()));
  EXPECT_EQ(read->broker_epoch(1), 8);
  EXPECT_EQ(read->next_producer_id(), ProducerId(3000));
  EXPECT_EQ(read->find("orders")->config.at("segment.bytes"), "2000");
}

TEST(MetadataSnapshot, HoldsMoreThanABatch) {
  MemoryFileSystem files;
  std::vector<MetadataRecord> records{TopicMetadataRecord{"wide", id(1)}};
  for (std::int32_t i = 0; i < 30'000; ++i) {
    records.emplace_back(
        PartitionMetadataRecord{PartitionId(i), id(1), 1, LeaderEpoch(i), i, id(7)});
  }
  const std::string bytes = encode_snapshot(records, 5, 6);
  ASSERT_GT(bytes.size(), 2U << 20U);
  ASSERT_TRUE(replace_file(files, "snapshot", bytes).ok());

  const Result<MetadataImage> read = read_snapshot(files, "snapshot");

  ASSERT_TRUE(read.ok()) << read.error().to_string();
  EXPECT_EQ(encoded(read->records(1, id(7))), encoded(records));
}

TEST(MetadataSnapshot, IsRefusedWhereverItIsCut) {
  const std::string whole = encode_snapshot(some_records(), 5, 6);
  for (std::size_t size = 0; size < whole.size(); ++size) {
    MemoryFileSystem files;
    ASSERT_TRUE(replace_file(files, "snapshot", ByteView(whole).substr(0, size)).ok());
    const Result<MetadataImage> read = read_snapshot(files, "snapshot");
    ASSERT_FALSE(read.ok()) << size;
    EXPECT_EQ(read.error().code(), Errc::kCorrupt) << size;
    EXPECT_THAT(read.error().message(), HasSubstr("snapshot"));
  }
}

// A CRC leaves out a batch's first 16 bytes: an offset or epoch there says nothing in a snapshot.
TEST(MetadataSnapshot, IsRefusedWhateverByteOfARecordIsFlipped) {
  const std::string whole = encode_snapshot(some_records(), 5, 6);
  std::size_t start = 0;
  for (std::size_t at = 0; at < whole.size(); ++at) {
    if (at - start == read_batch_header(ByteView(whole).substr(start))->size_bytes()) {
      start = at;
    }
    if (at - start < 16) {
      continue;
    }
    MemoryFileSystem files;
    std::string flipped = whole;
    flipped[at] = static_cast<char>(flipped[at] ^ 4);
    ASSERT_TRUE(replace_file(files, "snapshot", flipped).ok());
    EXPECT_FALSE(read_snapshot(files, "snapshot").ok()) << at;
  }
}

// Whatever was applied, an image is what its own records make of an empty one.
TEST(MetadataSnapshot, SaysTheSameAsAnyLog) {
  const std::uint64_t seed = weir::testing::seed_of_run();
  SCOPED_TRACE(seed);
  Rng rng(seed);
  for (int life = 0; life < weir::testing::rounds(50, 2000); ++life) {
    MetadataImage image;
    std::map<std::uint8_t, std::int32_t> partitions;
    for (int step = 0; step < 60; ++step) {
      const auto n = static_cast<std::uint8_t>(1 + rng.below(5));
      const std::string name = "topic" + std::to_string(n);
      const bool exists = partitions.contains(n);
      MetadataRecord record =
          FeatureLevelMetadataRecord{"f" + name, static_cast<std::int16_t>(rng.below(3))};
      switch (rng.below(7)) {
        case 0:
          if (!exists) {
            record = TopicMetadataRecord{name, id(n)};
            partitions[n] = 0;
          }
          break;
        case 1:
          if (exists) {
            record = PartitionMetadataRecord{
                PartitionId(partitions[n]++), id(n), 1, LeaderEpoch(0), 0, id(7)};
          }
          break;
        case 2:
          if (exists && partitions[n] > 0) {
            record = PartitionChangeMetadataRecord{PartitionId(partitions[n] - 1), id(n), 1};
          }
          break;
        case 3:
          record = ConfigMetadataRecord{
              2, name, rng.chance(1, 2) ? "segment.bytes" : "retention.ms",
              rng.chance(2, 3) ? std::optional<std::string>("3000000") : std::nullopt};
          break;
        case 4:
          if (exists && rng.chance(1, 3)) {
            record = RemoveTopicMetadataRecord{id(n)};
            partitions.erase(n);
          }
          break;
        case 5:
          record =
              ProducerIdsMetadataRecord{1, 8, ProducerId(static_cast<std::int64_t>(step) * 1000)};
          break;
        default:
          record = RegisterBrokerMetadataRecord{1, id(9), step, true, id(7)};
      }
      ASSERT_TRUE(image.apply(record).ok());
    }
    MetadataImage again;
    for (const MetadataRecord& record : image.records(1, id(7))) {
      ASSERT_TRUE(again.apply(record).ok());
    }
    EXPECT_EQ(encoded(again.records(1, id(7))), encoded(image.records(1, id(7))));
    EXPECT_EQ(again.topics().size(), partitions.size());
    for (const auto& [n, count] : partitions) {
      const TopicImage* topic = again.find(id(n));
      ASSERT_NE(topic, nullptr);
      EXPECT_EQ(topic->config, image.find(id(n))->config);
      EXPECT_EQ(topic->leader_epochs, image.find(id(n))->leader_epochs);
      EXPECT_EQ(topic->leader_epochs.size(), static_cast<std::size_t>(count));
    }
    EXPECT_EQ(again.next_producer_id(), image.next_producer_id());
    EXPECT_EQ(again.broker_epoch(1), image.broker_epoch(1));
  }
}

}  // namespace
}  // namespace weir::log
