#include "log/coordinator/offsets_codec.h"

#include "tests/support/hex.h"
#include "tests/support/json_text.h"

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include <fstream>

namespace weir::log {
namespace {

using testing::from_hex;
using testing::to_hex;
using Json = nlohmann::json;

std::string with_version(std::int16_t version, const std::string& body) {
  return std::string{static_cast<char>(version >> 8), static_cast<char>(version)} + body;
}

std::vector<Json> examples(const std::string& message) {
  std::ifstream file(std::string(WEIR_TEST_DATA) + "/messages/offsets-records.jsonl");
  std::vector<Json> found;
  for (std::string line; std::getline(file, line);) {
    Json json = Json::parse(line);
    if (json["message"] == message) {
      found.push_back(std::move(json));
    }
  }
  EXPECT_FALSE(found.empty()) << message;
  return found;
}

TEST(OffsetsCodec, ReadsAndWritesKeysAsKafkaDoes) {
  for (const Json& example : examples("OffsetCommitKey")) {
    const std::string bytes = with_version(1, from_hex(example["hex"].get<std::string>()));

    const Result<std::optional<OffsetKey>> key = decode_offset_key(bytes);

    ASSERT_TRUE(key.ok() && key->has_value());
    EXPECT_EQ((*key)->group, example["json"]["group"]);
    EXPECT_EQ((*key)->partition.topic, example["json"]["topic"]);
    EXPECT_EQ((*key)->partition.partition.value(), example["json"]["partition"]);
    EXPECT_EQ(to_hex(encode_offset_key(**key)), to_hex(bytes));
  }
}

TEST(OffsetsCodec, ReadsValuesOfEveryVersion) {
  for (const Json& example : examples("OffsetCommitValue")) {
    const auto version = example["version"].get<std::int16_t>();
    const std::string bytes = with_version(version, from_hex(example["hex"].get<std::string>()));

    const Result<OffsetValue> value = decode_offset_value(bytes);

    ASSERT_TRUE(value.ok()) << value.error().message();
    const Json& fields = example["json"];
    EXPECT_EQ(value->committed.offset.value(), fields["offset"]);
    EXPECT_EQ(value->committed.metadata, fields["metadata"]);
    EXPECT_EQ(value->commit_timestamp, fields["commitTimestamp"]);
    if (fields.contains("leaderEpoch")) {
      EXPECT_EQ(value->committed.leader_epoch.value(), fields["leaderEpoch"]);
    }
    if (version == 4) {
      if (fields.contains("topicId")) {
        EXPECT_EQ(value->topic_id.to_string(), fields["topicId"]);
      }
      // A field at its default is left out when it is written.
      if (!value->topic_id.is_zero() || !fields.contains("topicId")) {
        const std::string expected =
            example.contains("rewrittenHex")
                ? with_version(4, from_hex(example["rewrittenHex"].get<std::string>()))
            : fields.contains("topicId") ? bytes
                                         : std::string();
        if (!expected.empty()) {
          EXPECT_EQ(to_hex(encode_offset_value(*value)), to_hex(expected));
        }
      }
    }
  }
}

// Reference vectors of kafka-protocol 3.7.
TEST(OffsetsCodec, WritesTheKeysOfTheReference) {
  EXPECT_EQ(to_hex(encode_offset_key({"g", {"t", PartitionId(3)}})), "000100016700017400000003");
  EXPECT_EQ(to_hex(encode_group_key("g")), "0002000167");
}

TEST(OffsetsCodec, FindsThePartitionOfAGroupAsJavaDoes) {
  EXPECT_EQ(partition_for_group("g1", 50), PartitionId(42));
  EXPECT_EQ(partition_for_group("my-group", 50), PartitionId(12));
  EXPECT_EQ(partition_for_group("test-consumer-group", 50), PartitionId(31));
  EXPECT_EQ(partition_for_group("connect-cluster", 50), PartitionId(13));
  EXPECT_EQ(partition_for_group("", 50), PartitionId(0));
}

TEST(OffsetsCodec, HashesTextOutsideAsciiByItsUtf16Units) {
  std::ifstream file(std::string(WEIR_TEST_DATA) + "/vectors/string_hash.jsonl");
  int vectors = 0;
  for (std::string line; std::getline(file, line); ++vectors) {
    const Json vector = Json::parse(line);
    EXPECT_EQ(partition_for_group(vector["text"].get<std::string>(), 50).value(), vector["mod50"])
        << line;
  }
  EXPECT_GT(vectors, 5);
}

TEST(OffsetsCodec, SkipsRecordsOfOtherTypes) {
  EXPECT_FALSE(decode_offset_key(encode_group_key("g")).value().has_value());
  EXPECT_FALSE(decode_offset_key(from_hex("0063")).value().has_value());
}

TEST(OffsetsCodec, RefusesShortAndUnknownRecords) {
  EXPECT_EQ(decode_offset_key("").error().code(), Errc::kCorrupt);
  EXPECT_EQ(decode_offset_key(from_hex("0001000567")).error().code(), Errc::kCorrupt);
  EXPECT_EQ(decode_offset_value(from_hex("000400")).error().code(), Errc::kCorrupt);
  EXPECT_EQ(decode_offset_value(from_hex("0005")).error().code(), Errc::kUnsupported);
}

}  // namespace
}  // namespace weir::log
