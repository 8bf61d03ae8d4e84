#include "log/broker/log_directory.h"
#include "log/client/embedded_source.h"
#include "log/partition/append_group.h"
#include "log/partition/await.h"
#include "log/segment/segment_names.h"
#include "tests/log/partition/producer_support.h"
#include "tests/runtime/observe/capture.h"
#include "tests/support/size_of_run.h"

#include <fmt/format.h>

#include <atomic>
#include <set>
#include <thread>

// Producers and transactions of a directory; what went wrong with them in other logs (reference
// R 4.1, 4.3, 4.4), a test each. The table of all rows is tests/log/README.md.

namespace weir::log {
namespace {

using testing::From;
using testing::kStart;
using testing::marker;
using testing::producer_batch;
using weir::testing::LogCapture;
using weir::testing::ManualClock;
using weir::testing::MemoryFileSystem;
using Operation = MemoryFileSystem::Operation;

const TopicPartition kLines{"lines", PartitionId(0)};
const TopicPartition kOther{"lines", PartitionId(1)};
constexpr const char* kFolderOfLines = "data/log/lines-0";

AppendOptions ending(std::int16_t version = 2) {
  AppendOptions options = AppendOrigin::kCoordinator;
  options.transaction_version = version;
  return options;
}

class Directory {
 public:
  explicit Directory(std::uint64_t seed = 1) : disk(MemoryFileSystem::Options{.seed = seed}) {}
  ~Directory() { end(); }
  Directory(const Directory&) = delete;
  Directory& operator=(const Directory&) = delete;

  MemoryFileSystem disk;
  ManualClock clock{kStart};
  std::unique_ptr<LogDirectory> log;

  void open() {
    LogDirectoryOptions options;
    options.files = &disk;
    options.clock = &clock;
    options.seed = 7;
    options.tail_cache_bytes = 0;
    options.offsets_partitions = 1;
    options.wal = {
        .file_bytes_min = 16U << 10U, .file_bytes_max = 64U << 10U, .total_bytes_max = 256U << 10U};
    Result<std::unique_ptr<LogDirectory>> opened = LogDirectory::open("data", options);
    ASSERT_TRUE(opened.ok()) << opened.error().to_string();
    log = *std::move(opened);
  }
  void create(TopicConfig config = {}) {
    const auto made = log->create_topic({kLines.topic, 2, std::move(config)});
    ASSERT_TRUE(made.ok()) << made.error().to_string();
  }
  void kill() {
    end();
    disk.process_crash();
  }
  void cut_power() {
    end();
    disk.power_cut();
  }
  void close() {
    const Status closed = log->close();
    EXPECT_TRUE(closed.ok()) << closed.error().to_string();
    log.reset();
  }
  std::shared_ptr<Partition> partition(const TopicPartition& name = kLines) {
    return log->partition_for_append(name).value();
  }
  Partition::Appended append(SharedBytes batch,
                             const AppendOptions& options = AppendOrigin::kBuilder,
                             const TopicPartition& name = kLines) {
    const auto appended = partition(name)->append(std::move(batch), options);
    EXPECT_TRUE(appended.ok()) << appended.error().to_string();
    if (!appended.ok()) {
      return {};
    }
    EXPECT_TRUE(
        await_high_watermark(partition(name), appended->next_offset, std::chrono::seconds(10))
            .ok());
    return *appended;
  }
  // Offsets that a reader gives.
  std::vector<std::int64_t> read(bool committed) {
    SourceOptions options;
    options.read_committed = committed;
    options.partition_bytes_max = 200;
    EmbeddedSource source(*log, options);
    EXPECT_TRUE(source.assign({kLines}).ok());
    EXPECT_TRUE(source.seek(0, log->partition(kLines).value()->offsets().log_start).ok());
    std::vector<std::int64_t> offsets;
    while (true) {
      const auto blocks = source.poll(Duration::zero());
      EXPECT_TRUE(blocks.ok());
      if (!blocks.ok() || blocks->empty()) {
        position = source.position(0);
        return offsets;
      }
      for (const RecordBlock& block : *blocks) {
        EXPECT_TRUE(block.status.ok()) << block.status.error().to_string();
        for (const RecordView& record : block.records) {
          offsets.push_back(record.offset.value());
        }
      }
    }
  }
  Offset position;  // of the last read

 private:
  void end() {
    disk.set_fault({});
    disk.cut_power_at(std::uint64_t{1} << 60U);
    disk.hold_submits(false);
    while (disk.run_submitted() > 0) {
    }
    log.reset();
  }
};

template <class Life>
void with_many_disks(const Life& life, std::uint64_t disks = 20) {
  const std::uint64_t most = weir::testing::rounds(disks, 20 * disks);
  for (std::uint64_t seed = 1; seed <= most && !::testing::Test::HasFailure(); ++seed) {
    SCOPED_TRACE(fmt::format("disk {}", seed));
    const LogCapture quiet;
    Directory directory(seed);
    life(directory);
  }
}

using Offsets = std::vector<std::int64_t>;

// --- Reading what was committed

TEST(ReadCommitted, LeavesAbortedAndUndecidedRecordsOut) {
  Directory directory;
  directory.open();
  directory.create({{"segment.bytes", "300"}});
  directory.append(producer_batch({1, 0, 0, true}, 2));                 // 0, 1: aborted
  directory.append(testing::make_batch(1, 5), AppendOrigin::kBuilder);  // 2
  directory.append(producer_batch({2, 0, 0, true}, 1));                 // 3: committed
  EXPECT_EQ(directory.read(true), Offsets{});
  directory.append(marker(ControlType::kAbort, 1, 1), ending());  // 4
  EXPECT_EQ(directory.read(true), Offsets{2});
  EXPECT_EQ(directory.position, Offset(3));
  directory.append(marker(ControlType::kCommit, 2, 1), ending());  // 5
  EXPECT_EQ(directory.read(true), (Offsets{2, 3}));
  EXPECT_EQ(directory.position, Offset(6));
  EXPECT_EQ(directory.read(false), (Offsets{0, 1, 2, 3}));
  directory.append(producer_batch({2, 1, 0, true}, 1));  // 6: open
  EXPECT_EQ(directory.partition()->offsets().last_stable, Offset(6));
  directory.close();
  directory.open();
  EXPECT_EQ(directory.read(true), (Offsets{2, 3}));
  EXPECT_EQ(directory.partition()->offsets().last_stable, Offset(6));
}

TEST(ReadCommitted, WakesAReaderWhenAMarkerMovesTheLastStableOffset) {
  Directory directory;
  directory.open();
  directory.create();
  directory.append(producer_batch({1, 0, 0, true}, 2));
  SourceOptions options;
  options.read_committed = true;
  EmbeddedSource source(*directory.log, options);
  ASSERT_TRUE(source.assign({kLines}).ok());
  ASSERT_TRUE(source.seek(0, Offset(0)).ok());
  EXPECT_TRUE(source.poll(Duration::zero())->empty());
  std::thread coordinator([&] { directory.append(marker(ControlType::kCommit, 1, 1), ending()); });
  const auto blocks = source.poll(std::chrono::seconds(30));
  coordinator.join();
  ASSERT_TRUE(blocks.ok());
  ASSERT_FALSE(blocks->empty());
  EXPECT_EQ(blocks->front().records.size(), 2U);
}

TEST(ReadCommitted, WorksBesideTheHolderAndWithoutOne) {
  Directory directory;
  directory.open();
  directory.create({{"segment.bytes", "300"}});
  const auto look = [&] {
    LogDirectoryOptions options;
    options.files = &directory.disk;
    options.clock = &directory.clock;
    options.read_only = true;
    return LogDirectory::open("data", options).value();
  };
  const auto read = [](LogDirectory& log) {
    SourceOptions options;
    options.read_committed = true;
    EmbeddedSource source(log, options);
    EXPECT_TRUE(source.assign({kLines}).ok());
    EXPECT_TRUE(source.seek(0, Offset(0)).ok());
    Offsets offsets;
    for (int idle = 0; idle < 3;) {
      const auto blocks = source.poll(Duration::zero()).value();
      idle += blocks.empty() ? 1 : 0;
      for (const RecordBlock& block : blocks) {
        EXPECT_TRUE(block.status.ok());
        for (const RecordView& record : block.records) {
          offsets.push_back(record.offset.value());
        }
      }
    }
    return offsets;
  };
  directory.append(producer_batch({1, 0, 0, true}, 2));
  directory.append(testing::make_batch(1, 5), AppendOrigin::kBuilder);
  const std::unique_ptr<LogDirectory> reader = look();
  EXPECT_EQ(read(*reader), Offsets{});
  directory.append(marker(ControlType::kAbort, 1, 1), ending());
  directory.append(producer_batch({1, 1, 0, true}, 1));
  EXPECT_EQ(read(*reader), Offsets{2});
  EXPECT_EQ(reader->partition(kLines).value()->offsets().last_stable, Offset(4));
  directory.append(marker(ControlType::kCommit, 1, 2), ending());
  EXPECT_EQ(read(*reader), (Offsets{2, 4}));
  directory.append(producer_batch({1, 2, 0, true}, 1));
  directory.close();
  const std::unique_ptr<LogDirectory> later = look();
  EXPECT_EQ(read(*later), (Offsets{2, 4}));
  EXPECT_EQ(later->partition(kLines).value()->offsets().last_stable, Offset(6));
}

// The name of the first .txnindex of a segment must be as durable as the recovery point.
TEST(ReadCommitted, LeavesOutWhatWasAbortedBetweenTwoCheckpoints) {
  with_many_disks([](Directory& directory) {
    directory.open();
    directory.create();
    directory.append(producer_batch({1, 0, 0, true}, 2));
    ASSERT_TRUE(directory.log->checkpoint().ok());
    directory.append(marker(ControlType::kAbort, 1, 1), ending());
    ASSERT_TRUE(directory.log->checkpoint().ok());
    directory.cut_power();
    directory.open();
    EXPECT_EQ(directory.read(true), Offsets{});
    EXPECT_EQ(directory.position, Offset(3));
  });
}

// --- Ids of producers

TEST(ProducerIds, AreNeverGivenTwice) {
  with_many_disks(
      [](Directory& directory) {
        std::set<std::int64_t> given;
        for (int life = 0; life < 6; ++life) {
          directory.open();
          for (int i = 0; i < 600 && life != 2; ++i) {
            const auto id = directory.log->next_producer_id();
            ASSERT_TRUE(id.ok()) << id.error().to_string();
            EXPECT_TRUE(given.insert(id->value()).second) << id->value();
          }
          if (life % 3 == 0) {
            directory.kill();
          } else if (life % 3 == 1) {
            directory.cut_power();
          } else {
            directory.close();
          }
        }
        EXPECT_EQ(*given.begin(), 0);
        EXPECT_LE(*given.rbegin(), 6000);
      },
      5);
}

// --- Groups of appends

TEST(AppendGroup, IsThereWholeOrNotAtAllAfterAPowerCut) {
  int whole = 0;
  for (std::uint64_t cut = 0; cut < 12; ++cut) {
    with_many_disks(
        [&](Directory& directory) {
          directory.open();
          directory.create();
          directory.append(producer_batch({1, 0, 0, true}, 1), AppendOrigin::kBuilder, kLines);
          directory.append(producer_batch({1, 0, 0, true}, 1), AppendOrigin::kBuilder, kOther);
          directory.disk.cut_power_at(cut);
          std::vector<GroupedAppend> group;
          group.push_back(
              {directory.partition(kLines), marker(ControlType::kCommit, 1, 1), ending()});
          group.push_back(
              {directory.partition(kOther), marker(ControlType::kCommit, 1, 1), ending()});
          const GroupAppended appended = append_group(std::move(group));
          bool durable = appended.failure.ok();
          for (const TopicPartition& name : {kLines, kOther}) {
            durable = durable && await_high_watermark(directory.partition(name), Offset(2),
                                                      std::chrono::seconds(10))
                                     .ok();
          }
          directory.cut_power();
          directory.open();
          const Offset first = directory.partition(kLines)->offsets().last_stable;
          const Offset second = directory.partition(kOther)->offsets().last_stable;
          EXPECT_EQ(first == Offset(2), second == Offset(2));
          EXPECT_TRUE(!durable || first == Offset(2));
          whole += first == Offset(2) ? 1 : 0;
        },
        4);
  }
  EXPECT_GT(whole, 0);
}

TEST(AppendGroup, StopsAtTheFirstThatIsRefused) {
  Directory directory;
  directory.open();
  directory.create();
  directory.append(producer_batch({1, 3, 0, true}, 1));
  std::vector<GroupedAppend> group;
  group.push_back(
      {directory.partition(kOther), producer_batch({1, 3, 0, true}, 1), AppendOrigin::kBuilder});
  group.push_back({directory.partition(kLines), marker(ControlType::kCommit, 1, 2), ending()});
  group.push_back({directory.partition(kOther), marker(ControlType::kCommit, 1, 4), ending()});
  const GroupAppended appended = append_group(std::move(group));
  EXPECT_EQ(appended.appended.size(), 1U);
  EXPECT_EQ(appended.failure.error().code(), Errc::kInvalidProducerEpoch);
  EXPECT_TRUE(
      await_high_watermark(directory.partition(kOther), Offset(1), std::chrono::seconds(10)).ok());
  EXPECT_EQ(directory.partition(kOther)->offsets().last_stable, Offset(0));
}

TEST(AppendGroup, MayHoldTwoOfOnePartition) {
  Directory directory;
  directory.open();
  directory.create();
  std::vector<GroupedAppend> group;
  group.push_back(
      {directory.partition(), producer_batch({1, 0, 0, true}, 1), AppendOrigin::kBuilder});
  group.push_back({directory.partition(), marker(ControlType::kAbort, 1, 1), ending()});
  const GroupAppended appended = append_group(std::move(group));
  ASSERT_TRUE(appended.failure.ok());
  EXPECT_EQ(appended.appended[1].next_offset, Offset(2));
  EXPECT_TRUE(
      await_high_watermark(directory.partition(), Offset(2), std::chrono::seconds(10)).ok());
  EXPECT_EQ(directory.read(true), Offsets{});
  EXPECT_EQ(directory.position, Offset(2));
}

// --- Bugs of other logs

// Row 14, KAFKA-9807: high watermark, last stable offset and batches of one answer fit each other
// while all of them move.
TEST(TransactionBugs, AFetchSeesOneHighWatermark) {
  Directory directory;
  directory.open();
  directory.create();
  const auto partition = directory.partition();
  std::atomic<bool> done{false};
  std::thread appender([&] {
    for (std::int16_t epoch = 0; epoch < 300; ++epoch) {
      EXPECT_TRUE(
          partition->append(producer_batch({1, epoch, 0, true}, 1), AppendOrigin::kBuilder).ok());
      const auto type = epoch % 2 == 0 ? ControlType::kAbort : ControlType::kCommit;
      EXPECT_TRUE(
          partition->append(marker(type, 1, static_cast<std::int16_t>(epoch + 1)), ending()).ok());
    }
    done = true;
  });
  while (!done) {
    const auto read = partition->read(Offset(0), 1U << 20U, FetchIsolation::kCommitted);
    ASSERT_TRUE(read.ok()) << read.error().to_string();
    EXPECT_LE(read->last_stable_offset, read->high_watermark);
    EXPECT_LE(read->next_offset, read->last_stable_offset);
    for (const FetchedBatch& batch : read->batches) {
      const bool aborted = std::any_of(read->aborted.begin(), read->aborted.end(),
                                       [&](const auto& one) { return one.covers(batch.header); });
      if (!batch.header.is_control()) {
        EXPECT_EQ(aborted, batch.header.producer_epoch.value() % 2 == 0);
      }
    }
  }
  appender.join();
}

// Row 22, KAFKA-9892.
TEST(TransactionBugs, ASnapshotThatAPowerCutToreCostsNothing) {
  with_many_disks([](Directory& directory) {
    directory.open();
    directory.create({{"segment.bytes", "300"}});
    for (int i = 0; i < 12; ++i) {
      directory.append(producer_batch({1, 0, i}, 1));
    }
    directory.cut_power();
    directory.open();
    for (int i = 7; i < 12; ++i) {
      EXPECT_EQ(directory.append(producer_batch({1, 0, i}, 1)).base_offset, Offset(i));
    }
    EXPECT_EQ(directory.partition()->offsets().log_end, Offset(12));
    directory.append(producer_batch({1, 0, 12}, 1));
  });
}

// Row 26, KAFKA-12964: the log is cut at a snapshot, goes on otherwise, and rolls there again.
TEST(TransactionBugs, ASnapshotOfWhatWasCutGivesWayToTheNewOne) {
  with_many_disks([](Directory& directory) {
    directory.open();
    directory.create({{"segment.bytes", "250"}, {"weir.durability", "memory"}});
    for (int i = 0; i < 9; ++i) {
      directory.append(producer_batch({1, 0, i}, 1));
    }
    directory.cut_power();
    directory.open();
    const std::int64_t kept = directory.partition()->offsets().log_end.value();
    if (const auto entries = directory.disk.list(kFolderOfLines); entries.ok()) {
      for (const DirectoryEntry& entry : *entries) {
        const auto at = parse_segment_file_name(entry.name, kSnapshotSuffix);
        EXPECT_TRUE(!at || at->value() <= kept) << entry.name;
      }
    }
    for (int i = 0; i < 9; ++i) {
      directory.append(producer_batch({2, 0, i}, 1));
    }
    directory.kill();
    directory.open();
    const ProducerState state = directory.partition()->producers();
    EXPECT_EQ(state.find(ProducerId(1)) == nullptr, kept == 0);
    EXPECT_EQ(state.find(ProducerId(2))->last_sequence(), 8);
    directory.close();
    const std::vector<DirectoryEntry> left = directory.disk.list(kFolderOfLines).value();
    for (const DirectoryEntry& entry : left) {
      const auto at = parse_segment_file_name(entry.name, kSnapshotSuffix);
      if (at) {
        const auto entries = parse_producer_snapshot(
            testing::file_text(directory.disk, join_path(kFolderOfLines, entry.name)));
        ASSERT_TRUE(entries.ok()) << entry.name;
        for (const ProducerEntry& one : *entries) {
          EXPECT_LT(one.last_offset, *at);
        }
      }
    }
  });
}

// Row 27, KAFKA-6683.
TEST(TransactionBugs, AnAppendThatFailsLeavesNoSequenceBehind) {
  const LogCapture quiet;
  Directory directory;
  directory.open();
  directory.create();
  directory.append(producer_batch({1, 0, 0}, 1));
  directory.disk.set_fault([](Operation operation, const std::string& path) {
    return operation == Operation::kWrite && path.ends_with(".log")
               ? Status(Error(Errc::kNoSpace, "full"))
               : Status();
  });
  const auto refused =
      directory.partition()->append(producer_batch({1, 0, 1, true}, 1), AppendOrigin::kBuilder);
  EXPECT_EQ(refused.error().code(), Errc::kNoSpace);
  directory.disk.set_fault({});
  EXPECT_EQ(directory.partition()->offsets().last_stable, Offset(1));
  EXPECT_EQ(directory.append(producer_batch({1, 0, 1, true}, 1)).base_offset, Offset(1));
}

// Row 29, KAFKA-7190: neither deleted records nor a crash behind it make it forget.
TEST(TransactionBugs, ProducersOutliveTheirRecords) {
  with_many_disks([](Directory& directory) {
    directory.open();
    directory.create({{"segment.bytes", "300"}});
    for (int i = 0; i < 8; ++i) {
      directory.append(producer_batch({1, 0, i}, 1));
    }
    directory.append(testing::make_batch(1, 200), AppendOrigin::kBuilder);
    ASSERT_TRUE(directory.log->delete_records(kLines, kNoOffset).ok());
    directory.cut_power();
    directory.open();
    EXPECT_EQ(directory.partition()->offsets().log_start, Offset(9));
    for (int i = 3; i < 8; ++i) {
      EXPECT_EQ(directory.append(producer_batch({1, 0, i}, 1)).base_offset, Offset(i));
    }
    EXPECT_EQ(directory.partition()
                  ->append(producer_batch({1, 0, 9}, 1), AppendOrigin::kBuilder)
                  .error()
                  .code(),
              Errc::kOutOfOrderSequence);
    directory.append(producer_batch({1, 0, 8}, 1));
  });
}

// Rows 64 and 65, redpanda#3039 and #3003.
TEST(TransactionBugs, ABatchThatIsSentAgainAfterACrashIsNotAppendedAgain) {
  for (std::uint64_t cut = 0; cut < 8; ++cut) {
    with_many_disks(
        [cut](Directory& directory) {
          directory.open();
          directory.create();
          for (int i = 0; i < 5; ++i) {
            directory.append(producer_batch({1, 0, i}, 1));
          }
          directory.disk.cut_power_at(cut);
          std::vector<Result<Partition::Appended>> sent;
          for (int i = 5; i < 8; ++i) {
            sent.push_back(directory.partition()->append(producer_batch({1, 0, i}, 1),
                                                         AppendOrigin::kBuilder));
          }
          directory.cut_power();
          directory.open();
          // No answer was known: all of them again.
          for (int i = 5; i < 8; ++i) {
            const auto again = directory.append(producer_batch({1, 0, i}, 1));
            EXPECT_EQ(again.base_offset, Offset(i));
          }
          EXPECT_EQ(directory.partition()->offsets().log_end, Offset(8));
        },
        4);
  }
}

// Rows 67, 75 and 76, gh:redpanda#6018, RP#166119f34c.
TEST(TransactionBugs, AMarkerCountsWhenItIsDurable) {
  Directory directory;
  directory.open();
  directory.create();
  directory.append(producer_batch({1, 0, 0, true}, 1));
  directory.disk.hold_submits(true);
  const auto appended = directory.partition()->append(marker(ControlType::kAbort, 1, 1), ending());
  ASSERT_TRUE(appended.ok());
  EXPECT_FALSE(directory.partition()->has_open_transaction(ProducerId(1), ProducerEpoch(0)));
  EXPECT_EQ(directory.partition()->offsets().log_end, Offset(2));
  EXPECT_EQ(directory.partition()->offsets().last_stable, Offset(0));
  EXPECT_TRUE(
      directory.partition()->read(Offset(0), 1000, FetchIsolation::kCommitted)->batches.empty());
  directory.disk.hold_submits(false);
  while (directory.disk.run_submitted() > 0) {
  }
  EXPECT_EQ(directory.partition()->offsets().last_stable, Offset(2));
  EXPECT_EQ(
      directory.partition()->read(Offset(0), 1000, FetchIsolation::kCommitted)->aborted.size(), 1U);
}

// Row 75, RP#abd771691f: a start has found what is open before anybody can ask.
TEST(TransactionBugs, TheLastStableOffsetIsThereBeforeAnybodyReads) {
  with_many_disks([](Directory& directory) {
    directory.open();
    directory.create({{"segment.bytes", "300"}});
    directory.append(producer_batch({1, 0, 0, true}, 1));
    for (int i = 0; i < 9; ++i) {
      directory.append(testing::make_batch(1, 40), AppendOrigin::kBuilder);
    }
    ASSERT_TRUE(directory.log->checkpoint().ok());
    for (int i = 0; i < 3; ++i) {
      directory.append(testing::make_batch(1, 40), AppendOrigin::kBuilder);
    }
    directory.cut_power();
    directory.open();
    EXPECT_EQ(directory.log->partition(kLines).value()->offsets().last_stable, Offset(0));
    directory.append(marker(ControlType::kAbort, 1, 1), ending());
    EXPECT_EQ(directory.read(true).size(), 12U);
  });
}

}  // namespace
}  // namespace weir::log
