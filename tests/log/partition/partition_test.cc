#include "log/partition/watermarks.h"
#include "log/segment/segment_names.h"
#include "tests/log/partition/log_on_disk.h"

#include <weir/runtime/testing/memory_file_system.h>

#include <thread>

namespace weir::log {
namespace {

using testing::kFolder;
using testing::kStart;
using testing::LogOnDisk;
using testing::make_batch;
using Operation = weir::testing::MemoryFileSystem::Operation;

class PartitionTest : public ::testing::Test {
 protected:
  PartitionTest() {
    log_.options.settings.segment_bytes = 2000;
    log_.options.settings.index_interval_bytes = 200;
  }
  Offset append(Partition& partition, int records, std::size_t bytes = 30) {
    const Result<Partition::Appended> appended = partition.append(make_batch(records, bytes));
    EXPECT_TRUE(appended.ok()) << appended.error().to_string();
    return appended.ok() ? appended->next_offset : kNoOffset;
  }

  weir::testing::MemoryFileSystem disk_;
  LogOnDisk log_{disk_};
};

TEST_F(PartitionTest, MakesItsFolderAtTheFirstAppendOnly) {
  log_.options.topic_id = *Uuid::parse("5KRAvX5fRIaBl3L-ANf0Jg");
  log_.options.leader_epoch = LeaderEpoch(3);
  LocalPartition& partition = log_.open();
  EXPECT_EQ(partition.offsets().log_end, Offset(0));
  EXPECT_TRUE(partition.read(Offset(0), 100)->batches.empty());
  EXPECT_FALSE(path_exists(disk_, std::string(kFolder)));

  append(partition, 1);
  const auto names = disk_.list(std::string(kFolder));
  ASSERT_TRUE(names.ok());
  std::vector<std::string> found;
  for (const DirectoryEntry& entry : *names) {
    found.push_back(entry.name);
  }
  EXPECT_EQ(found, (std::vector<std::string>{"00000000000000000000.log", "leader-epoch-checkpoint",
                                             "partition.metadata"}));
  EXPECT_EQ(testing::file_text(disk_, join_path(kFolder, "leader-epoch-checkpoint")),
            "0\n1\n3 0\n");
  EXPECT_EQ(testing::file_text(disk_, join_path(kFolder, "partition.metadata")),
            "version: 0\ntopic_id: 5KRAvX5fRIaBl3L-ANf0Jg");
}

TEST_F(PartitionTest, ShowsAnFsyncRecordOnlyOnceItIsDurable) {
  LocalPartition& partition = log_.open();
  disk_.hold_submits(true);
  append(partition, 2);
  EXPECT_EQ(partition.offsets().log_end, Offset(2));
  EXPECT_EQ(partition.offsets().high_watermark, Offset(0));
  EXPECT_TRUE(partition.read(Offset(0), 1000)->batches.empty());
  EXPECT_EQ(partition.read(Offset(0), 1000, FetchIsolation::kLogEnd)->batches.size(), 1U);
  EXPECT_EQ(partition.recovery_point(), Offset(0));

  disk_.run_submitted();
  EXPECT_EQ(partition.offsets().high_watermark, Offset(2));
  EXPECT_EQ(partition.recovery_point(), Offset(2));
  EXPECT_EQ(partition.read(Offset(0), 1000)->batches.size(), 1U);
}

TEST_F(PartitionTest, ShowsAMemoryRecordAtOnceButMovesTheRecoveryPointBySyncsOnly) {
  log_.options.settings.durability = DurabilityMode::kMemory;
  LocalPartition& partition = log_.open();
  disk_.hold_submits(true);
  append(partition, 2);
  EXPECT_EQ(partition.offsets().high_watermark, Offset(2));
  EXPECT_EQ(partition.recovery_point(), Offset(0));
  EXPECT_EQ(disk_.run_submitted(), 0U);
  ASSERT_TRUE(partition.close().ok());
  EXPECT_EQ(partition.recovery_point(), Offset(2));
}

TEST_F(PartitionTest, WakesWaitersWhenTheHighWatermarkMoves) {
  LocalPartition& partition = log_.open();
  const auto waiter = std::make_shared<Notifier>();
  partition.add_waiter(waiter);
  disk_.hold_submits(true);
  const std::uint64_t before = waiter->generation();
  append(partition, 1);
  EXPECT_EQ(waiter->generation(), before);
  disk_.run_submitted();
  EXPECT_EQ(waiter->generation(), before + 1);
  partition.remove_waiter(waiter);
  append(partition, 1);
  disk_.run_submitted();
  EXPECT_EQ(waiter->generation(), before + 1);
}

TEST_F(PartitionTest, PublishesItsWatermarks) {
  WatermarkSlot slot{};
  log_.options.watermark = &slot;
  LocalPartition& partition = log_.open();
  append(partition, 3);
  EXPECT_EQ(slot.high_watermark.load(), 3);
  ASSERT_TRUE(partition.close().ok());
  log_.options.watermark = nullptr;
}

TEST_F(PartitionTest, GivesTheAppendedBufferToAReaderAtTheTail) {
  LocalPartition& partition = log_.open();
  SharedBytes batch = SharedBytes::copy_of(make_batch(5, 1500).view());
  log_.options.settings.segment_bytes = 100'000;
  ASSERT_TRUE(partition.set_settings(log_.options.settings).ok());
  const char* data = batch.data();
  ASSERT_TRUE(partition.append(std::move(batch)).ok());
  const Result<FetchResult> read = partition.read(Offset(2), 10);
  ASSERT_EQ(read->batches.size(), 1U);
  EXPECT_EQ(read->batches[0].bytes.bytes.data(), data);
  EXPECT_TRUE(read->batches[0].verified);
  EXPECT_EQ(read->next_offset, Offset(5));
}

TEST_F(PartitionTest, ReadsFromFilesWhatLeftTheTail) {
  log_.tail_cache_bytes = 0;
  LocalPartition& partition = log_.open();
  for (int i = 0; i < 50; ++i) {
    append(partition, 1 + i % 4, 40);
  }
  for (const std::size_t bytes_max : {std::size_t{1}, std::size_t{150}, std::size_t{10'000}}) {
    const testing::ReadBack read = testing::read_all(partition, Offset(0), bytes_max);
    EXPECT_EQ(read.batches.size(), 50U);
    EXPECT_EQ(read.ranges.size(), 1U);
    EXPECT_TRUE(read.errors.empty());
  }
  EXPECT_FALSE(partition.read(Offset(7), 100)->batches[0].verified);
}

TEST_F(PartitionTest, ReadsABatchThatIsLargerThanTheReader) {
  log_.tail_cache_bytes = 0;
  log_.options.settings.segment_bytes = 1 << 20;
  LocalPartition& partition = log_.open();
  append(partition, 1, 10);
  append(partition, 1, 300'000);
  append(partition, 1, 10);
  const Result<FetchResult> read = partition.read(Offset(1), 1000);
  ASSERT_TRUE(read.ok());
  ASSERT_EQ(read->batches.size(), 1U);
  EXPECT_GT(read->batches[0].bytes.bytes.size(), 300'000U);
  EXPECT_TRUE(verify_batch(read->batches[0].bytes.bytes).ok());
}

TEST_F(PartitionTest, AnswersOffsetsOutsideTheLogWithItsBounds) {
  LocalPartition& partition = log_.open();
  append(partition, 3);
  EXPECT_TRUE(partition.read(Offset(3), 10)->batches.empty());
  const Result<FetchResult> read = partition.read(Offset(4), 10);
  ASSERT_FALSE(read.ok());
  EXPECT_EQ(read.error().code(), Errc::kOffsetOutOfRange);
  EXPECT_NE(read.error().message().find("0 to 3"), std::string::npos);
  EXPECT_EQ(partition.read(Offset(-1), 10).error().code(), Errc::kOffsetOutOfRange);
}

TEST_F(PartitionTest, StampsOffsetEpochAndTimeOnly) {
  log_.options.settings.timestamp_type = TimestampType::kLogAppendTime;
  log_.options.leader_epoch = LeaderEpoch(9);
  log_.clock.set_now(kStart + 12'345);
  LocalPartition& partition = log_.open();
  append(partition, 2);
  const Result<Partition::Appended> appended = partition.append(make_batch(2, 30));
  ASSERT_TRUE(appended.ok());
  EXPECT_EQ(appended->base_offset, Offset(2));
  EXPECT_EQ(appended->leader_epoch, LeaderEpoch(9));
  EXPECT_EQ(appended->log_append_time, kStart + 12'345);
  const Result<FetchResult> read = partition.read(Offset(2), 10);
  const BatchHeader& header = read->batches[0].header;
  EXPECT_EQ(header.max_timestamp, kStart + 12'345);
  EXPECT_EQ(header.leader_epoch, LeaderEpoch(9));
  EXPECT_TRUE(verify_batch(read->batches[0].bytes.bytes).ok());
}

TEST_F(PartitionTest, RefusesBatchesThatWouldHurtAndKeepsNothingOfThem) {
  log_.options.settings.max_message_bytes = 1500;
  LocalPartition& partition = log_.open();
  append(partition, 1);
  SharedBytes flipped = make_batch(1, 30);
  flipped.data()[flipped.size() - 1] ^= 1;
  SharedBytes shared = make_batch(1, 30);
  const SharedBytes other = shared;
  BatchBuilder::Producer producer;

  EXPECT_EQ(partition.append(make_batch(1, 1500)).error().code(), Errc::kRecordTooLarge);
  EXPECT_EQ(partition.append(std::move(flipped)).error().code(), Errc::kCorrupt);
  EXPECT_EQ(partition.append(std::move(shared)).error().code(), Errc::kInvalidArgument);
  EXPECT_EQ(partition.append(SharedBytes::copy_of("short")).error().code(), Errc::kCorrupt);
  EXPECT_EQ(partition.append(SharedBytes()).error().code(), Errc::kInvalidArgument);
  EXPECT_EQ(partition.append(make_batch(1, 30, kStart + 4'000'000)).error().code(),
            Errc::kInvalidTimestamp);
  EXPECT_EQ(partition.append(build_control_batch("k", "v", kStart, producer)).error().code(),
            Errc::kInvalidRecord);
  EXPECT_TRUE(
      partition.append(build_control_batch("k", "v", kStart, producer), AppendOrigin::kCoordinator)
          .ok());
  EXPECT_EQ(partition.offsets().log_end, Offset(2));
  EXPECT_TRUE(partition.health().ok());
}

TEST_F(PartitionTest, RollsByTheTimeOfItsBatches) {
  log_.options.settings.segment_ms = 10'000;
  LocalPartition& partition = log_.open();
  ASSERT_TRUE(partition.append(make_batch(1, 10, kStart)).ok());
  ASSERT_TRUE(partition.append(make_batch(1, 10, kStart + 10'000)).ok());
  EXPECT_EQ(partition.segments().size(), 1U);
  ASSERT_TRUE(partition.append(make_batch(1, 10, kStart + 10'001)).ok());
  EXPECT_EQ(partition.segments().size(), 2U);
}

TEST_F(PartitionTest, WritesTrimmedFilesAtCloseAndTakesNoMoreAppends) {
  LocalPartition& partition = log_.open();
  for (int i = 0; i < 40; ++i) {
    append(partition, 1, 60);
  }
  ASSERT_TRUE(partition.close().ok());
  ASSERT_TRUE(partition.close().ok());
  EXPECT_EQ(partition.append(make_batch(1, 1)).error().code(), Errc::kClosed);
  EXPECT_EQ(partition.health().error().code(), Errc::kClosed);
  EXPECT_EQ(testing::read_all(partition).batches.size(), 40U);

  disk_.power_cut();
  LocalPartition& again = log_.reopen(true);
  EXPECT_EQ(again.offsets().high_watermark, Offset(40));
  EXPECT_FALSE(again.recovery().scanned);
  EXPECT_EQ(again.recovery().indexes_rebuilt, 0U);
  EXPECT_EQ(testing::read_all(again).batches.size(), 40U);
}

TEST_F(PartitionTest, WritesNothingWhenItIsOpenedCleanAndClosedUnused) {
  append(log_.open(), 5);
  ASSERT_TRUE(log_.shared()->close().ok());
  LocalPartition& partition = log_.reopen(true);
  const std::uint64_t before = disk_.operations();
  ASSERT_TRUE(partition.close().ok());
  EXPECT_EQ(disk_.operations(), before);
}

TEST_F(PartitionTest, RaisesItsEpochDurably) {
  log_.options.leader_epoch = LeaderEpoch(1);
  LocalPartition& partition = log_.open();
  append(partition, 4);
  ASSERT_TRUE(partition.set_leader_epoch(LeaderEpoch(3)).ok());
  EXPECT_EQ(partition.set_leader_epoch(LeaderEpoch(2)).error().code(), Errc::kInvalidArgument);
  append(partition, 2);
  EXPECT_EQ(partition.epoch_end_offset(LeaderEpoch(1)), Offset(4));
  EXPECT_EQ(partition.epoch_end_offset(LeaderEpoch(3)), Offset(6));
  EXPECT_EQ(partition.read(Offset(4), 1)->batches[0].header.leader_epoch, LeaderEpoch(3));
  EXPECT_EQ(testing::file_text(disk_, join_path(kFolder, "leader-epoch-checkpoint")),
            "0\n2\n1 0\n3 4\n");

  log_.close_all();
  disk_.power_cut();
  LocalPartition& again = log_.reopen(false);
  EXPECT_EQ(again.epoch_end_offset(LeaderEpoch(1)), Offset(4));
  EXPECT_EQ(again.offsets().leader_epoch, LeaderEpoch(3));
}

TEST_F(PartitionTest, RebuildsEpochsFromTheLogWhenTheirFileIsGone) {
  log_.options.leader_epoch = LeaderEpoch(0);
  LocalPartition& partition = log_.open();
  append(partition, 4);
  ASSERT_TRUE(partition.set_leader_epoch(LeaderEpoch(2)).ok());
  append(partition, 1);
  ASSERT_TRUE(partition.close().ok());
  ASSERT_TRUE(disk_.remove_file(join_path(kFolder, "leader-epoch-checkpoint")).ok());
  log_.options.leader_epoch = LeaderEpoch(2);
  for (const bool clean : {true, false}) {
    LocalPartition& again = log_.reopen(clean);
    EXPECT_EQ(again.epoch_end_offset(LeaderEpoch(0)), Offset(4)) << clean;
    EXPECT_EQ(again.offsets().leader_epoch, LeaderEpoch(2)) << clean;
  }
}

TEST_F(PartitionTest, RefusesAFolderOfAnotherTopic) {
  log_.options.topic_id = *Uuid::parse("5KRAvX5fRIaBl3L-ANf0Jg");
  append(log_.open(), 1);
  log_.options.topic_id = *Uuid::parse("AAAAAAAAAAAAAAAAAAAAAg");
  const auto opened = log_.try_open();
  ASSERT_FALSE(opened.ok());
  EXPECT_EQ(opened.error().code(), Errc::kCorrupt);
  EXPECT_NE(opened.error().message().find("5KRAvX5fRIaBl3L-ANf0Jg"), std::string::npos);
}

TEST_F(PartitionTest, LeavesForeignFilesAlone) {
  ASSERT_TRUE(disk_.create_directories(std::string(kFolder)).ok());
  testing::write_text(disk_, join_path(kFolder, "notes.txt"), "mine");
  testing::write_text(disk_, join_path(kFolder, "5.log.deleted"), "old");
  LocalPartition& partition = log_.reopen(false);
  append(partition, 2);
  ASSERT_TRUE(partition.close().ok());
  EXPECT_EQ(testing::file_text(disk_, join_path(kFolder, "notes.txt")), "mine");
  EXPECT_EQ(testing::file_text(disk_, join_path(kFolder, "5.log.deleted")), "old");
}

TEST_F(PartitionTest, RemovesWhatADeletionOrACompactionOfABrokerLeft) {
  append(log_.open(), 3);
  ASSERT_TRUE(log_.shared()->close().ok());
  for (const char* name :
       {"00000000000000000005.log.deleted", "00000000000000000005.index.deleted",
        "00000000000000000000.log.cleaned", "00000000000000000000.txnindex.cleaned",
        "00000000000000000002.log.swap", "00000000000000000002.snapshot.deleted"}) {
    testing::write_text(disk_, join_path(kFolder, name), "old");
  }
  LocalPartition& partition = log_.reopen(true);
  EXPECT_EQ(partition.offsets().log_end, Offset(3));
  const auto entries = disk_.list(std::string(kFolder));
  for (const DirectoryEntry& entry : *entries) {
    EXPECT_FALSE(entry.name.ends_with(".deleted") || entry.name.ends_with(".cleaned") ||
                 entry.name.ends_with(".swap"))
        << entry.name;
  }
}

TEST_F(PartitionTest, KeepsReadersAliveAfterAbandon) {
  log_.tail_cache_bytes = 0;
  LocalPartition& partition = log_.open();
  append(partition, 1);
  EXPECT_EQ(partition.read(Offset(0), 10)->batches.size(), 1U);
  disk_.hold_submits(true);
  append(partition, 1);
  partition.abandon();
  ASSERT_TRUE(remove_tree(disk_, std::string(kFolder)).ok());
  disk_.run_submitted();
  EXPECT_EQ(partition.offsets().high_watermark, Offset(1));
  EXPECT_EQ(partition.read(Offset(0), 10)->batches.size(), 1U);
  EXPECT_EQ(partition.append(make_batch(1, 1)).error().code(), Errc::kClosed);
}

TEST_F(PartitionTest, StartsAtTheLogStartWhenItsFilesAreGone) {
  log_.options.log_start = Offset(100);
  LocalPartition& partition = log_.reopen(false);
  EXPECT_EQ(partition.offsets().log_start, Offset(100));
  EXPECT_EQ(append(partition, 2), Offset(102));
  EXPECT_EQ(partition.segments()[0]->base_offset(), Offset(100));
  EXPECT_EQ(partition.read(Offset(99), 1).error().code(), Errc::kOffsetOutOfRange);
}

TEST_F(PartitionTest, RefusesMessageSetsFromBeforeKafka011) {
  // One message of magic 1: offset 0 | size 22 | crc | magic, attributes, timestamp | -1 | -1.
  const std::string message(
      "\0\0\0\0\0\0\0\0\0\0\0\x16\xcc\x2f\x79\xd9\x01\0\0\0\0\0\0\0\0\0\xff\xff\xff\xff\xff\xff\xff"
      "\xff",
      34);
  ASSERT_TRUE(disk_.create_directories(std::string(kFolder)).ok());
  testing::write_text(disk_, join_path(kFolder, "00000000000000000000.log"), message + message);
  for (const bool clean : {true, false}) {
    log_.options.clean = clean;
    const auto opened = log_.try_open();
    ASSERT_FALSE(opened.ok()) << clean;
    EXPECT_EQ(opened.error().code(), Errc::kUnsupported);
    EXPECT_NE(opened.error().message().find("magic 1"), std::string::npos);
  }
}

TEST_F(PartitionTest, FindsTimesOverBatchesThatRunBackAndForth) {
  log_.tail_cache_bytes = 0;
  LocalPartition& partition = log_.open();
  std::vector<Timestamp> times;
  for (int i = 0; i < 120; ++i) {
    const Timestamp first = kStart + (i * 7919) % 1000 * 100;
    ASSERT_TRUE(partition.append(make_batch(2, 30, first)).ok());
    times.push_back(first);
    times.push_back(first + 1);
  }
  for (Timestamp time = kStart - 100; time <= kStart + 100'200; time += 733) {
    const auto expected =
        std::find_if(times.begin(), times.end(), [&](Timestamp record) { return record >= time; });
    const auto answer = partition.offset_for_time(time);
    ASSERT_TRUE(answer.ok()) << answer.error().to_string();
    EXPECT_EQ(*answer, expected == times.end() ? std::nullopt
                                               : std::optional(Offset(expected - times.begin())));
  }
}

// --- Faults

TEST_F(PartitionTest, StaysUsableWhenTheDiskIsFullAndKeepsNothingOfTheBatch) {
  LocalPartition& partition = log_.open();
  append(partition, 2);
  disk_.set_fault([](Operation operation, const std::string&) {
    return operation == Operation::kWrite ? Status(Error(Errc::kNoSpace, "full")) : Status();
  });
  const Result<Partition::Appended> refused = partition.append(make_batch(1, 30));
  ASSERT_FALSE(refused.ok());
  EXPECT_EQ(refused.error().code(), Errc::kNoSpace);
  EXPECT_TRUE(partition.health().ok());
  disk_.set_fault({});
  EXPECT_EQ(append(partition, 1), Offset(3));
  EXPECT_EQ(testing::read_all(partition).batches.size(), 2U);
}

TEST_F(PartitionTest, CutsThePartOfABatchThatADiskThatFillsUpTook) {
  // Without preallocation a full disk shows in the middle of a write.
  log_.tail_cache_bytes = 0;
  log_.options.settings.segment_bytes = 1 << 20;
  LocalPartition& partition = log_.open();
  append(partition, 1, 100);
  disk_.set_capacity(disk_.disk_space("data")->capacity_bytes -
                     disk_.disk_space("data")->available_bytes);
  Result<Partition::Appended> appended = partition.append(make_batch(1, 3000));
  int written = 1;
  while (appended.ok()) {
    ++written;
    appended = partition.append(make_batch(1, 3000));
  }
  EXPECT_EQ(appended.error().code(), Errc::kNoSpace);
  EXPECT_TRUE(partition.health().ok());
  disk_.set_capacity(UINT64_MAX);
  append(partition, 1, 3000);
  EXPECT_EQ(testing::read_all(partition).batches.size(), static_cast<std::size_t>(written) + 1);
}

TEST_F(PartitionTest, RefusesAllAppendsAfterAFailedSync) {
  LocalPartition& partition = log_.open();
  append(partition, 2);
  const auto waiter = std::make_shared<Notifier>();
  partition.add_waiter(waiter);
  const std::uint64_t before = waiter->generation();
  disk_.set_fault([](Operation operation, const std::string&) {
    return operation == Operation::kSync ? Status(Error(Errc::kIo, "EIO")) : Status();
  });
  append(partition, 1);
  EXPECT_GT(waiter->generation(), before);
  disk_.set_fault({});
  const Result<Partition::Appended> refused = partition.append(make_batch(1, 30));
  ASSERT_FALSE(refused.ok());
  EXPECT_EQ(refused.error().code(), Errc::kIo);
  EXPECT_EQ(partition.offsets().high_watermark, Offset(2));
  EXPECT_EQ(partition.recovery_point(), Offset(2));
  EXPECT_EQ(partition.close().error().code(), Errc::kIo);
  partition.remove_waiter(waiter);
}

// --- Read only

TEST_F(PartitionTest, FollowsTheHolderReadOnlyUpToTheHighWatermark) {
  LocalPartition& holder = log_.open();
  weir::testing::ManualClock clock;
  Partition::OpenOptions options = log_.options;
  options.read_only = true;
  options.watermark = nullptr;
  const auto opened = Partition::open({disk_, clock, nullptr, 0}, options);
  ASSERT_TRUE(opened.ok());
  Partition& reader = **opened;
  EXPECT_EQ(reader.append(make_batch(1, 1)).error().code(), Errc::kReadOnly);

  for (int i = 0; i < 60; ++i) {
    disk_.hold_submits(i % 3 == 1);
    append(holder, 1 + i % 3, 50);
    ASSERT_TRUE(reader.refresh(Offset(0), holder.offsets().high_watermark).ok());
    EXPECT_EQ(reader.offsets().high_watermark, holder.offsets().high_watermark);
    const testing::ReadBack read = testing::read_all(reader);
    EXPECT_TRUE(read.errors.empty());
    ASSERT_EQ(read.batches, testing::read_all(holder).batches);
    disk_.run_submitted();
  }
  EXPECT_GT(holder.segments().size(), 3U);
}

TEST_F(PartitionTest, OpensAFolderThatIsNotThereReadOnly) {
  log_.options.read_only = true;
  LocalPartition& partition = log_.open();
  EXPECT_EQ(partition.offsets().log_end, Offset(0));
  ASSERT_TRUE(partition.refresh(Offset(0), Offset(0)).ok());
  EXPECT_TRUE(partition.read(Offset(0), 100)->batches.empty());
  ASSERT_TRUE(partition.close().ok());
  EXPECT_EQ(disk_.operations(), 0U);
}

// --- Threads

TEST_F(PartitionTest, ServesReadersBesideAnAppender) {
  log_.tail_cache_bytes = 8U << 10U;
  LocalPartition& partition = log_.open();
  constexpr std::int64_t kRecords = 3000;
  std::vector<std::thread> readers;
  for (int r = 0; r < 3; ++r) {
    readers.emplace_back([&partition, r] {
      const auto waiter = std::make_shared<Notifier>();
      partition.add_waiter(waiter);
      Offset next;
      while (next < Offset(kRecords)) {
        const std::uint64_t seen = waiter->generation();
        const Result<FetchResult> read = partition.read(next, r == 0 ? 200 : 4000);
        ASSERT_TRUE(read.ok()) << read.error().to_string();
        for (const FetchedBatch& batch : read->batches) {
          ASSERT_EQ(batch.header.base_offset, next);
          ASSERT_TRUE(verify_batch(batch.bytes.bytes).ok());
          next = batch.header.next_offset();
        }
        ASSERT_LE(next, read->high_watermark);
        if (read->batches.empty()) {
          waiter->wait(seen, std::chrono::milliseconds(100));
        }
      }
      const auto found = partition.offset_for_time(kStart);
      ASSERT_TRUE(found.ok()) << found.error().to_string();
      ASSERT_EQ(*found, Offset(0));
      partition.remove_waiter(waiter);
    });
  }
  for (std::int64_t i = 0; i < kRecords; i += 3) {
    append(partition, 3, 40);
  }
  for (std::thread& reader : readers) {
    reader.join();
  }
  ASSERT_TRUE(partition.close().ok());
}

}  // namespace
}  // namespace weir::log
