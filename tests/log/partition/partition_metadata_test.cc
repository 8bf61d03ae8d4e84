#include "log/partition/partition_metadata.h"

#include <gtest/gtest.h>

namespace weir::log {
namespace {

TEST(PartitionMetadata, IsKafkasText) {
  // As a Kafka 4.3.1 broker wrote it.
  const std::string text = "version: 0\ntopic_id: 5KRAvX5fRIaBl3L-ANf0Jg";
  const Result<Uuid> id = parse_partition_metadata(text);
  ASSERT_TRUE(id.ok());
  EXPECT_EQ(id->to_string(), "5KRAvX5fRIaBl3L-ANf0Jg");
  EXPECT_EQ(encode_partition_metadata(*id), text);
  EXPECT_TRUE(parse_partition_metadata(text + "\n").ok());
}

TEST(PartitionMetadata, RefusesOtherText) {
  for (const char* text : {"", "version: 1\ntopic_id: 5KRAvX5fRIaBl3L-ANf0Jg",
                           "version: 0\ntopic_id: 5KRAvX5f", "garbage"}) {
    EXPECT_EQ(parse_partition_metadata(text).error().code(), Errc::kCorrupt) << text;
  }
}

}  // namespace
}  // namespace weir::log
