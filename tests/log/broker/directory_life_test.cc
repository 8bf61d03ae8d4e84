#include "tests/log/broker/directory_on_disk.h"
#include "tests/runtime/observe/capture.h"

#include <fmt/format.h>

#include <functional>
#include <set>

// What meets in the life of a directory: deletions beside creations, appends beside the close,
// changes of topics without an answer, a process without descriptors.

namespace weir::log {
namespace {

using testing::Directory;
using testing::kFolderOfLines;
using testing::kLines;
using testing::make_batch;
using testing::Ranges;
using weir::testing::LogCapture;
using weir::testing::MemoryFileSystem;
using Operation = MemoryFileSystem::Operation;

// --- Deletion

TEST(DirectoryLife, ATopicMadeAgainKeepsItsFilesWhileThoseOfItsNamesakeAreRemoved) {
  const LogCapture quiet;
  Directory directory;
  directory.open();
  directory.create();
  directory.send(3);
  bool made = false;
  directory.disk.set_fault([&](Operation operation, const std::string& path) {
    if (operation == Operation::kRemove && path.find("-delete/") != std::string::npos && !made) {
      made = true;
      directory.create();
      directory.send(2, 1, 50, 'n');
    }
    return Status();
  });
  ASSERT_TRUE(directory.log->delete_topic(kLines.topic).ok());
  directory.disk.set_fault(nullptr);
  ASSERT_TRUE(made);
  EXPECT_EQ(directory.ranges(), (Ranges{{0, 1}}));
  directory.cut_power();
  directory.open();
  EXPECT_EQ(directory.ranges(), (Ranges{{0, 1}}));
}

TEST(DirectoryLife, AFolderThatCouldNotBeRemovedDoesNotStandInTheWayOfANamesake) {
  const LogCapture quiet;
  Directory directory;
  directory.open();
  directory.create();
  directory.send(3);
  directory.disk.set_fault([](Operation operation, const std::string& path) {
    return operation == Operation::kRename && path.find("lines-0") != std::string::npos
               ? Status(Error(Errc::kIo, "rename " + path))
               : Status();
  });
  EXPECT_FALSE(directory.log->delete_topic(kLines.topic).ok());
  directory.disk.set_fault(nullptr);
  directory.create();
  EXPECT_FALSE(directory.log->partition(kLines).ok());  // it says whose folder that is
  directory.log->close().ignore("of a partition that cannot be opened");
  directory.log.reset();
  directory.open();
  directory.send(1);
  EXPECT_EQ(directory.ranges(), (Ranges{{0, 0}}));
}

// The write-ahead log knows topics by id: with one id they would get each other's records.
TEST(DirectoryLife, TopicsOfDifferentLivesHaveDifferentIdsWhateverTheSeed) {
  const LogCapture quiet;
  std::set<Uuid> ids;
  Directory directory;  // the same seed at every start
  directory.metadata_snapshot_bytes = 400;
  for (int life = 0; life < 10; ++life) {
    directory.open();
    for (int i = 0; i < 3; ++i) {
      const std::string name = fmt::format("t{}-{}", life, i);
      const auto made = directory.log->create_topic({name, 1, {}});
      ASSERT_TRUE(made.ok());
      EXPECT_TRUE(ids.insert(made->id).second) << name;
      if (i == 1) {
        ASSERT_TRUE(directory.log->delete_topic(name).ok());
      }
    }
    if (life % 2 == 0) {
      directory.cut_power();
    } else {
      directory.close();
    }
  }
}

// --- The close

TEST(DirectoryLife, NothingIsAcknowledgedBehindTheClose) {
  Directory directory;
  directory.open();
  directory.create();
  const TopicPartition other{"other", PartitionId(0)};
  ASSERT_TRUE(directory.log->create_topic({other.topic, 1, {}}).ok());
  directory.send(1);
  ASSERT_TRUE(directory.log->close().ok());
  EXPECT_EQ(directory.append(1).error().code(), Errc::kClosed);
  const auto never_opened = directory.log->partition_for_append(other);
  ASSERT_FALSE(never_opened.ok());
  EXPECT_EQ(never_opened.error().code(), Errc::kClosed);
  EXPECT_TRUE(directory.log->checkpoint().ok());
  EXPECT_TRUE(directory.log->close().ok());
}

TEST(DirectoryLife, ASecondCloseSaysWhatTheFirstOneSaid) {
  const LogCapture quiet;
  Directory directory;
  directory.open();
  directory.create();
  directory.send(1);
  directory.disk.set_fault([](Operation operation, const std::string& path) {
    return operation == Operation::kSync && path.ends_with(".log")
               ? Status(Error(Errc::kIo, "sync " + path))
               : Status();
  });
  EXPECT_FALSE(directory.log->close().ok());
  directory.disk.set_fault(nullptr);
  EXPECT_FALSE(directory.log->close().ok());
}

// Above 16 partitions the close syncs the disk once; until then nothing counts as flushed.
TEST(DirectoryLife, ACloseThatFailsAtItsSyncLosesNothing) {
  for (std::uint64_t seed = 1; seed <= 20; ++seed) {
    SCOPED_TRACE(seed);
    const LogCapture quiet;
    Directory directory(seed);
    directory.open();
    ASSERT_TRUE(directory.log->create_topic({kLines.topic, 20, {}}).ok());
    for (std::int32_t i = 0; i < 20; ++i) {
      const TopicPartition name{kLines.topic, PartitionId(i)};
      const auto partition = directory.log->partition_for_append(name).value();
      const auto appended = partition->append(make_batch(3, 100, directory.clock.now()));
      ASSERT_TRUE(appended.ok());
      ASSERT_TRUE(
          await_high_watermark(partition, appended->next_offset, std::chrono::seconds(10)).ok());
    }
    bool failed = false;
    directory.disk.set_fault([&failed](Operation operation, const std::string& path) {
      const bool fails = operation == Operation::kSync && path == "data/log";
      failed |= fails;
      return fails ? Status(Error(Errc::kIo, "sync the disk")) : Status();
    });
    EXPECT_FALSE(directory.log->close().ok());
    ASSERT_TRUE(failed);
    directory.disk.set_fault(nullptr);
    directory.cut_power();
    directory.open();
    for (std::int32_t i = 0; i < 20; ++i) {
      const auto partition = directory.log->partition({kLines.topic, PartitionId(i)}).value();
      EXPECT_EQ(testing::read_all(*partition).ranges, (Ranges{{0, 2}}));
    }
  }
}

// --- A change of topics that is not durable in time

class Undecided : public ::testing::Test {
 protected:
  Undecided() {
    directory.metadata_timeout = Duration(0);
    directory.open();
    directory.create({{"retention.ms", "1000"}});
    directory.send(3);
  }
  // `change` is appended, and the disk does not answer.
  void stall(const std::function<Status()>& change) {
    directory.disk.hold_submits(true);
    const Status status = change();
    ASSERT_FALSE(status.ok());
    EXPECT_EQ(status.error().code(), Errc::kTimedOut);
  }
  void answer() {
    directory.disk.hold_submits(false);
    while (directory.disk.run_submitted() > 0) {
    }
  }

  const LogCapture quiet;
  Directory directory;
};

TEST_F(Undecided, ADeletedTopicTakesNoMoreRecords) {
  const auto partition = directory.log->partition_for_append(kLines).value();
  stall([this] { return directory.log->delete_topic(kLines.topic); });
  // Whether it is deleted is unknown: nothing is acknowledged that may go with it.
  EXPECT_FALSE(partition->append(make_batch(1, 50, directory.clock.now())).ok());
  EXPECT_EQ(directory.append(1).error().code(), Errc::kTimedOut);
  EXPECT_EQ(directory.log->delete_topic(kLines.topic).error().code(), Errc::kTimedOut);
  answer();
  EXPECT_EQ(directory.log->delete_topic(kLines.topic).error().code(), Errc::kUnknownTopic);
  EXPECT_FALSE(path_exists(directory.disk, kFolderOfLines));
  directory.create();
  directory.send(1);
  directory.cut_power();
  directory.open();
  EXPECT_EQ(directory.ranges(), (Ranges{{0, 0}}));
}

TEST_F(Undecided, ADeletionTakesEffectWithTheNextCheckpoint) {
  stall([this] { return directory.log->delete_topic(kLines.topic); });
  answer();
  ASSERT_TRUE(directory.log->checkpoint().ok());
  EXPECT_TRUE(directory.log->list_topics().empty());
  EXPECT_FALSE(path_exists(directory.disk, kFolderOfLines));
}

TEST_F(Undecided, ATopicIsNotMadeTwice) {
  const TopicSpec spec{"other", 2, {}};
  stall([&] { return directory.log->create_topic(spec).status(); });
  EXPECT_EQ(directory.log->create_topic(spec).error().code(), Errc::kTimedOut);
  answer();
  EXPECT_EQ(directory.log->create_topic(spec).error().code(), Errc::kTopicExists);
  directory.kill();
  directory.open();
  EXPECT_EQ(directory.log->describe_topic("other")->partitions, 2);
}

TEST_F(Undecided, ChangedSettingsComeIntoForce) {
  stall([this] {
    return directory.log->alter_topic(kLines.topic, {{"max.message.bytes", "500"}}, {});
  });
  answer();
  ASSERT_TRUE(directory.log->checkpoint().ok());
  EXPECT_EQ(directory.partition().settings().max_message_bytes, 500);
}

TEST_F(Undecided, AGrownTopicHasItsPartitions) {
  stall([this] { return directory.log->grow_topic(kLines.topic, 3, OrderedGrowth::kRefuse); });
  answer();
  ASSERT_TRUE(directory.log->checkpoint().ok());
  EXPECT_EQ(directory.log->describe_topic(kLines.topic)->partitions, 3);
}

// --- Resources

// Every open fails for a while, wherever it begins: nothing is lost and nothing has to be
// restarted.
TEST(DirectoryLife, AProcessWithoutDescriptorsLosesNothingAndGoesOn) {
  for (int from = 0; from < 40; ++from) {
    SCOPED_TRACE(from);
    const LogCapture quiet;
    Directory directory;
    directory.wal.file_bytes_max = 32U << 10U;
    directory.open();
    directory.create({{"segment.bytes", "2000"}});
    directory.send(3);
    int opens = 0;
    directory.disk.set_fault([&](Operation operation, const std::string& path) {
      const bool opens_one =
          operation == Operation::kCreate || operation == Operation::kSyncDirectory;
      return opens_one && opens++ >= from ? Status(Error(Errc::kExhausted, "open " + path))
                                          : Status();
    });
    std::int64_t taken = 3;
    for (int i = 0; i < 40; ++i) {
      const auto appended = directory.append(1, 700);
      taken += appended.ok() ? 1 : 0;
      if (!appended.ok()) {
        ASSERT_TRUE(is_shortage(appended.error().code())) << appended.error().to_string();
      }
      if (i % 10 == 9) {
        const Status done = directory.log->checkpoint();
        ASSERT_TRUE(done.ok() || done.error().code() == Errc::kExhausted)
            << done.error().to_string();
      }
    }
    directory.disk.set_fault(nullptr);
    directory.send(1);
    EXPECT_EQ(directory.partition().offsets().high_watermark, Offset(taken + 1));
    ASSERT_TRUE(directory.log->checkpoint().ok());
    directory.cut_power();
    directory.open();
    EXPECT_EQ(directory.partition().offsets().log_end, Offset(taken + 1));
    EXPECT_TRUE(directory.recovered_without_damage());
  }
}

TEST(DirectoryLife, TheReserveOfAnEarlierProcessIsTakenOverOnAFullDisk) {
  const LogCapture quiet;
  Directory directory;
  directory.disk.set_capacity(16U << 20U);
  directory.open();
  directory.create();
  directory.send(3);
  directory.kill();
  const DiskSpace space = *directory.disk.disk_space("data");
  // All but a little, which the start and one append need.
  directory.disk.set_capacity(space.capacity_bytes - space.available_bytes + (96U << 10U));
  directory.open();
  directory.send(1);
}

TEST(DirectoryLife, DeletedTopicsGiveTheirTailCachesBack) {
  weir::testing::MemoryFileSystem disk;
  weir::testing::ManualClock clock{testing::kStart};
  LogDirectoryOptions options;
  options.files = &disk;
  options.clock = &clock;
  options.seed = 7;
  options.tail_caches_bytes_max = 64U << 10U;
  const auto log = LogDirectory::open("data", options).value();
  for (int i = 0; i < 20; ++i) {
    SCOPED_TRACE(i);
    const TopicPartition name{fmt::format("t{}", i), PartitionId(0)};
    ASSERT_TRUE(log->create_topic({name.topic, 1, {}}).ok());
    const auto partition = log->partition_for_append(name).value();
    const auto appended = partition->append(make_batch(1, 20'000, clock.now()));
    ASSERT_TRUE(appended.ok());
    ASSERT_TRUE(
        await_high_watermark(partition, appended->next_offset, std::chrono::seconds(10)).ok());
    int reads = 0;
    disk.set_fault([&reads](Operation operation, const std::string&) {
      reads += operation == Operation::kRead ? 1 : 0;
      return Status();
    });
    ASSERT_TRUE(partition->read(Offset(0), 1).ok());
    disk.set_fault(nullptr);
    EXPECT_EQ(reads, 0);  // its tail is in memory
    ASSERT_TRUE(log->delete_topic(name.topic).ok());
  }
}

// --- Damage of the write-ahead log

TEST(DirectoryLife, ADamagedFrameMakesNothingOfItsPartitionCountAsDurable) {
  for (std::uint64_t seed = 1; seed <= 20; ++seed) {
    SCOPED_TRACE(seed);
    const LogCapture quiet;
    Directory directory(seed);
    directory.open();
    directory.create();
    ASSERT_TRUE(directory.log->checkpoint().ok());
    directory.send(3, 10);
    directory.kill();
    // The frame of the first batch; those of the metadata log stand before it.
    bool found = false;
    const std::vector<DirectoryEntry> files = directory.disk.list("data/wal").value();
    for (const DirectoryEntry& file : files) {
      const std::string path = join_path("data/wal", file.name);
      const std::size_t at = file.name.ends_with(kWalSuffix)
                                 ? testing::file_text(directory.disk, path).find("vvvvvvvv")
                                 : std::string::npos;
      if (at != std::string::npos && !found) {
        found = true;
        directory.disk.flip_bit(path, at, 3);
      }
    }
    ASSERT_TRUE(found);
    directory.open();
    EXPECT_EQ(directory.ranges(), (Ranges{{0, 29}}));
    directory.cut_power();  // what was served must have been durable
    directory.open();
    EXPECT_EQ(directory.ranges(), (Ranges{{0, 29}}));
  }
}

// --- Many partitions

TEST(DirectoryLife, ATopicMayHaveAsManyPartitionsAsItsBoundSays) {
  Directory directory;
  directory.wal.file_bytes_min = 32U << 20U;
  directory.wal.file_bytes_max = 32U << 20U;
  directory.wal.total_bytes_max = 128U << 20U;
  directory.open();
  constexpr std::int32_t kMax = 100'000;
  const auto made = directory.log->create_topic({"many", kMax, {}});
  ASSERT_TRUE(made.ok()) << made.error().to_string();
  directory.kill();
  directory.open();
  EXPECT_EQ(directory.log->describe_topic("many")->partitions, kMax);
}

}  // namespace
}  // namespace weir::log
