#include "tests/log/dump/dump_support.h"
#include "tests/support/log_fixture.h"

#include <weir/log/embedded_log.h>

#include <gtest/gtest.h>

#include <algorithm>
#include <string>

namespace weir::log {
namespace {

using weir::testing::LogFixture;

const std::string kSegment = "data/log/lines-1/00000000000000000000.log";

const PartitionRecovery* find(const RecoveryResult& result, const TopicPartition& name) {
  const auto found = std::find_if(result.partitions.begin(), result.partitions.end(),
                                  [&](const PartitionRecovery& one) { return one.name == name; });
  return found == result.partitions.end() ? nullptr : &*found;
}

TEST(RecoveryResult, SaysThatACleanDirectoryNeededNothing) {
  LogFixture fixture;
  fixture.open();
  EXPECT_TRUE(fixture.log->recovery().was_clean) << "a new directory";
  fixture.create("lines", 2);
  fixture.close();

  fixture.open();

  EXPECT_TRUE(fixture.log->recovery().was_clean);
  EXPECT_TRUE(fixture.log->recovery().partitions.empty());
  fixture.close();
}

TEST(RecoveryResult, NamesEachPartitionAndWhatWasCut) {
  LogFixture fixture;
  fixture.open();
  fixture.create("lines", 2);
  fixture.send("lines", {"a", "b"}, 1);
  fixture.crash();
  const std::string whole = testing::get_file(*fixture.files, kSegment);
  testing::put_file(*fixture.files, kSegment, whole + "torn");

  fixture.open();

  const RecoveryResult& result = fixture.log->recovery();
  EXPECT_FALSE(result.was_clean);
  // lines-0 has no record, and so no folder.
  ASSERT_EQ(result.partitions.size(), 2U);
  EXPECT_EQ(result.partitions[0].name.topic, "__cluster_metadata");
  const PartitionRecovery* cut = find(result, {"lines", PartitionId(1)});
  ASSERT_NE(cut, nullptr);
  EXPECT_EQ(cut->scanned_bytes, whole.size() + 4);
  EXPECT_EQ(cut->cut_bytes, 4U);
  EXPECT_EQ(cut->cut_from, Offset(2));
  EXPECT_NE(cut->reason.find(kSegment), std::string::npos);
  EXPECT_TRUE(cut->damaged.empty());
  EXPECT_TRUE(cut->failure.ok());
  fixture.close();
}

TEST(RecoveryResult, NamesAPartitionThatIsNotServed) {
  LogFixture fixture;
  fixture.open();
  fixture.create("lines", 2);
  fixture.send("lines", {"a"}, 1);
  fixture.crash();
  testing::put_file(*fixture.files, "data/log/lines-1/partition.metadata",
                    "version: 0\ntopic_id: AAAAAAAAAAEAAAAAAAAAAg");

  fixture.open();

  const PartitionRecovery* failed = find(fixture.log->recovery(), {"lines", PartitionId(1)});
  ASSERT_NE(failed, nullptr);
  EXPECT_FALSE(failed->failure.ok());
  fixture.close();
}

}  // namespace
}  // namespace weir::log
