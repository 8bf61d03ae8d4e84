#include "log/partition/topic_settings.h"

#include <weir/runtime/file_system.h>

#include <fmt/core.h>
#include <gtest/gtest.h>

#include <set>

namespace weir::log {
namespace {

TEST(TopicSettings, HaveKafkasDefaults) {
  const TopicSettings settings = parse_topic_settings("t", {}).value();
  EXPECT_EQ(settings.segment_bytes, 1'073'741'824);
  EXPECT_EQ(settings.segment_ms, 604'800'000);
  EXPECT_EQ(settings.max_message_bytes, 1'048'588);
  EXPECT_EQ(settings.index_interval_bytes, 4096);
  EXPECT_EQ(settings.message_timestamp_after_max_ms, 3'600'000);
  EXPECT_EQ(settings.weir_durability, "fsync");
}

TEST(TopicSettings, TakeBothPoliciesInEitherOrder) {
  for (const char* policy : {"compact,delete", "delete,compact"}) {
    EXPECT_EQ(parse_topic_settings("t", {{"cleanup.policy", policy}})->cleanup_policy,
              "compact,delete");
  }
  EXPECT_FALSE(parse_topic_settings("t", {{"cleanup.policy", "compact+nothing"}}).ok());
}

// A Kafka broker does not start on a metadata log with another value.
TEST(TopicSettings, TakeARatioFromZeroToOne) {
  for (const char* ratio : {"0", "1", "0.25", "1.0", "1e-3"}) {
    EXPECT_TRUE(parse_topic_settings("t", {{"min.cleanable.dirty.ratio", ratio}}).ok()) << ratio;
  }
  for (const char* ratio : {"", "half", "-0.1", "1.5", "0.5x", "nan", " 0.5"}) {
    EXPECT_FALSE(parse_topic_settings("t", {{"min.cleanable.dirty.ratio", ratio}}).ok()) << ratio;
  }
}

TEST(TopicSettings, AreNamedOnceAndDocumented) {
  std::set<std::string_view> names;
  for (const Property<TopicSettings>& property : topic_properties()) {
    EXPECT_TRUE(names.insert(property.name).second) << property.name;
    EXPECT_FALSE(property.doc.empty()) << property.name;
  }
}

TEST(TopicSettings, StandInTheDocumentationWithTheirDefaults) {
  const std::string page = read_file(posix_file_system(), "docs/topic_settings.md").value();
  for (const Property<TopicSettings>& property : topic_properties()) {
    EXPECT_NE(page.find(fmt::format("\n| `{}` | `{}` |", property.name,
                                    property_text(property, TopicSettings()))),
              std::string::npos)
        << property.name;
  }
}

TEST(TopicSettings, GiveThePartitionItsCodec) {
  const auto codec = [](TopicConfig config) {
    return partition_settings(parse_topic_settings("t", config).value()).compression;
  };
  EXPECT_EQ(codec({}), std::nullopt);
  EXPECT_EQ(codec({{"compression.type", "producer"}}), std::nullopt);
  EXPECT_EQ(codec({{"compression.type", "uncompressed"}}), Compression());
  EXPECT_EQ(codec({{"compression.type", "snappy"}})->codec, Codec::kSnappy);
  const TopicConfig levels = {{"compression.gzip.level", "7"},
                              {"compression.lz4.level", "17"},
                              {"compression.zstd.level", "-5"}};
  for (const auto& [type, expected] : {std::pair{"gzip", Compression{Codec::kGzip, 7}},
                                       {"lz4", Compression{Codec::kLz4, 17}},
                                       {"zstd", Compression{Codec::kZstd, -5}}}) {
    TopicConfig config = levels;
    config["compression.type"] = type;
    EXPECT_EQ(codec(config), expected) << type;
  }
  EXPECT_FALSE(parse_topic_settings("t", {{"compression.type", "none"}}).ok());
}

TEST(TopicSettings, ReachThePartition) {
  const TopicSettings settings =
      parse_topic_settings(
          "t", {{"weir.durability", "memory"}, {"message.timestamp.type", "LogAppendTime"}})
          .value();
  EXPECT_EQ(partition_settings(settings).durability, DurabilityMode::kMemory);
  EXPECT_EQ(partition_settings(settings).timestamp_type, TimestampType::kLogAppendTime);
}

TEST(TopicNames, AreLegalWhereKafkaSaysSo) {
  for (const char* name : {"a", "A.b_c-9", "...", "-"}) {
    EXPECT_TRUE(validate_topic_name(name).ok()) << name;
  }
  EXPECT_TRUE(validate_topic_name(std::string(249, 'x')).ok());
  for (const char* name : {"", ".", "..", "a b", "a/b", "a\tb", "\xc3\xa9"}) {
    EXPECT_EQ(validate_topic_name(name).error().code(), Errc::kInvalidTopic) << name;
  }
  EXPECT_FALSE(validate_topic_name(std::string(250, 'x')).ok());
}

}  // namespace
}  // namespace weir::log
