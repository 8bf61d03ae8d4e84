#include "log/segment/segment_names.h"

#include <gtest/gtest.h>

namespace weir::log {
namespace {

TEST(SegmentNames, HaveTwentyDigits) {
  EXPECT_EQ(segment_file_name(Offset(36), kLogSuffix), "00000000000000000036.log");
  EXPECT_EQ(segment_file_name(Offset(INT64_MAX), kTimeIndexSuffix),
            "09223372036854775807.timeindex");
}

TEST(SegmentNames, OnlyLogFilesAreSegments) {
  EXPECT_EQ(parse_log_file_name("00000000000000000036.log"), Offset(36));
  for (const char* name : {"00000000000000000036.index", "00000000000000000036.log.deleted",
                           "36.log", "0000000000000000003x.log", "-0000000000000000036.log",
                           "99999999999999999999.log", "partition.metadata", ""}) {
    EXPECT_EQ(parse_log_file_name(name), std::nullopt) << name;
  }
}

}  // namespace
}  // namespace weir::log
