#include "log/record/control_record.h"

#include "tests/log/record/fixtures.h"

namespace weir::log {
namespace {

using testing::from_hex;

Result<ControlRecord> parse(const std::string& key, const std::string& value) {
  RecordView record;
  record.key = ByteView(key);
  record.value = ByteView(value);
  record.offset = Offset(7);
  return parse_control_record(record);
}

TEST(ParseControlRecord, ReadsMarkers) {
  const auto commit = parse(from_hex("00000001"), from_hex("000000000009"));
  ASSERT_TRUE(commit.ok());
  EXPECT_EQ(commit->type, ControlType::kCommit);
  EXPECT_EQ(commit->coordinator_epoch, 9);
  const auto abort = parse(from_hex("00000000"), from_hex("00007fffffff"));
  ASSERT_TRUE(abort.ok());
  EXPECT_EQ(abort->type, ControlType::kAbort);
  EXPECT_EQ(abort->coordinator_epoch, 2147483647);
}

TEST(ParseControlRecord, ReadsLaterVersionsAndTypes) {
  const auto later = parse(from_hex("00010001"), from_hex("00010000000905"));
  ASSERT_TRUE(later.ok());
  EXPECT_EQ(later->version, 1);
  EXPECT_EQ(later->coordinator_epoch, 9);
  const auto unknown = parse(from_hex("00000063"), "");
  ASSERT_TRUE(unknown.ok());
  EXPECT_EQ(static_cast<int>(unknown->type), 99);
  EXPECT_EQ(control_type_name(unknown->type), "UNKNOWN");
  EXPECT_EQ(unknown->coordinator_epoch, -1);
}

TEST(ParseControlRecord, RefusesWhatIsTooShortOrHasANegativeVersion) {
  for (const auto& [key, value] :
       std::vector<std::pair<std::string, std::string>>{{"", "000000000009"},
                                                        {"000000", "000000000009"},
                                                        {"ffff0001", "000000000009"},
                                                        {"00000001", "0000000000"},
                                                        {"00000001", "ffff00000009"}}) {
    const auto parsed = parse(from_hex(key), from_hex(value));
    ASSERT_FALSE(parsed.ok()) << key << ' ' << value;
    EXPECT_EQ(parsed.error().code(), Errc::kCorrupt);
    EXPECT_THAT(parsed.error().message(), ::testing::HasSubstr("offset 7"));
  }
  EXPECT_FALSE(parse_control_record(RecordView()).ok());
}

TEST(ControlTypeName, IsKafkas) {
  EXPECT_EQ(control_type_name(ControlType::kAbort), "ABORT");
  EXPECT_EQ(control_type_name(ControlType::kCommit), "COMMIT");
  EXPECT_EQ(control_type_name(ControlType::kLeaderChange), "LEADER_CHANGE");
  EXPECT_EQ(control_type_name(ControlType::kSnapshotHeader), "SNAPSHOT_HEADER");
  EXPECT_EQ(control_type_name(ControlType::kSnapshotFooter), "SNAPSHOT_FOOTER");
  EXPECT_EQ(control_type_name(ControlType::kKRaftVersion), "KRAFT_VERSION");
  EXPECT_EQ(control_type_name(ControlType::kKRaftVoters), "KRAFT_VOTERS");
}

}  // namespace
}  // namespace weir::log
