#include "operators/task/commit_metadata.h"

#include <gtest/gtest.h>

namespace weir::internal {
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

}  // namespace
}  // namespace weir::internal
