#include <weir/runtime/compression.h>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace weir {
namespace {

TEST(ParseCompression, HasKafkasDefaults) {
  EXPECT_EQ(parse_compression("producer", {}).value(), Compression());
  const auto level = [](const char* type) {
    return parse_compression("producer", {{"compression.type", type}})->level_in_force();
  };
  EXPECT_EQ(level("gzip"), -1);
  EXPECT_EQ(level("lz4"), 9);
  EXPECT_EQ(level("zstd"), 3);
  EXPECT_EQ(level("snappy"), 0);
}

TEST(ParseCompression, TakesTheLevelOfTheCodecThatIsChosen) {
  const std::map<std::string, std::string> levels = {{"compression.gzip.level", "7"},
                                                     {"compression.lz4.level", "17"},
                                                     {"compression.zstd.level", "-131072"}};
  const auto parse = [&levels](const char* type) {
    auto settings = levels;
    settings["compression.type"] = type;
    return parse_compression("producer", settings).value();
  };
  EXPECT_EQ(parse("gzip"), (Compression{Codec::kGzip, 7}));
  EXPECT_EQ(parse("lz4"), (Compression{Codec::kLz4, 17}));
  EXPECT_EQ(parse("zstd"), (Compression{Codec::kZstd, -131072}));
  EXPECT_EQ(parse("snappy"), (Compression{Codec::kSnappy, std::nullopt}));
  EXPECT_EQ(parse("none"), Compression());
}

TEST(ParseCompression, ReportsEveryMistakeAtOnce) {
  const auto refused = parse_compression("producer", {{"compression.type", "zip"},
                                                      {"compression.gzip.level", "0"},
                                                      {"compression.lz4.level", "18"},
                                                      {"compression.zstd.level", "23"},
                                                      {"compression.zstd.leve", "3"}});
  ASSERT_FALSE(refused.ok());
  EXPECT_EQ(refused.error().code(), Errc::kInvalidConfig);
  for (const char* part : {"compression.type=", "compression.gzip.level=", "compression.lz4.level=",
                           "compression.zstd.level=", "did you mean \"compression.zstd.level\"?"}) {
    EXPECT_THAT(refused.error().message(), ::testing::HasSubstr(part));
  }
}

TEST(Compression, HoldsLevelsInTheirRange) {
  EXPECT_EQ((Compression{Codec::kGzip, 0}.level_in_force()), 1);
  EXPECT_EQ((Compression{Codec::kGzip, 12}.level_in_force()), 9);
  EXPECT_EQ((Compression{Codec::kLz4, 0}.level_in_force()), 1);
  EXPECT_EQ((Compression{Codec::kLz4, 99}.level_in_force()), 17);
  EXPECT_EQ((Compression{Codec::kZstd, 99}.level_in_force()), 22);
  EXPECT_EQ((Compression{Codec::kNone, 5}.level_in_force()), 0);
}

}  // namespace
}  // namespace weir
