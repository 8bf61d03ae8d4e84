#include <weir/runtime/commit_metadata.h>

#include <gtest/gtest.h>

namespace weir {
namespace {

struct Golden {
  CommitMetadata metadata;
  const char* text;
};

// What Kafka Streams 4.3.1 wrote (shared fixtures, streams/bytes.jsonl, "offset metadata").
const Golden kGoldens[] = {
    {{-1, {}}, "Av//////////"},
    {{-1, {{"agg-store", 42}}}, "Av//////////AAAAAQAAAAlhZ2ctc3RvcmUAAAAAAAAAKg=="},
    {{0, {}}, "AgAAAAAAAAAA"},
    {{0, {{"agg-store", 42}}}, "AgAAAAAAAAAAAAAAAQAAAAlhZ2ctc3RvcmUAAAAAAAAAKg=="},
    {{1700000000000, {}}, "AgAAAYvP5WgA"},
    {{1700000000000, {{"agg-store", 42}}}, "AgAAAYvP5WgAAAAAAQAAAAlhZ2ctc3RvcmUAAAAAAAAAKg=="},
};

TEST(CommitMetadata, WritesKafkasTexts) {
  for (const Golden& golden : kGoldens) {
    EXPECT_EQ(encode_commit_metadata(golden.metadata), golden.text);
  }
}

TEST(CommitMetadata, ReadsKafkasTexts) {
  for (const Golden& golden : kGoldens) {
    const Result<CommitMetadata> read = decode_commit_metadata(golden.text);
    ASSERT_TRUE(read.ok()) << golden.text;
    EXPECT_EQ(*read, golden.metadata);
  }
}

// Byte 1, then the partition time.
TEST(CommitMetadata, ReadsVersionOneWithoutMap) {
  const Result<CommitMetadata> read = decode_commit_metadata("AQAAAAAAAAAF");

  ASSERT_TRUE(read.ok());
  EXPECT_EQ(read->partition_time, 5);
}

TEST(CommitMetadata, TakesTheEmptyTextForACommitWithoutMetadata) {
  EXPECT_EQ(*decode_commit_metadata(""), CommitMetadata{});
}

TEST(CommitMetadata, RefusesOtherTexts) {
  EXPECT_EQ(decode_commit_metadata("not base64!").error().code(), Errc::kCorrupt);
  EXPECT_EQ(decode_commit_metadata("AgAA").error().code(), Errc::kCorrupt);  // cut short
  EXPECT_EQ(decode_commit_metadata("CQAAAAAAAAAA").error().code(), Errc::kUnsupported);  // 9
  EXPECT_EQ(decode_commit_metadata("AgAAAAAAAAAAAAAAAQAAAP8=").error().code(), Errc::kCorrupt);
}

CommitMetadata with_map() {
  return {1700000000000, {{"agg-store", 42}}, std::string("a lane map\0", 11)};
}

TEST(CommitMetadata, CarriesTheLaneMapBesideTheTimes) {
  const std::string text = encode_commit_metadata(with_map());

  EXPECT_TRUE(text.starts_with("xQEB"));  // 0xC5, version 1, section 1
  EXPECT_EQ(*decode_commit_metadata(text), with_map());
}

// S 2.4 E3 and rows T6, T8: damage is seen, and never read as something else.
TEST(CommitMetadata, RefusesEveryDamagedByteOfALaneMap) {
  const std::string text = encode_commit_metadata(with_map());
  for (std::size_t i = 0; i < text.size(); ++i) {
    std::string damaged = text;
    damaged[i] = damaged[i] == 'k' ? 'l' : 'k';
    EXPECT_FALSE(decode_commit_metadata(damaged).ok()) << "character " << i;
  }
  for (std::size_t size = 1; size < text.size(); ++size) {
    EXPECT_FALSE(decode_commit_metadata(text.substr(0, size)).ok()) << size << " characters";
  }
}

TEST(CommitMetadata, LaneMapRoomKeepsTheTextWithinKafkasBound) {
  for (std::size_t names = 0; names < 40; ++names) {
    CommitMetadata metadata = with_map();
    for (std::size_t i = 0; i < names; ++i) {
      metadata.processors["operator-with-a-name-" + std::to_string(i)] = 1;
    }
    metadata.lane_map = std::string(lane_map_room(metadata), 'x');

    ASSERT_GT(metadata.lane_map.size(), 1'000U);
    EXPECT_LE(encode_commit_metadata(metadata).size(), kCommitMetadataBytesMax);
    EXPECT_EQ(*decode_commit_metadata(encode_commit_metadata(metadata)), metadata);
  }
}

TEST(CommitMetadata, HasNoRoomForALaneMapWhenTheTimesTakeItAll) {
  CommitMetadata metadata;
  metadata.processors[std::string(3'500, 'n')] = 1;

  EXPECT_EQ(lane_map_room(metadata), 0U);
}

// T9 (PC #327): a group that Kafka Streams, or a parallel consumer ("L"), used before.
TEST(CommitMetadata, T9_TakesForeignMagicForAnotherWriters) {
  EXPECT_EQ(decode_commit_metadata("TAAA").error().code(), Errc::kUnsupported);
  EXPECT_EQ(decode_commit_metadata("xQkA").error().code(), Errc::kUnsupported);
}

}  // namespace
}  // namespace weir
