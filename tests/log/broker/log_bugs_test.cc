#include "tests/log/broker/directory_on_disk.h"
#include "tests/runtime/observe/capture.h"

#include <weir/log/log_verify.h>

#include <fmt/format.h>

#include <atomic>
#include <thread>

// What went wrong in other logs (reference R 4.1 and 4.4) and once in this one, a test each. The
// table of all rows is tests/log/README.md.

namespace weir::log {
namespace {

using testing::Directory;
using testing::kFolderOfLines;
using testing::kLines;
using testing::make_batch;
using testing::Ranges;
using weir::testing::LogCapture;
using weir::testing::ManualClock;
using weir::testing::MemoryFileSystem;
using Operation = MemoryFileSystem::Operation;
// With the unsynced bytes lost in many ways.
template <class Life>
void with_many_disks(const Life& life) {
  for (std::uint64_t seed = 1; seed <= 40 && !::testing::Test::HasFailure(); ++seed) {
    SCOPED_TRACE(fmt::format("disk {}", seed));
    const LogCapture quiet;
    Directory directory(seed);
    life(directory);
  }
}

// --- Reference R 4.1

// Row 6, KAFKA-7415.
TEST(LogBugs, ALeaderWithoutRecordsHasItsEpoch) {
  Directory directory;
  directory.open();
  directory.create();
  directory.send(3);
  ASSERT_TRUE(directory.partition().set_leader_epoch(LeaderEpoch(4)).ok());
  ASSERT_TRUE(directory.partition().set_leader_epoch(LeaderEpoch(6)).ok());

  EXPECT_EQ(directory.partition().epoch_end_offset(LeaderEpoch(0)), Offset(3));
  EXPECT_EQ(directory.partition().epoch_end_offset(LeaderEpoch(6)), Offset(3));
}

// Row 7, KAFKA-10706.
TEST(LogBugs, EpochsBehindTheEndOfARecoveredLogAreDropped) {
  with_many_disks([](Directory& directory) {
    directory.open();
    directory.create({{"weir.durability", "memory"}});
    directory.send(5);
    directory.kill();
    directory.open();
    directory.send(5);  // epoch 1
    directory.cut_power();
    directory.open();

    const Offset end = directory.log->partition(kLines).value()->offsets().log_end;
    directory.send(1);  // epoch 2
    Partition& partition = directory.partition();
    EXPECT_EQ(partition.epoch_end_offset(LeaderEpoch(2)), end.next());
    const Offset end_of_first = std::min(end, Offset(5));
    EXPECT_EQ(partition.epoch_end_offset(LeaderEpoch(0)).value_or(end_of_first), end_of_first);
    EXPECT_EQ(partition.epoch_end_offset(LeaderEpoch(1)).value_or(end), end);
  });
}

// Row 8, KAFKA-10432.
TEST(LogBugs, EpochZeroSurvivesARecovery) {
  with_many_disks([](Directory& directory) {
    directory.open();
    directory.create();
    directory.send(3);
    directory.cut_power();
    directory.open();
    directory.send(1);

    EXPECT_EQ(directory.partition().epoch_end_offset(LeaderEpoch(0)), Offset(3));
  });
}

// Row 15, KAFKA-9196.
TEST(LogBugs, ARollAtTheHighWatermarkExposesNothing) {
  Directory directory;
  directory.open();
  directory.create({{"segment.bytes", "200"}});  // a segment a batch
  directory.send(2);
  directory.disk.hold_submits(true);
  for (int i = 0; i < 3; ++i) {
    ASSERT_TRUE(directory.append(1).ok());
    const auto read = directory.partition().read(Offset(1), 10'000);
    ASSERT_TRUE(read.ok());
    EXPECT_EQ(read->next_offset, Offset(2));
    EXPECT_EQ(directory.partition().offsets().high_watermark, Offset(2));
  }
}

// Row 17, KAFKA-5634.
TEST(LogBugs, TheLogStartNeverPassesTheHighWatermark) {
  Directory directory;
  directory.open();
  directory.create();
  directory.send(2);
  directory.disk.hold_submits(true);
  ASSERT_TRUE(directory.append(3).ok());

  EXPECT_EQ(directory.log->delete_records(kLines, Offset(4)).error().code(),
            Errc::kOffsetOutOfRange);
  EXPECT_TRUE(directory.log->delete_records(kLines, kNoOffset).ok());
  EXPECT_EQ(directory.partition().offsets().log_start, Offset(2));
}

// Row 19, KAFKA-7866.
TEST(LogBugs, AnIndexThatCannotBeWrittenGivesNoOffsetTwice) {
  const LogCapture quiet;
  Directory directory;
  directory.open();
  directory.create({{"segment.bytes", "400"}, {"index.interval.bytes", "10"}});
  directory.disk.set_fault([](Operation operation, const std::string& path) {
    const bool index = path.ends_with(".index") || path.ends_with(".timeindex");
    return index && operation != Operation::kRead ? Status(Error(Errc::kIo, "EIO")) : Status();
  });
  for (int i = 0; i < 20; ++i) {
    const auto appended = directory.append(2);
    ASSERT_TRUE(appended.ok()) << appended.error().to_string();
    EXPECT_EQ(appended->base_offset, Offset(2 * i));
  }
  directory.disk.set_fault({});
  directory.kill();
  directory.open();

  EXPECT_EQ(directory.ranges(), (Ranges{{0, 39}}));
}

// Row 21, KAFKA-3968.
TEST(LogBugs, SegmentNameIsNotLostWithoutADirectorySync) {
  with_many_disks([](Directory& directory) {
    directory.open();
    directory.create({{"segment.bytes", "300"}});
    directory.send(20);
    ASSERT_TRUE(directory.log->checkpoint().ok());  // from now on the files alone have them
    directory.send(20);
    directory.cut_power();
    directory.open();

    EXPECT_TRUE(directory.recovered_without_damage());
    EXPECT_EQ(directory.ranges(), (Ranges{{0, 39}}));
  });
}

// Row 23, KAFKA-16541; and every other file of a partition that is written without a sync.
TEST(LogBugs, SideFilesThatAPowerCutToreAreWholeAfterACleanClose) {
  with_many_disks([](Directory& directory) {
    directory.open();
    directory.create({{"segment.bytes", "300"}, {"index.interval.bytes", "10"}});
    directory.send(5);
    directory.kill();
    directory.open();
    directory.send(5);
    ASSERT_TRUE(directory.log->checkpoint().ok());
    directory.send(5);
    directory.cut_power();
    directory.open();
    directory.kill();
    directory.open();
    directory.close();
    directory.cut_power();

    std::string findings;
    const auto verified =
        verify_log(directory.disk, "data", [&findings](const VerifyFinding& finding) {
          findings += finding.file + ": " + finding.what + "\n";
        });
    EXPECT_TRUE(verified.ok());
    EXPECT_EQ(findings, "");
    directory.open();
    EXPECT_EQ(directory.ranges(), (Ranges{{0, 14}}));
  });
}

// Row 24, KAFKA-15046.
TEST(LogBugs, ADiskThatStallsInASyncStopsNoAppendAndNoRead) {
  Directory directory;
  directory.open();
  directory.create();
  directory.send(3);
  ASSERT_TRUE(directory.log->checkpoint().ok());
  directory.send(1);
  std::atomic<bool> stalls{false};
  std::atomic<bool> go_on{false};
  directory.disk.set_fault([&](Operation operation, const std::string& path) {
    if (operation == Operation::kSync && path.starts_with(kFolderOfLines)) {
      stalls = true;
      stalls.notify_all();
      go_on.wait(false);
    }
    return Status();
  });
  std::thread checkpoint([&] { EXPECT_TRUE(directory.log->checkpoint().ok()); });
  stalls.wait(false);
  while (!stalls) {
    std::this_thread::yield();
  }

  directory.send(5);
  EXPECT_EQ(directory.ranges(), (Ranges{{0, 8}}));

  go_on = true;
  go_on.notify_all();
  checkpoint.join();
  directory.disk.set_fault({});
}

// Row 25, KAFKA-10471; row 77, RP#8e00a8a84d.
TEST(LogBugs, TheCleanMarkerIsGoneBeforeAnythingElseIsTouched) {
  Directory directory;
  directory.open();
  directory.create();
  directory.send(3);
  directory.close();
  const std::string marker = "data/log/.kafka_cleanshutdown";
  ASSERT_TRUE(path_exists(directory.disk, marker));
  std::atomic<bool> is_gone{false};
  std::atomic<int> early{0};
  directory.disk.set_fault([&](Operation operation, const std::string& path) {
    is_gone = is_gone || (operation == Operation::kRemove && path == marker);
    const bool writes = operation != Operation::kRead && operation != Operation::kSyncDirectory;
    const bool is_partition = path.starts_with("data/log/lines") || path.starts_with("data/log/__");
    early += writes && is_partition && !is_gone ? 1 : 0;
    return Status();
  });
  directory.open();
  directory.send(1);

  EXPECT_TRUE(is_gone);
  EXPECT_EQ(early, 0);
  directory.disk.set_fault({});
  directory.cut_power();
  directory.open();
  EXPECT_FALSE(directory.log->recovery().was_clean);
  EXPECT_EQ(directory.ranges(), (Ranges{{0, 3}}));
}

// Row 30, KAFKA-6975: and with the file lost, so that the write-ahead log must fill it again.
TEST(LogBugs, ALogStartInsideABatchLosesNothingBehindIt) {
  with_many_disks([](Directory& directory) {
    directory.open();
    directory.create();
    directory.send(3, 5);
    ASSERT_TRUE(directory.log->delete_records(kLines, Offset(2)).ok());
    directory.cut_power();
    directory.open();

    EXPECT_TRUE(directory.recovered_without_damage());
    EXPECT_EQ(directory.partition().offsets().log_start, Offset(2));
    EXPECT_EQ(directory.ranges(), (Ranges{{0, 14}}));  // whole batches
    EXPECT_TRUE(directory.partition().read(Offset(2), 1).ok());
    EXPECT_EQ(directory.partition().read(Offset(1), 1).error().code(), Errc::kOffsetOutOfRange);
  });
}

// --- Reference R 4.4

// Row 74, RP#3709f81080.
TEST(LogBugs, DeletingRecordsUpToTheEndUnderLoadGivesNoOffsetTwice) {
  Directory directory;
  directory.open();
  directory.create({{"segment.bytes", "500"}});
  constexpr int kBatches = 400;
  std::thread deleting([&] {
    while (directory.log->partition(kLines).value()->offsets().log_end < Offset(kBatches)) {
      const Status deleted = directory.log->delete_records(kLines, kNoOffset);
      EXPECT_TRUE(deleted.ok()) << deleted.error().to_string();
    }
  });
  for (int i = 0; i < kBatches; ++i) {
    const auto appended = directory.append(1);
    EXPECT_TRUE(appended.ok());
    EXPECT_EQ(appended->base_offset, Offset(i));
  }
  deleting.join();
  directory.cut_power();
  directory.open();

  const PartitionOffsets at = directory.partition().offsets();
  EXPECT_EQ(at.log_end, Offset(kBatches));
  EXPECT_LE(at.log_start, at.high_watermark);
}

// Row 79, gh:nats#7556: deletion needs positive proof.
TEST(LogBugs, DamagedMetadataDeletesNoTopic) {
  const LogCapture quiet;
  const std::string metadata = "data/log/__cluster_metadata-0/00000000000000000000.log";
  Directory whole;
  whole.open();
  whole.create();
  whole.send(3);
  ASSERT_TRUE(whole.log->checkpoint().ok());
  whole.kill();
  const std::string segment = join_path(kFolderOfLines, "00000000000000000000.log");
  const std::string before = testing::file_text(whole.disk, segment);
  const std::uint64_t size = whole.disk.info(metadata)->size;
  for (std::uint64_t position = 0; position < size; position += 7) {
    SCOPED_TRACE(position);
    Directory directory;
    const auto copy = whole.disk.clone(position);
    copy->flip_bit(metadata, position, 3);
    LogDirectoryOptions options;
    options.files = copy.get();
    options.clock = &directory.clock;
    options.seed = 7;
    options.wal = directory.wal;
    {
      const auto opened = LogDirectory::open("data", options);
      EXPECT_EQ(testing::file_text(*copy, segment), before);
    }
    EXPECT_EQ(testing::file_text(*copy, segment), before);
  }
}

// Found here: the next checkpoint forgot the frames of a partition that could not be opened.
TEST(LogBugs, APartitionThatCannotBeOpenedLosesNothingOfTheWriteAheadLog) {
  const TopicPartition other{"other", PartitionId(0)};
  const std::string obstacle = join_path(kFolderOfLines, "00000000000000000099.log");
  with_many_disks([&](Directory& directory) {
    directory.open();
    directory.create();
    ASSERT_TRUE(directory.log->create_topic({other.topic, 1, {}}).ok());
    directory.send(5);
    directory.cut_power();
    ASSERT_TRUE(directory.disk.create_directories(obstacle).ok());
    ASSERT_TRUE(directory.disk.sync_disk("data").ok());
    // Twice, with checkpoints, appends elsewhere, a crash and a close.
    for (int life = 0; life < 2; ++life) {
      directory.open();
      EXPECT_FALSE(directory.log->partition(kLines).ok());
      const auto appended = directory.log->partition_for_append(other).value()->append(
          make_batch(1, 50, directory.clock.now()));
      ASSERT_TRUE(appended.ok()) << appended.error().to_string();
      ASSERT_TRUE(directory.log->checkpoint().ok());
      if (life == 0) {
        directory.cut_power();
      } else {
        directory.close();
      }
    }
    ASSERT_TRUE(directory.disk.remove_directory(obstacle).ok());
    ASSERT_TRUE(directory.disk.sync_directory(kFolderOfLines).ok());
    directory.open();
    EXPECT_EQ(directory.ranges(), (Ranges{{0, 4}}));
    // Not forgotten before they are in their own files, and not taken for news afterwards.
    directory.cut_power();
    directory.open();
    directory.send(2);
    ASSERT_TRUE(directory.log->checkpoint().ok());
    EXPECT_TRUE(directory.disk.list("data/wal/unserved")->empty());
    directory.cut_power();
    directory.open();
    EXPECT_EQ(directory.ranges(), (Ranges{{0, 6}}));
    EXPECT_TRUE(directory.recovered_without_damage());
  });
}

TEST(LogBugs, ADamagedFileOfKeptBatchesIsReportedAndLeftAlone) {
  const LogCapture quiet;
  const std::string obstacle = join_path(kFolderOfLines, "00000000000000000099.log");
  Directory directory;
  directory.open();
  directory.create();
  directory.send(3);
  directory.kill();
  ASSERT_TRUE(directory.disk.create_directories(obstacle).ok());
  directory.open();
  directory.kill();
  const auto kept = directory.disk.list("data/wal/unserved");
  ASSERT_TRUE(kept.ok() && kept->size() == 1);
  const std::string path = join_path("data/wal/unserved", kept->front().name);
  const std::uint64_t size = directory.disk.info(path)->size;
  ASSERT_TRUE(directory.disk.remove_directory(obstacle).ok());
  for (std::uint64_t position = 0; position < size; ++position) {
    SCOPED_TRACE(position);
    Directory copy;
    const auto disk = directory.disk.clone(position);
    disk->flip_bit(path, position, 3);
    LogDirectoryOptions options;
    options.files = disk.get();
    options.clock = &copy.clock;
    options.seed = 7;
    options.wal = copy.wal;
    WalContents contents;
    ASSERT_TRUE(UnservedBatches(*disk, "data/wal/unserved").add_to(contents).ok());
    ASSERT_EQ(contents.damaged.size(), 1U);
    EXPECT_TRUE(contents.damaged.front().starts_with(path));
    const auto opened = LogDirectory::open("data", options);
    ASSERT_TRUE(opened.ok()) << opened.error().to_string();
    const auto partition = (*opened)->partition(kLines);
    ASSERT_TRUE(partition.ok()) << partition.error().to_string();
    EXPECT_EQ((*partition)->offsets().log_end, Offset(3));  // the page cache had them all
    ASSERT_TRUE((*opened)->checkpoint().ok());
    EXPECT_TRUE(path_exists(*disk, path));
  }
}

// Row 86, gh:nats#5382.
TEST(LogBugs, AFullDiskAndARestartLoseNoTopic) {
  const LogCapture quiet;
  Directory directory;
  directory.open();
  directory.create({{"segment.bytes", "2000"}});
  directory.send(10);
  directory.disk.set_capacity(0);
  bool is_full = false;
  for (int i = 0; i < 1000 && !is_full; ++i) {
    is_full = !directory.append(1, 1000).ok();
  }
  EXPECT_TRUE(is_full);
  const Offset durable = directory.partition().offsets().high_watermark;
  directory.kill();
  directory.try_open().ignore("the disk is full");
  directory.kill();
  directory.disk.set_capacity(UINT64_MAX);
  directory.open();

  ASSERT_TRUE(directory.log->describe_topic(kLines.topic).ok());
  EXPECT_GE(directory.partition().offsets().high_watermark, durable);
  EXPECT_EQ(directory.ranges().front().first, 0);
  directory.send(1);
}

// Row 102, braft PR#371.
TEST(LogBugs, WhatAClosePromisesSurvivesAPowerCut) {
  for (const char* durability : {"fsync", "memory"}) {
    with_many_disks([durability](Directory& directory) {
      directory.open();
      directory.create({{"segment.bytes", "300"}, {"weir.durability", durability}});
      directory.send(10);
      directory.close();
      directory.cut_power();
      directory.open();

      EXPECT_TRUE(directory.log->recovery().was_clean);
      EXPECT_EQ(directory.ranges(), (Ranges{{0, 9}}));
    });
  }
}

// --- Found here

// A checkpoint file knows topics by name.
TEST(LogBugs, ATopicMadeAgainDoesNotStartWhereItsNamesakeStood) {
  with_many_disks([](Directory& directory) {
    directory.open();
    directory.create();
    directory.send(10);
    ASSERT_TRUE(directory.log->delete_records(kLines, Offset(7)).ok());
    ASSERT_TRUE(directory.log->checkpoint().ok());
    directory.close();
    directory.open();
    ASSERT_TRUE(directory.log->delete_topic(kLines.topic).ok());
    directory.create();
    EXPECT_EQ(directory.partition().offsets().log_start, Offset(0));
    directory.send(5);
    directory.cut_power();
    directory.open();

    EXPECT_TRUE(directory.recovered_without_damage());
    EXPECT_EQ(directory.partition().offsets().log_start, Offset(0));
    EXPECT_EQ(directory.ranges(), (Ranges{{0, 4}}));
  });
}

// A consumer's commit is told from what took its records' place by its epoch.
TEST(LogBugs, AMemoryLogThatLostEverythingGoesOnInAnotherEpoch) {
  int empty = 0;
  with_many_disks([&empty](Directory& directory) {
    directory.open();
    directory.create({{"weir.durability", "memory"}});
    directory.send(3);
    directory.cut_power();
    directory.open();
    empty += directory.log->partition(kLines).value()->offsets().log_end == Offset(0) ? 1 : 0;
    const auto appended = directory.append(1);
    ASSERT_TRUE(appended.ok());

    EXPECT_GT(appended->leader_epoch, LeaderEpoch(0));
  });
  EXPECT_GT(empty, 0);
}

// Also row 96, gh:ClickHouse#102629. What is not cut durably stands behind the next batches again,
// after the next power cut.
TEST(LogBugs, WhatARecoveryCutDoesNotComeBackWithTheNextPowerCut) {
  const std::string segment = join_path(kFolderOfLines, "00000000000000000000.log");
  int cut = 0;
  for (const char* durability : {"fsync", "memory"}) {
    with_many_disks([&](Directory& directory) {
      directory.open();
      directory.create({{"weir.durability", durability}});
      directory.send(30, 1, 900);
      directory.cut_power();
      const Result<FileInfo> before = directory.disk.info(segment);
      directory.open();
      const Result<FileInfo> after = directory.disk.info(segment);
      cut += before.ok() && after.ok() && after->size < before->size ? 1 : 0;
      // What the write-ahead log has is not synced again.
      const std::uint64_t end = directory.recovered_end();
      const std::unique_ptr<MemoryFileSystem> copy = directory.disk.clone(3);
      copy->power_cut();
      const Result<FileInfo> again = copy->info(segment);

      EXPECT_TRUE(!again.ok() || again->size <= end) << again->size << " behind " << end;
    });
  }
  EXPECT_GT(cut, 0);
}

// A frame that a killed process had written, or a file it had made, is read and served by the next
// one: it must be durable then.
TEST(LogBugs, WhatAKilledProcessWroteIsDurableBeforeItIsServed) {
  for (std::uint64_t operation = 0; operation < 120; operation += 1) {
    SCOPED_TRACE(operation);
    const LogCapture quiet;
    Directory directory(operation);
    directory.open();
    directory.create();
    directory.disk.cut_power_at(operation);
    while (directory.append(2, 2000).ok()) {
    }
    directory.kill();
    directory.open();
    const Offset served = directory.partition().offsets().high_watermark;
    directory.send(4, 2, 2000);
    directory.cut_power();
    directory.open();

    EXPECT_TRUE(directory.recovered_without_damage());
    EXPECT_EQ(directory.partition().offsets().high_watermark, served.plus(8));
    ASSERT_FALSE(::testing::Test::HasFailure());
  }
}

// The same of the directory itself, and of every file of a first start.
TEST(LogBugs, AFirstStartThatWasCutShortLosesNothingOfTheNext) {
  for (std::uint64_t operation = 0; operation < 60; ++operation) {
    SCOPED_TRACE(operation);
    const LogCapture quiet;
    Directory directory(operation);
    directory.disk.cut_power_at(operation);
    directory.try_open().ignore("it may end on the way");
    directory.kill();
    directory.open();
    directory.create();
    directory.send(3);
    directory.cut_power();
    directory.open();

    EXPECT_TRUE(directory.recovered_without_damage());
    ASSERT_TRUE(directory.log->describe_topic(kLines.topic).ok());
    EXPECT_EQ(directory.ranges(), (Ranges{{0, 2}}));
  }
}

// The same of a deletion of records: the log start that was served once stays.
TEST(LogBugs, ALogStartOfAKilledProcessIsDurableBeforeItIsServed) {
  for (std::uint64_t operation = 0; operation < 20; ++operation) {
    SCOPED_TRACE(operation);
    const LogCapture quiet;
    Directory directory(operation);
    directory.open();
    directory.create();
    directory.send(5);
    directory.disk.cut_power_at(operation);
    directory.log->delete_records(kLines, Offset(3)).ignore("it may end on the way");
    directory.kill();
    directory.open();
    const Offset served = directory.partition().offsets().log_start;
    directory.cut_power();
    directory.open();

    EXPECT_EQ(directory.partition().offsets().log_start, served);
  }
}

// The epoch file may know of a deletion of records that the log start does not know of.
TEST(LogBugs, ADeletionOfRecordsThatWasCutShortLosesNoEpoch) {
  const LogCapture quiet;
  Directory directory;
  directory.open();
  directory.create();
  directory.send(3);
  directory.kill();
  directory.open();
  directory.send(3);  // epoch 1
  ASSERT_TRUE(directory.partition().advance_log_start(Offset(5)).ok());
  directory.send(1);  // writes the epochs
  directory.kill();
  directory.open();

  EXPECT_EQ(directory.partition().offsets().log_start, Offset(0));
  EXPECT_EQ(directory.partition().epoch_end_offset(LeaderEpoch(0)), Offset(3));
}

// fsync, then memory: the process ends when the change is durable and the records are not synced.
TEST(LogBugs, RecordsOfAnFsyncTopicStayDurableWhenItBecomesAMemoryTopic) {
  for (std::uint64_t operation = 0; operation < 12; ++operation) {
    SCOPED_TRACE(operation);
    const LogCapture quiet;
    Directory directory(operation);
    directory.open();
    directory.create();
    directory.send(10);
    directory.disk.cut_power_at(operation);
    directory.log->alter_topic(kLines.topic, {{"weir.durability", "memory"}}, {})
        .ignore("it may end on the way");
    directory.kill();
    directory.open();
    ASSERT_TRUE(directory.log->checkpoint().ok());
    directory.send(3);  // of the present durability
    directory.cut_power();
    directory.open();

    EXPECT_TRUE(directory.recovered_without_damage());
    EXPECT_GE(directory.partition().offsets().log_end, Offset(10));
  }
}

// A flush that failed is none: the write-ahead log must not forget what the file did not take.
TEST(LogBugs, AFailedSyncOfOnePartitionIsNotForgottenByTheNextCheckpoint) {
  const LogCapture quiet;
  Directory directory;
  directory.open();
  directory.create();
  directory.send(10);
  directory.disk.set_fault([](Operation operation, const std::string& path) {
    const bool fails = operation == Operation::kSync && path.ends_with("00000000000000000000.log");
    return fails && path.starts_with(kFolderOfLines) ? Status(Error(Errc::kIo, "EIO")) : Status();
  });
  EXPECT_FALSE(directory.log->alter_topic(kLines.topic, {{"weir.durability", "memory"}}, {}).ok());
  directory.disk.set_fault({});
  EXPECT_FALSE(directory.log->checkpoint().ok());
  directory.cut_power();
  directory.open();

  EXPECT_EQ(directory.ranges(), (Ranges{{0, 9}}));
}

}  // namespace
}  // namespace weir::log
