#include "log/metadata/config_records.h"

#include "log/metadata/metadata_image.h"

#include <gtest/gtest.h>

#include <utility>

namespace weir::log {
namespace {

using Change = std::pair<std::string, std::optional<std::string>>;

std::vector<Change> changes(const TopicConfig& present, const std::string& key,
                            const std::optional<std::string>& value) {
  std::vector<Change> result;
  for (const MetadataRecord& record : config_records("t", present, key, value)) {
    const auto& config = std::get<ConfigMetadataRecord>(record);
    EXPECT_EQ(config.resource_name, "t");
    EXPECT_EQ(config.resource_type, 2);
    result.emplace_back(config.name, config.value);
  }
  return result;
}

TEST(ConfigRecords, AreOneARecordUnderTheSettingsName) {
  EXPECT_EQ(changes({}, "retention.ms", "5"), (std::vector<Change>{{"retention.ms", "5"}}));
  EXPECT_EQ(changes({{"retention.ms", "5"}}, "retention.ms", std::nullopt),
            (std::vector<Change>{{"retention.ms", std::nullopt}}));
}

TEST(ConfigRecords, AreNoneWhenNothingChanges) {
  EXPECT_TRUE(changes({{"retention.ms", "5"}}, "retention.ms", "5").empty());
  EXPECT_TRUE(changes({}, "retention.ms", std::nullopt).empty());
  EXPECT_TRUE(changes({{"segment.bytes", "500"}}, "segment.bytes", "500").empty());
}

// A Kafka 4.3.1 broker ended at its start: "Invalid value 4096 for configuration segment.bytes".
TEST(ConfigRecords, HideSegmentSizesFromKafkaThatItDoesNotStartWith) {
  EXPECT_EQ(changes({}, "segment.bytes", "1048575"),
            (std::vector<Change>{{"internal.segment.bytes", "1048575"}}));
  EXPECT_EQ(changes({}, "segment.bytes", "1048576"),
            (std::vector<Change>{{"segment.bytes", "1048576"}}));
  EXPECT_EQ(changes({{"segment.bytes", "4096"}}, "segment.bytes", "2000000"),
            (std::vector<Change>{{"internal.segment.bytes", std::nullopt},
                                 {"segment.bytes", "2000000"}}));
  EXPECT_EQ(
      changes({{"segment.bytes", "2000000"}}, "segment.bytes", "4096"),
      (std::vector<Change>{{"segment.bytes", std::nullopt}, {"internal.segment.bytes", "4096"}}));
  EXPECT_EQ(changes({{"segment.bytes", "4096"}}, "segment.bytes", std::nullopt),
            (std::vector<Change>{{"internal.segment.bytes", std::nullopt},
                                 {"segment.bytes", std::nullopt}}));
}

TEST(ConfigRecords, AreReadBackAsTheSettingThatWasGiven) {
  MetadataImage image;
  ASSERT_TRUE(image.apply(TopicMetadataRecord{"t", Uuid{}}).ok());
  for (const auto& value : {std::optional<std::string>("4096"), {"3000000"}, {"100"}, {}, {"7"}}) {
    for (const auto& record :
         config_records("t", image.find("t")->config, "segment.bytes", value)) {
      ASSERT_TRUE(image.apply(record).ok());
    }
    EXPECT_EQ(image.find("t")->config,
              value ? TopicConfig({{"segment.bytes", *value}}) : TopicConfig());
  }
}

}  // namespace
}  // namespace weir::log
