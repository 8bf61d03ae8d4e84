#include "tests/log/compaction/compaction_support.h"
#include "tests/support/size_of_run.h"

#include <weir/runtime/logger.h>

// A pass that ends at every change of the disk: a power cut, a killed process, a full disk, an I/O
// error. What was committed is read as before, nothing comes back that was gone, and the next pass
// does what this one would have done.

namespace weir::log {
namespace {

using testing::batch_of;
using testing::kStart;
using testing::LogOnDisk;
using testing::PassResult;
using testing::SeenLog;
using testing::SeenRecord;
using testing::Table;
using Operation = weir::testing::MemoryFileSystem::Operation;

// Of a recovery's changes, each one in a full run.
const std::uint64_t kCutsApart = weir::testing::apart<std::uint64_t>(4);

constexpr const char* kSideCars = "data/wal/checksums/t-0";
constexpr std::int64_t kDeleteRetention = 1000;

void set_up(LogOnDisk& log) {
  PartitionSettings& settings = log.options.settings;
  settings.segment_bytes = 700;
  settings.index_interval_bytes = 100;
  settings.cleanup.compacts = true;
  settings.cleanup.deletes = false;
  settings.cleanup.min_cleanable_dirty_ratio = 0;
  settings.cleanup.delete_retention_ms = kDeleteRetention;
  log.options.leader_epoch = LeaderEpoch(1);
  log.options.topic_id.bytes[3] = 9;
  log.options.checksum_folder = kSideCars;
}

// One disk, to be copied: values and tombstones of a few keys, a committed and an aborted
// transaction, and two passes, so that the next one removes tombstones and markers and merges.
class Image {
 public:
  Image() {
    LogOnDisk log(disk);
    set_up(log);
    log.open();
    Timestamp now = kStart;
    for (int round = 0; round < 3; ++round) {
      fill(*log.shared(), round);
      if (round < 2) {
        const PassResult done =
            testing::run_pass(disk, log.shared(), testing::range_of(*log.shared(), clean_end), now);
        EXPECT_TRUE(done.status.ok());
        clean_end = done.clean_end;
        now += 10;
      }
    }
    before = testing::see(*log.shared());
    table = testing::table_of(before.committed);
    EXPECT_TRUE(log.shared()->close().ok());
    end = log.shared()->offsets().log_end;
    later = now + kDeleteRetention;
    log.close_all();
    disk.power_cut();
  }

  weir::testing::MemoryFileSystem disk;
  SeenLog before;
  Table table;
  Offset clean_end;
  Offset end;
  Timestamp later = 0;

 private:
  static void fill(Partition& log, int round) {
    const auto value = [round](int i) { return std::to_string(round * 100 + i) + " value"; };
    const auto append = [&log](SharedBytes batch, AppendOrigin origin = AppendOrigin::kBuilder) {
      const auto appended = log.append(std::move(batch), origin);
      ASSERT_TRUE(appended.ok()) << appended.error().to_string();
      testing::wait_for(log, appended->next_offset);
    };
    for (int i = 0; i < 18; ++i) {
      const std::string key = "key-" + std::to_string((i * 7 + round) % 6);
      if (i % 5 == 3) {
        append(batch_of({{key, std::nullopt}, {"once-" + std::to_string(round), value(i)}}));
      } else {
        append(batch_of({{key, value(i)}, {"other", value(i)}}, {}, Codec::kLz4));
      }
      if (i % 6 == 2) {
        const BatchBuilder::Producer producer{ProducerId(4), ProducerEpoch(0), round * 3 + i / 6,
                                              true};
        append(batch_of({{"in-transaction", value(i)}}, producer));
        append(testing::marker_of(i == 2 ? ControlType::kAbort : ControlType::kCommit, producer.id,
                                  producer.epoch, kStart),
               AppendOrigin::kCoordinator);
      }
    }
    if (round == 0) {
      append(batch_of({{"deleted", std::string("early")}}));
      append(batch_of({{"deleted", std::nullopt}}));
    }
  }
};

const Image& image() {
  static const Image one;
  return one;
}

class CompactionCrash : public ::testing::Test {
 protected:
  void SetUp() override { set_log_level(LogLevel::kOff); }
  void TearDown() override { set_log_level(LogLevel::kInfo); }

  struct Copy {
    std::unique_ptr<weir::testing::MemoryFileSystem> disk;
    LogOnDisk log;
    explicit Copy(std::uint64_t seed) : disk(image().disk.clone(seed)), log(*disk) {
      set_up(log);
      log.options.recovery_point = image().end;
      log.options.clean = true;
    }
    PassResult pass() {
      return testing::run_pass(*disk, log.shared(),
                               testing::range_of(*log.shared(), image().clean_end), image().later,
                               1U << 16U, 600);
    }
    bool restart(bool power_cut) {
      log.close_all();
      if (power_cut) {
        disk->power_cut();
      } else {
        disk->process_crash();
      }
      log.options.clean = false;
      return log.try_open().ok();
    }
  };

  // A log that the pass has or has not gone through.
  static void check(Partition& log) {
    EXPECT_TRUE(log.recovery().damaged.empty()) << log.recovery().damaged.front();
    EXPECT_EQ(log.recovery().truncated_bytes, 0U);
    EXPECT_EQ(log.offsets().log_end, image().end);
    const SeenLog seen = testing::see(log);
    EXPECT_EQ(testing::table_of(seen.committed), image().table);
    EXPECT_EQ(testing::see_committed(log), seen.committed);
    EXPECT_EQ(log.offsets().last_stable, image().end);
    // Nothing is here that was not there, or is another one.
    std::map<std::int64_t, SeenRecord> known;
    for (const SeenRecord& record : image().before.records) {
      known[record.offset] = record;
    }
    for (const SeenRecord& record : seen.records) {
      ASSERT_TRUE(known.contains(record.offset)) << record.offset;
      EXPECT_EQ(record, known[record.offset]);
    }
  }
  static std::vector<std::string> names(FileSystem& files) {
    std::vector<std::string> all;
    const auto entries = files.list(std::string(testing::kFolder));
    for (const DirectoryEntry& entry : *entries) {
      all.push_back(entry.name);
    }
    return all;
  }
  static void check_no_leftovers(FileSystem& files) {
    for (const std::string& name : names(files)) {
      EXPECT_FALSE(name.ends_with(".cleaned") || name.ends_with(".swap")) << name;
    }
  }
};

TEST_F(CompactionCrash, ThePassAloneRemovesTombstonesMarkersAndSegments) {
  Copy copy(1);
  Partition& log = copy.log.open();
  const std::size_t segments = log.segments().size();
  const PassResult done = copy.pass();
  ASSERT_TRUE(done.status.ok()) << done.status.error().to_string();
  EXPECT_GT(done.counts.tombstones_removed, 0U);
  EXPECT_GT(done.horizon, Offset(0));
  EXPECT_LT(log.segments().size(), segments);
  check(log);
  check_no_leftovers(*copy.disk);
  const SeenLog seen = testing::see(log);
  EXPECT_LT(seen.markers.size(), image().before.markers.size());
}

TEST_F(CompactionCrash, APowerCutAtAnyChangeOfTheDiskLosesNothingAndBringsNothingBack) {
  for (const bool power_cut : {true, false}) {
    bool reached = true;
    for (std::uint64_t at = 0; reached; ++at) {
      SCOPED_TRACE(fmt::format("{} at change {}", power_cut ? "power cut" : "kill", at));
      Copy copy(at * 2 + (power_cut ? 1 : 0));
      copy.log.open();
      copy.disk->cut_power_at(at);
      reached = !copy.pass().status.ok();
      copy.disk->cut_power_at(UINT64_MAX / 4);
      ASSERT_TRUE(copy.restart(power_cut));
      check(*copy.log.shared());
      check_no_leftovers(*copy.disk);
      ASSERT_TRUE(copy.pass().status.ok());
      check(*copy.log.shared());
      if (HasFailure()) {
        return;
      }
    }
  }
}

TEST_F(CompactionCrash, APowerCutInTheRecoveryOfAPowerCutToo) {
  bool reached = true;
  for (std::uint64_t at = 0; reached; ++at) {
    for (std::uint64_t again = at % kCutsApart; again < 12; again += kCutsApart) {
      SCOPED_TRACE(fmt::format("at change {}, then at {}", at, again));
      Copy copy(at * 100 + again);
      copy.log.open();
      copy.disk->cut_power_at(at);
      reached = !copy.pass().status.ok();
      copy.disk->cut_power_at(UINT64_MAX / 4);
      copy.log.close_all();
      copy.disk->power_cut();
      copy.disk->cut_power_at(again);
      copy.log.options.clean = false;
      const bool opened = copy.log.try_open().ok();
      copy.disk->cut_power_at(UINT64_MAX / 4);
      ASSERT_TRUE(copy.restart(true));
      check(*copy.log.shared());
      if (HasFailure()) {
        return;
      }
      if (opened) {
        break;  // the recovery has no more changes to cut
      }
    }
  }
}

TEST_F(CompactionCrash, AFullDiskOrAnIoErrorAtAnyOperationChangesNothingThatIsRead) {
  for (const Errc code : {Errc::kNoSpace, Errc::kIo}) {
    bool reached = true;
    for (int at = 0; reached; ++at) {
      SCOPED_TRACE(
          fmt::format("{} at operation {}", code == Errc::kNoSpace ? "full" : "error", at));
      Copy copy(static_cast<std::uint64_t>(at));
      Partition& log = copy.log.open();
      int count = 0;
      copy.disk->set_fault([&](Operation operation, const std::string& path) {
        if (operation == Operation::kRead || count++ != at) {
          return Status();
        }
        return Status(Error(code, path + " fails"));
      });
      const PassResult first = copy.pass();
      copy.disk->set_fault({});
      reached = count > at;
      if (log.health().ok()) {
        check(log);
        ASSERT_TRUE(copy.pass().status.ok());
        check(log);
      } else {
        EXPECT_FALSE(first.status.ok());
      }
      ASSERT_TRUE(copy.restart(false));
      check(*copy.log.shared());
      check_no_leftovers(*copy.disk);
      if (HasFailure()) {
        return;
      }
    }
  }
}

// KAFKA-12520: a start that finishes a swap has not to read the log again.
TEST_F(CompactionCrash, AStartThatFinishesASwapScansNoMoreThanAnyOther) {
  for (std::uint64_t at = 0;; ++at) {
    Copy copy(at);
    copy.log.open();
    copy.disk->cut_power_at(at);
    const bool done = copy.pass().status.ok();
    copy.disk->cut_power_at(UINT64_MAX / 4);
    ASSERT_TRUE(copy.restart(false));
    const RecoveryReport& report = copy.log.shared()->recovery();
    // The last segment alone.
    EXPECT_LE(report.scanned_bytes, 700U) << at;
    EXPECT_EQ(report.segments_removed, 0U);
    if (done) {
      break;
    }
  }
}

}  // namespace
}  // namespace weir::log
