#include "tests/log/partition/log_on_disk.h"

#include <weir/runtime/logger.h>

// The same short life of a log, with one operation after the other failing.

namespace weir::log {
namespace {

using testing::LogOnDisk;
using testing::make_batch;
using Operation = weir::testing::MemoryFileSystem::Operation;

constexpr int kBatches = 30;

class PartitionFault : public ::testing::Test {
 protected:
  void SetUp() override { set_log_level(LogLevel::kOff); }
  void TearDown() override { set_log_level(LogLevel::kInfo); }

  struct Disk {
    weir::testing::MemoryFileSystem files;
    LogOnDisk log{files};
    int count = 0;
    int fail_at = -1;
    Disk() {
      log.options.settings.segment_bytes = 700;
      log.options.settings.index_interval_bytes = 100;
      log.options.leader_epoch = LeaderEpoch(1);
      log.options.topic_id.bytes[3] = 9;
    }
    void fail(int at, Errc code) {
      fail_at = at;
      files.set_fault([this, code](Operation operation, const std::string& path) {
        if (operation == Operation::kRead || count++ != fail_at) {
          return Status();
        }
        return Status(Error(code, path + " fails"));
      });
    }
  };
};

TEST_F(PartitionFault, AFullDiskAtAnyOperationCostsNothing) {
  bool reached = true;
  for (int at = 0; reached; ++at) {
    SCOPED_TRACE(at);
    Disk disk;
    LocalPartition& partition = disk.log.open();
    disk.fail(at, Errc::kNoSpace);
    int refused = 0;
    bool lost = false;
    for (int i = 0; i < kBatches && !lost; ++i) {
      Result<Partition::Appended> appended = partition.append(make_batch(2, 50));
      if (!appended.ok() && appended.error().code() == Errc::kNoSpace) {
        ++refused;
        appended = partition.append(make_batch(2, 50));
      }
      if (!appended.ok()) {
        // A sync or a cut that fails is no full disk any more.
        EXPECT_EQ(appended.error().code(), Errc::kIo);
        lost = true;
        continue;
      }
      EXPECT_EQ(appended->base_offset, Offset(2 * i));
    }
    const Offset shown = partition.offsets().high_watermark;
    const bool closed = partition.close().ok();
    reached = disk.count > at;
    EXPECT_LE(refused, 1);
    disk.files.set_fault({});
    if (closed) {
      EXPECT_EQ(partition.offsets().high_watermark, Offset(2 * kBatches));
    }
    LocalPartition& again = disk.log.reopen(closed);
    EXPECT_GE(again.offsets().log_end, shown);
    EXPECT_EQ(testing::read_all(again).ranges.size(),
              again.offsets().log_end > Offset(0) ? 1U : 0U);
    EXPECT_TRUE(testing::read_all(again).errors.empty());
  }
}

TEST_F(PartitionFault, AnIoErrorAtAnyOperationNeverLosesWhatWasShown) {
  bool reached = true;
  int poisoned = 0;
  for (int at = 0; reached; ++at) {
    SCOPED_TRACE(at);
    Disk disk;
    LocalPartition& partition = disk.log.open();
    disk.fail(at, Errc::kIo);
    bool failed = false;
    for (int i = 0; i < kBatches; ++i) {
      const Result<Partition::Appended> appended = partition.append(make_batch(2, 50));
      EXPECT_FALSE(failed && appended.ok()) << "appends go on after an I/O error (KAFKA-10778)";
      if (!appended.ok()) {
        EXPECT_EQ(appended.error().code(), Errc::kIo);
        failed = true;
      }
    }
    const Offset shown = partition.offsets().high_watermark;
    const bool closed = partition.close().ok();
    EXPECT_FALSE(failed && closed);
    reached = disk.count > at;
    poisoned += failed ? 1 : 0;
    disk.files.set_fault({});
    disk.log.close_all();
    disk.files.power_cut();
    LocalPartition& again = disk.log.reopen(closed);
    EXPECT_GE(again.offsets().log_end, shown);
    EXPECT_TRUE(testing::read_all(again).errors.empty());
  }
  EXPECT_GT(poisoned, 50);
}

TEST_F(PartitionFault, APowerCutAtAnyOperationNeverLosesWhatWasShown) {
  bool reached = true;
  for (std::uint64_t at = 0; reached; ++at) {
    SCOPED_TRACE(at);
    Disk disk;
    LocalPartition& partition = disk.log.open();
    disk.files.cut_power_at(at);
    for (int i = 0; i < kBatches && partition.append(make_batch(2, 50)).ok(); ++i) {
    }
    const bool closed = partition.close().ok();
    const Offset shown = partition.offsets().high_watermark;
    reached = disk.files.power_is_off();
    disk.log.close_all();
    disk.files.power_cut();
    LocalPartition& again = disk.log.reopen(closed);
    EXPECT_GE(again.offsets().log_end, shown);
    EXPECT_TRUE(again.recovery().damaged.empty());
    const testing::ReadBack read = testing::read_all(again);
    EXPECT_TRUE(read.errors.empty());
    EXPECT_LE(read.ranges.size(), 1U);
  }
}

}  // namespace
}  // namespace weir::log
