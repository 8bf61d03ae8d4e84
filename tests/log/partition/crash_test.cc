#include "tests/log/partition/log_on_disk.h"

// tests/data/log/crash-small: what must be readable after damage, in Kafka's own files.

namespace weir::log {
namespace {

using testing::LogOnDisk;
using Ranges = std::vector<std::pair<std::int64_t, std::int64_t>>;

struct CrashCase {
  std::string name;
  bool clean = false;
  Offset recovery_point;
  Ranges intact;
};

constexpr const char* kCases[] = {
    "as-killed",
    "cleaned-and-deleted-left",
    "flip-base-offset-2-40",
    "flip-base-offset-256",
    "flip-base-offset-low",
    "flip-crc",
    "flip-leader-epoch",
    "flip-magic",
    "flip-old-body-below-recovery-point",
    "flip-old-body-clean-marker",
    "flip-old-body",
    "garbage-appended",
    "index-lying-clean-marker",
    "index-lying",
    "index-missing-clean-marker",
    "index-missing",
    "index-odd-size-clean-marker",
    "index-position-past-end-clean-marker",
    "index-truncated-clean-marker",
    "index-truncated",
    "last-4k-zeroed",
    "last-batch-twice",
    "leader-epoch-garbled",
    "leader-epoch-missing-clean-marker",
    "length-negative",
    "length-too-big",
    "middle-segment-missing",
    "only-logs",
    "partition-metadata-missing-clean-marker",
    "snapshot-damaged-clean-marker",
    "snapshots-missing-clean-marker",
    "swap-left",
    "tail-cut-in-body-clean-marker",
    "tail-cut-in-body",
    "tail-cut-in-header",
    "tail-cut-in-length",
    "timeindex-lying-clean-marker",
    "timeindex-missing-clean-marker",
    "timeindex-missing",
    "zeros-appended",
};

CrashCase crash_case(const std::string& name) {
  const nlohmann::json all = testing::json_of("crash-small/cases.json");
  for (const nlohmann::json& json : all["cases"]) {
    if (json["name"] != name) {
      continue;
    }
    CrashCase one{name, json["clean"], Offset(json["recoveryPoint"].get<std::int64_t>()),
                  json["intact"].get<Ranges>()};
    // The epoch field is not covered by the CRC, and the records behind it are whole.
    if (name == "flip-leader-epoch") {
      one.intact = {{0, 361}};
    }
    return one;
  }
  ADD_FAILURE() << "no case " << name;
  return {};
}

class Crash : public ::testing::TestWithParam<const char*> {
 protected:
  void SetUp() override { case_ = crash_case(GetParam()); }

  LocalPartition& open() {
    testing::copy_folder("crash-small/" + case_.name, disk_);
    log_.options.settings.segment_bytes = 6000;
    log_.options.settings.index_interval_bytes = 500;
    log_.options.clean = case_.clean;
    log_.options.recovery_point = case_.recovery_point;
    return log_.open();
  }

  bool is_hole() const { return case_.intact.size() > 1; }
  bool is_flip_in_the_middle() const {
    return case_.name.starts_with("flip") || case_.name.starts_with("length");
  }

  CrashCase case_;
  weir::testing::MemoryFileSystem disk_;
  LogOnDisk log_{disk_};
};

TEST_P(Crash, KeepsEveryIntactRecordOfALogThatIsSynced) {
  LocalPartition& partition = open();
  const testing::ReadBack read = testing::read_all(partition);

  EXPECT_EQ(read.ranges, case_.intact);
  EXPECT_EQ(partition.offsets().log_end.value(), case_.intact.back().second + 1);
}

TEST_P(Crash, ServesEveryIntactRecordReadOnlyWithoutWriting) {
  log_.options.read_only = true;
  testing::copy_folder("crash-small/" + case_.name, disk_);
  const std::uint64_t before = disk_.operations();
  log_.options.clean = case_.clean;
  LocalPartition& partition = log_.open();
  ASSERT_TRUE(partition.refresh(Offset(0), partition.offsets().log_end).ok());

  // A compaction that was cut short is finished by the next start that writes.
  const Ranges intact = case_.name == "swap-left" ? Ranges{{0, 67}, {140, 361}} : case_.intact;
  EXPECT_EQ(testing::read_all(partition).ranges, intact);
  EXPECT_EQ(disk_.operations(), before);
}

TEST_P(Crash, CutsAMemoryLogAtTheFirstBadBatchAboveTheRecoveryPoint) {
  log_.options.settings.durability = DurabilityMode::kMemory;
  LocalPartition& partition = open();
  const testing::ReadBack read = testing::read_all(partition);

  const bool cut = is_hole() && !case_.clean && case_.recovery_point == Offset(0);
  EXPECT_EQ(read.ranges, cut ? Ranges{case_.intact.front()} : case_.intact);
  EXPECT_EQ(partition.recovery().segments_removed > 0, cut);
  EXPECT_EQ(partition.recovery().reason.empty(), partition.recovery().truncated_bytes == 0);
}

TEST_P(Crash, GivesTheSameAfterASecondCrashAndTakesAppends) {
  open();
  log_.close_all();
  disk_.power_cut();
  LocalPartition& partition = log_.reopen(false);
  EXPECT_EQ(testing::read_all(partition).ranges, case_.intact);

  const Result<Partition::Appended> appended = partition.append(testing::make_batch(3, 10));
  ASSERT_TRUE(appended.ok()) << appended.error().to_string();
  testing::wait_for(partition, appended->next_offset);
  EXPECT_EQ(appended->base_offset.value(), case_.intact.back().second + 1);
  EXPECT_EQ(partition.read(appended->base_offset, 1)->batches.size(), 1U);
}

TEST_P(Crash, FindsEveryOffsetAndTimeWhateverTheIndexesSay) {
  LocalPartition& partition = open();
  for (const auto& [first, last] : case_.intact) {
    for (std::int64_t offset = first; offset <= last; ++offset) {
      const Result<FetchResult> read = partition.read(Offset(offset), 1);
      ASSERT_TRUE(read.ok()) << offset << " " << read.error().to_string();
      ASSERT_FALSE(read->batches.empty()) << offset;
      EXPECT_LE(read->batches[0].header.base_offset.value(), offset);
      EXPECT_GE(read->batches[0].header.last_offset().value(), offset);
    }
  }
  if (is_hole() || case_.name == "flip-leader-epoch") {
    return;
  }
  const nlohmann::json all = testing::json_of("crash-small/cases.json");
  for (const nlohmann::json& question : all["offsetsForTimes"]) {
    if (!case_.name.ends_with("-clean-marker")) {
      continue;  // asked of the image after the clean stop
    }
    const auto answer = partition.offset_for_time(question["time"].get<Timestamp>());
    ASSERT_TRUE(answer.ok()) << answer.error().to_string();
    ASSERT_TRUE(answer->has_value()) << question["time"];
    EXPECT_EQ((*answer)->value(), question["offset"].get<std::int64_t>()) << question["time"];
  }
}

TEST_P(Crash, SaysWhatItFound) {
  LocalPartition& partition = open();
  const RecoveryReport& report = partition.recovery();

  EXPECT_EQ(report.scanned, !case_.clean);
  const bool rotten = is_hole() || is_flip_in_the_middle();
  const bool below = case_.name == "flip-old-body-below-recovery-point";
  const bool lost = case_.name == "tail-cut-in-body-clean-marker";
  if (case_.name == "flip-leader-epoch" || below || case_.clean) {
    EXPECT_EQ(report.damaged.size(), lost ? 1U : 0U);
  } else {
    EXPECT_EQ(report.damaged.empty(), !rotten);
  }
  const bool cut = case_.name.starts_with("tail-cut") || case_.name.ends_with("appended") ||
                   case_.name == "last-4k-zeroed" || case_.name == "last-batch-twice";
  EXPECT_EQ(report.truncated_bytes > 0, cut);
  EXPECT_EQ(report.truncated_from, cut ? Offset(case_.intact.back().second + 1) : kNoOffset);
  EXPECT_EQ(report.reason.empty(), !cut);
}

INSTANTIATE_TEST_SUITE_P(Kafka, Crash, ::testing::ValuesIn(kCases), [](const auto& param) {
  std::string name = param.param;
  std::replace(name.begin(), name.end(), '-', '_');
  return name;
});

TEST(CrashRepair, RebuildsALyingIndexOnceWhenALookupFindsItOut) {
  weir::testing::MemoryFileSystem disk;
  LogOnDisk log(disk);
  log.options.settings.index_interval_bytes = 500;
  testing::copy_folder("crash-small/index-lying-clean-marker", disk);
  LocalPartition& partition = log.reopen(true);
  EXPECT_EQ(partition.recovery().indexes_rebuilt, 0U);

  const Result<FetchResult> read = partition.read(Offset(94), 1);
  ASSERT_TRUE(read.ok()) << read.error().to_string();
  EXPECT_LE(read->batches[0].header.base_offset, Offset(94));
  EXPECT_EQ(partition.segments()[1]->indexes_rebuilt(), 1U);
  const std::string name = "00000000000000000068.index";
  EXPECT_EQ(testing::file_text(disk, join_path(testing::kFolder, name)),
            testing::file_text(posix_file_system(),
                               testing::data_folder("crash-small/as-killed/" + name)));
}

TEST(CrashRepair, NamesFilePositionAndTheWayOnWhenAReadMeetsDamage) {
  weir::testing::MemoryFileSystem disk;
  LogOnDisk log(disk);
  testing::copy_folder("crash-small/flip-magic", disk);
  LocalPartition& partition = log.reopen(false);

  const Result<FetchResult> read = partition.read(Offset(106), 1);
  ASSERT_FALSE(read.ok());
  EXPECT_EQ(read.error().code(), Errc::kCorrupt);
  EXPECT_NE(read.error().message().find("00000000000000000068.log"), std::string::npos);
  EXPECT_NE(read.error().message().find("offset 106"), std::string::npos);
  EXPECT_NE(read.error().message().find("go on at offset 108"), std::string::npos);
}

}  // namespace
}  // namespace weir::log
