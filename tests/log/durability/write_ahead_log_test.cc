#include "log/durability/write_ahead_log.h"

#include "tests/log/durability/fake_log.h"
#include "tests/support/size_of_run.h"

#include <weir/runtime/rng.h>

#include <fmt/format.h>

#include <map>
#include <optional>

namespace weir::log {
namespace {

using testing::batch_at;
using testing::FakeLog;
using weir::testing::MemoryFileSystem;

constexpr std::size_t kFile = 64U << 10U;

// A write-ahead log on a disk in memory, with logs that append to it.
class World {
 public:
  explicit World(MemoryFileSystem& disk) : disk_(disk) {
    EXPECT_TRUE(disk.create_directories("wal").ok());
    EXPECT_TRUE(disk.create_directories("log").ok());
    EXPECT_TRUE(disk.sync_directory(".").ok());
    options.file_bytes_min = kFile;
    options.file_bytes_max = kFile;
    options.total_bytes_max = 8 * kFile;
  }

  WalOptions options;
  int recovery_points_written = 0;
  Status recovery_point_status;

  Result<WalContents> contents() { return read_wal(disk_, "wal"); }

  Status try_open(bool fresh = false) {
    wal_.reset();
    logs_.clear();
    Result<WalContents> contents = fresh ? read_wal_files(disk_, "wal") : read_wal(disk_, "wal");
    WEIR_TRY(contents.status());
    WEIR_TRY_ASSIGN(wal_,
                    WriteAheadLog::open(disk_, "wal", options, *std::move(contents), fresh, 7));
    wal_->attach({[this] {
                    ++recovery_points_written;
                    return recovery_point_status;
                  },
                  nullptr, nullptr, "log"});
    return Status();
  }
  void open(bool fresh = false) {
    const Status status = try_open(fresh);
    ASSERT_TRUE(status.ok()) << status.error().to_string();
  }
  WriteAheadLog& wal() { return *wal_; }
  void close() { wal_.reset(); }

  const std::shared_ptr<FakeLog>& log(int number) {
    std::shared_ptr<FakeLog>& log = logs_[number];
    if (log == nullptr) {
      DurableLog::Identity name;
      name.topic_id.bytes[15] = static_cast<std::uint8_t>(number);
      name.partition = PartitionId(number);
      log = std::make_shared<FakeLog>(disk_, fmt::format("log/{}", number), name);
    }
    return log;
  }
  WriteAheadLog::Entry entry(int number, std::int64_t base, std::size_t bytes, char fill = 'v') {
    log(number)->write(Offset(base + 1));
    return {log(number), batch_at(Offset(base), bytes, fill), Offset(base + 1)};
  }
  void append(int number, std::int64_t base, std::size_t bytes = 100, char fill = 'v') {
    WriteAheadLog::Entry one = entry(number, base, bytes, fill);
    wal_->add(one.log, one.batch, one.end);
    wal_->start();
  }

 private:
  MemoryFileSystem& disk_;
  std::unique_ptr<WriteAheadLog> wal_;
  std::map<int, std::shared_ptr<FakeLog>> logs_;
};

std::vector<std::int64_t> bases(WalContents& contents, int number) {
  Uuid id;
  id.bytes[15] = static_cast<std::uint8_t>(number);
  std::vector<std::int64_t> found;
  for (const WalBatch& batch : contents.tail(id, PartitionId(number)).batches) {
    found.push_back(batch.header.base_offset.value());
  }
  return found;
}

std::vector<std::int64_t> up_to(std::int64_t end) {
  std::vector<std::int64_t> all;
  for (std::int64_t i = 0; i < end; ++i) {
    all.push_back(i);
  }
  return all;
}

TEST(WriteAheadLog, KeepsWhatItCalledDurableThroughAPowerCut) {
  MemoryFileSystem disk;
  World world(disk);
  world.open();
  for (int i = 0; i < 50; ++i) {
    world.append(1, i);
    world.append(2, i, 3000, static_cast<char>('a' + i % 26));
  }
  EXPECT_EQ(world.log(1)->durable, Offset(50));
  EXPECT_EQ(world.log(2)->durable, Offset(50));

  disk.power_cut();

  Result<WalContents> contents = world.contents();
  ASSERT_TRUE(contents.ok());
  EXPECT_TRUE(contents->intact);
  EXPECT_EQ(bases(*contents, 1), up_to(50));
  Uuid id;
  id.bytes[15] = 2;
  const WalTail tail = contents->tail(id, PartitionId(2));
  ASSERT_EQ(tail.batches.size(), 50U);
  EXPECT_EQ(tail.batches[30].bytes.bytes, batch_at(Offset(30), 3000, 'e').view());
}

TEST(WriteAheadLog, ServesWhatComesDuringAWriteByTheNextOne) {
  MemoryFileSystem disk;
  World world(disk);
  world.open();
  disk.hold_submits(true);
  for (int i = 0; i < 20; ++i) {
    world.append(i % 5, i / 5);
  }
  EXPECT_EQ(world.log(0)->durable, Offset(0));
  EXPECT_EQ(disk.run_submitted(), 1U);
  EXPECT_EQ(world.log(0)->durable, Offset(1));
  EXPECT_EQ(world.log(1)->durable, Offset(0));
  EXPECT_EQ(disk.run_submitted(), 1U);
  for (int i = 0; i < 5; ++i) {
    EXPECT_EQ(world.log(i)->durable, Offset(4));
  }
  EXPECT_EQ(disk.run_submitted(), 0U);
  EXPECT_EQ(world.wal().metrics().writes, 2U);
  disk.hold_submits(false);
}

TEST(WriteAheadLog, GoesOnBehindWhatItReads) {
  MemoryFileSystem disk;
  World world(disk);
  for (int life = 0; life < 5; ++life) {
    world.open();
    for (int i = 0; i < 7; ++i) {
      world.append(1, life * 7 + i, 2000);
    }
    world.close();
    disk.power_cut();
  }
  Result<WalContents> contents = world.contents();
  ASSERT_TRUE(contents.ok());
  EXPECT_EQ(bases(*contents, 1), up_to(35));
}

TEST(WriteAheadLog, ForgetsEverythingInAFreshGeneration) {
  MemoryFileSystem disk;
  World world(disk);
  world.open();
  for (int i = 0; i < 60; ++i) {
    world.append(1, i, 2000);
  }
  world.open(true);
  world.append(1, 0, 10);
  disk.power_cut();
  Result<WalContents> contents = world.contents();
  ASSERT_TRUE(contents.ok());
  EXPECT_TRUE(contents->intact);
  EXPECT_EQ(bases(*contents, 1), up_to(1));
}

TEST(WriteAheadLog, SplitsABatchThatIsLargerThanAFrame) {
  MemoryFileSystem disk;
  World world(disk);
  world.open();
  world.append(1, 0, 10);
  world.append(1, 1, 3 * kFile, 'x');
  world.append(1, 2, 10);
  EXPECT_EQ(world.log(1)->durable, Offset(3));
  disk.power_cut();
  Result<WalContents> contents = world.contents();
  ASSERT_TRUE(contents.ok());
  Uuid id;
  id.bytes[15] = 1;
  const WalTail tail = contents->tail(id, PartitionId(1));
  ASSERT_EQ(tail.batches.size(), 3U);
  EXPECT_EQ(tail.batches[1].bytes.bytes, batch_at(Offset(1), 3 * kFile, 'x').view());
}

TEST(WriteAheadLog, ReusesItsFilesAfterCheckpointsAndStaysWithinItsBound) {
  MemoryFileSystem disk;
  World world(disk);
  world.open();
  constexpr int kBatches = 1000;  // 4 MB through 8 files of 64 KiB
  for (int i = 0; i < kBatches; ++i) {
    world.append(1, i, 3900);
  }
  EXPECT_EQ(world.log(1)->durable, Offset(kBatches));
  EXPECT_GT(world.recovery_points_written, 0);
  EXPECT_LE(world.wal().metrics().file_bytes, world.options.total_bytes_max);
  const Offset flushed = world.log(1)->flushed;
  disk.power_cut();
  Result<WalContents> contents = world.contents();
  ASSERT_TRUE(contents.ok());
  EXPECT_TRUE(contents->intact);
  const std::vector<std::int64_t> found = bases(*contents, 1);
  ASSERT_FALSE(found.empty());
  EXPECT_EQ(found.back(), kBatches - 1);
  EXPECT_LE(found.front(), flushed.value());
  EXPECT_EQ(static_cast<std::int64_t>(found.size()), kBatches - found.front());
}

TEST(WriteAheadLog, ForgetsOnlyWhatACheckpointFlushed) {
  MemoryFileSystem disk;
  World world(disk);
  world.open();
  for (int i = 0; i < 40; ++i) {
    world.append(1, i, 3900);
  }
  ASSERT_TRUE(world.wal().checkpoint().ok());
  EXPECT_EQ(world.log(1)->flushed, Offset(40));
  EXPECT_EQ(world.recovery_points_written, 1);
  for (int i = 40; i < 80; ++i) {
    world.append(1, i, 3900);
  }
  disk.power_cut();
  Result<WalContents> contents = world.contents();
  ASSERT_TRUE(contents.ok());
  const std::vector<std::int64_t> found = bases(*contents, 1);
  ASSERT_FALSE(found.empty());
  EXPECT_GT(found.front(), 0);
  EXPECT_LE(found.front(), 40);
  EXPECT_EQ(found.back(), 79);
}

TEST(WriteAheadLog, FlushesManyFilesByOneSyncOfTheDisk) {
  MemoryFileSystem disk;
  World world(disk);
  world.options.flush_by_file_max = 8;
  world.open();
  for (int i = 0; i < 9; ++i) {
    world.append(i, 0);
  }
  std::map<std::string, int> syncs;
  disk.set_fault([&syncs](MemoryFileSystem::Operation operation, const std::string& path) {
    syncs[path] += operation == MemoryFileSystem::Operation::kSync ? 1 : 0;
    return Status();
  });
  ASSERT_TRUE(world.wal().checkpoint().ok());
  EXPECT_EQ(syncs["log"], 1);
  EXPECT_EQ(syncs["log/3"], 0);
  world.append(1, 1);
  ASSERT_TRUE(world.wal().checkpoint().ok());
  EXPECT_EQ(syncs["log"], 1);
  EXPECT_EQ(syncs["log/1"], 1);
  disk.set_fault(nullptr);
}

TEST(WriteAheadLog, NeverRetriesAFailedWriteIntoSuccess) {
  MemoryFileSystem disk;
  World world(disk);
  world.open();
  world.append(1, 0);
  int failures = 1;
  disk.set_fault([&failures](MemoryFileSystem::Operation operation, const std::string& path) {
    const bool hit = operation == MemoryFileSystem::Operation::kWrite && path.ends_with(".wal");
    return hit && failures-- > 0 ? Status(Error(Errc::kIo, "write " + path)) : Status();
  });
  world.append(1, 1);
  world.append(2, 0);
  disk.set_fault(nullptr);
  EXPECT_EQ(world.log(1)->durable, Offset(1));
  EXPECT_NE(world.log(1)->lost, "");
  EXPECT_NE(world.log(2)->lost, "");
  EXPECT_EQ(world.wal().admit().error().code(), Errc::kIo);
  EXPECT_EQ(world.wal().checkpoint().error().code(), Errc::kIo);
  world.wal().drain();
}

TEST(WriteAheadLog, NeverRetriesAFailedFlushIntoSuccess) {
  MemoryFileSystem disk;
  World world(disk);
  world.open();
  world.append(1, 0);
  disk.set_fault([](MemoryFileSystem::Operation operation, const std::string& path) {
    const bool hit = operation == MemoryFileSystem::Operation::kSync && path == "log/1";
    return hit ? Status(Error(Errc::kIo, "sync " + path)) : Status();
  });
  EXPECT_EQ(world.wal().checkpoint().error().code(), Errc::kIo);
  disk.set_fault(nullptr);
  EXPECT_NE(world.log(1)->lost, "");
  EXPECT_EQ(world.recovery_points_written, 0);
  EXPECT_EQ(world.wal().admit().error().code(), Errc::kIo);
}

// What waited for room was flushed by the checkpoint that made it, and still waits for its write.
TEST(WriteAheadLog, TellsALogThatWaitedForRoomThatItsBatchIsLost) {
  MemoryFileSystem disk;
  World world(disk);
  world.options.total_bytes_max = 2 * kFile;
  world.open();
  disk.set_fault([&world](MemoryFileSystem::Operation operation, const std::string& path) {
    const bool fails = operation == MemoryFileSystem::Operation::kWrite && path.ends_with(".wal") &&
                       world.recovery_points_written > 0;
    return fails ? Status(Error(Errc::kIo, "EIO")) : Status();
  });
  for (int i = 0; i < 100 && world.recovery_points_written == 0; ++i) {
    world.append(1, i, 6000);
  }

  EXPECT_EQ(world.recovery_points_written, 1);
  EXPECT_NE(world.log(1)->lost, "");
}

// Files are used again as they fit, not in their order.
TEST(WriteAheadLog, TakesNoFrameOfAFreedFileForLost) {
  for (std::uint64_t cut = 0; cut < 12; ++cut) {
    SCOPED_TRACE(cut);
    MemoryFileSystem disk(MemoryFileSystem::Options{.seed = cut + 1});
    World world(disk);
    world.options.file_bytes_min = kFile / 4;
    world.open();
    std::int64_t next = 0;
    for (int i = 0; i < 40; ++i) {  // 16, 16, 32, 64 KiB, ...
      world.append(1, next++, 4000);
    }
    ASSERT_TRUE(world.wal().checkpoint().ok());
    disk.cut_power_at(cut);
    for (int i = 0; i < 6; ++i) {
      world.append(1, next++, 7000);
    }
    world.close();
    disk.power_cut();

    const Result<WalContents> contents = world.contents();
    ASSERT_TRUE(contents.ok());
    EXPECT_TRUE(contents->intact) << contents->damaged.front();
  }
}

// Its checkpoints find no room; the number of batches that were taken.
int append_until_refused(World& world) {
  world.recovery_point_status = Error(Errc::kNoSpace, "recovery points");
  int added = 0;
  while (added < 100 && world.wal().admit().ok()) {
    world.append(1, added++, 3900);
  }
  EXPECT_LT(added, 100) << "nothing is refused";
  return added;
}

TEST(WriteAheadLog, RefusesRetriablyWhileItsCheckpointHasNoRoomAndGoesOnAfterwards) {
  MemoryFileSystem disk;
  World world(disk);
  world.options.total_bytes_max = 2 * kFile;
  world.open();
  const int added = append_until_refused(world);
  EXPECT_EQ(world.wal().admit().error().code(), Errc::kNoSpace);
  EXPECT_LT(world.log(1)->durable, Offset(added));
  world.recovery_point_status = Status();
  EXPECT_TRUE(world.wal().admit().ok());
  EXPECT_EQ(world.log(1)->durable, Offset(added));
  EXPECT_EQ(world.log(1)->lost, "");
}

// Reference R 2.11: a bad frame with nothing sound behind it was never whole.
TEST(WriteAheadLog, TakesABadFrameAtTheEndForATornWrite) {
  MemoryFileSystem disk;
  World world(disk);
  world.open();
  for (int i = 0; i < 5; ++i) {
    world.append(1, i, 2000);
  }
  world.close();
  disk.flip_bit("wal/000.wal", 5 * kWalBlockBytes + 500,
                3);  // the last frame's payload
  Result<WalContents> contents = world.contents();
  ASSERT_TRUE(contents.ok());
  EXPECT_TRUE(contents->intact);
  EXPECT_EQ(bases(*contents, 1), up_to(4));
}

TEST(WriteAheadLog, TellsRotFromATornWriteAndGoesOnBehindIt) {
  for (const std::uint64_t position : {std::uint64_t{3 * kWalBlockBytes + 20},       // frame header
                                       std::uint64_t{3 * kWalBlockBytes + 70},       // entry head
                                       std::uint64_t{3 * kWalBlockBytes + 110},      // batch header
                                       std::uint64_t{3 * kWalBlockBytes + 1000}}) {  // records
    SCOPED_TRACE(position);
    MemoryFileSystem disk;
    World world(disk);
    world.open();
    for (int i = 0; i < 5; ++i) {
      world.append(1, i, 2000);
    }
    world.close();
    disk.flip_bit("wal/000.wal", position, 3);
    Result<WalContents> contents = world.contents();
    ASSERT_TRUE(contents.ok());
    EXPECT_FALSE(contents->intact);
    EXPECT_EQ(contents->damaged.size(), 1U);
    EXPECT_EQ(bases(*contents, 1), (std::vector<std::int64_t>{0, 1, 3, 4}));
    // What is appended next stands behind all of it.
    world.open();
    world.append(1, 5, 2000);
    world.close();
    contents = world.contents();
    ASSERT_TRUE(contents.ok());
    EXPECT_EQ(bases(*contents, 1), (std::vector<std::int64_t>{0, 1, 3, 4, 5}));
  }
}

TEST(WriteAheadLog, ReadsAFileWhoseHeaderDecayedByItsFirstFrame) {
  MemoryFileSystem disk;
  World world(disk);
  world.open();
  for (int i = 0; i < 40; ++i) {
    world.append(1, i, 3900);  // 8 or so in a file
  }
  world.close();
  const Result<std::vector<DirectoryEntry>> files = disk.list("wal");
  ASSERT_TRUE(files.ok());
  ASSERT_GE(files->size(), 3U);
  for (const DirectoryEntry& file : *files) {  // the first, the last, and those between
    SCOPED_TRACE(file.name);
    const std::string path = join_path("wal", file.name);
    const auto copy = disk.clone(1);
    copy->flip_bit(path, 20, 1);
    const Result<WalContents> contents = read_wal(*copy, "wal");
    ASSERT_TRUE(contents.ok());
    WalContents found = *contents;
    EXPECT_EQ(bases(found, 1), up_to(40));
    EXPECT_TRUE(found.damaged.empty());
    ASSERT_EQ(found.headless.size(), 1U);
    EXPECT_TRUE(found.headless.front().starts_with(path));
  }
}

TEST(WriteAheadLog, MissesNothingWhenTheHeaderOfAFreedFileDecays) {
  MemoryFileSystem disk;
  World world(disk);
  world.options.total_bytes_max = 4 * kFile;
  world.open();
  for (int i = 0; i < 60; ++i) {
    world.append(1, i, 3900);
    if (i % 20 == 19) {
      ASSERT_TRUE(world.wal().checkpoint().ok());
      world.append(1, i * 1000, 100);  // the driver frees files
    }
  }
  const Result<WalContents> before = read_wal(disk, "wal");
  ASSERT_TRUE(before.ok());
  ASSERT_FALSE(before->spare.empty());
  world.close();
  for (const WalFile& spare : before->spare) {
    const auto copy = disk.clone(1);
    copy->flip_bit(spare.path, 20, 1);
    const Result<WalContents> contents = read_wal(*copy, "wal");
    ASSERT_TRUE(contents.ok());
    EXPECT_TRUE(contents->intact);
    EXPECT_GE(contents->batches, before->batches);
  }
}

TEST(WriteAheadLog, GoesOnWhenACheckpointThatNobodyWaitedForMadeRoom) {
  MemoryFileSystem disk;
  World world(disk);
  world.options.total_bytes_max = 2 * kFile;
  world.open();
  const int added = append_until_refused(world);
  EXPECT_LT(world.log(1)->durable, Offset(added));
  world.recovery_point_status = Status();
  ASSERT_TRUE(world.wal().checkpoint().ok());
  EXPECT_EQ(world.log(1)->durable, Offset(added));
}

// The options have changed since: its files cannot take a frame.
TEST(WriteAheadLog, ReplacesFilesThatAreTooSmallForItsFrames) {
  MemoryFileSystem disk;
  World world(disk);
  world.open();
  for (int i = 0; i < 40; ++i) {
    world.append(1, i, 3900);
  }
  world.close();
  world.options.file_bytes_min = 16 * kFile;
  world.options.file_bytes_max = 16 * kFile;
  world.options.total_bytes_max = 32 * kFile;
  world.open();
  for (int i = 40; i < 50; ++i) {
    world.append(1, i, 3 * kFile);
    ASSERT_EQ(world.log(1)->durable, Offset(i + 1));
  }
  ASSERT_TRUE(world.wal().checkpoint().ok());
  EXPECT_LE(world.wal().metrics().file_bytes, 48 * kFile);
}

TEST(WriteAheadLog, ReadsAGroupWholeOrNotAtAllWhereverThePowerIsCut) {
  bool none = false;
  bool all = false;
  for (std::uint64_t cut = 0; cut < 24; ++cut) {
    for (std::uint64_t seed = 1; seed <= 5; ++seed) {
      MemoryFileSystem disk({seed, 4096, UINT64_MAX});
      World world(disk);
      world.open();
      world.append(1, 0);
      disk.cut_power_at(cut);
      std::vector<WriteAheadLog::Entry> group;
      for (int i = 0; i < 9; ++i) {
        group.push_back(world.entry(1 + i % 3, 1 + i / 3, 14'000));
      }
      world.wal().add_group(std::move(group));
      world.wal().start();
      // Nobody is told of a part of it: what a reader saw would go with the rest.
      const bool told = world.log(3)->durable == Offset(4);
      for (const int number : {1, 2, 3}) {
        EXPECT_EQ(world.log(number)->durable > Offset(1), told) << number;
      }
      world.close();
      disk.power_cut();
      Result<WalContents> contents = world.contents();
      ASSERT_TRUE(contents.ok());
      const std::size_t found = bases(*contents, 3).size();
      EXPECT_TRUE(found == 0 || found == 3) << "cut " << cut << " seed " << seed;
      EXPECT_EQ(bases(*contents, 1).size(), found == 0 ? 1U : 4U);
      EXPECT_TRUE(!told || found == 3);
      none |= found == 0;
      all |= found == 3;
    }
  }
  EXPECT_TRUE(none);
  EXPECT_TRUE(all);
}

TEST(WriteAheadLog, TheRestOfAGroupWhoseBeginningDecayedIsNothing) {
  MemoryFileSystem disk;
  World world(disk);
  world.open();
  world.append(1, 0);
  std::vector<WriteAheadLog::Entry> group;
  for (int i = 0; i < 9; ++i) {
    group.push_back(world.entry(1 + i % 3, 1 + i / 3, 14'000));  // a frame each
  }
  world.wal().add_group(std::move(group));
  world.wal().start();
  world.append(1, 4);
  world.close();
  disk.flip_bit("wal/000.wal", 2 * kWalBlockBytes + 20, 1);
  Result<WalContents> contents = world.contents();
  ASSERT_TRUE(contents.ok());
  EXPECT_FALSE(contents->intact);
  EXPECT_EQ(bases(*contents, 1), (std::vector<std::int64_t>{0, 4}));
  EXPECT_TRUE(bases(*contents, 3).empty());
}

// Its first frames stay until the last is written.
TEST(WriteAheadLog, ACheckpointInTheMiddleOfAGroupForgetsNothingOfIt) {
  MemoryFileSystem disk;
  World world(disk);
  world.open();
  for (int round = 0; round < 3; ++round) {
    disk.hold_submits(true);
    std::vector<WriteAheadLog::Entry> group;
    for (int i = 0; i < 3; ++i) {
      group.push_back(world.entry(1 + i, round, 14'000));
    }
    world.wal().add_group(std::move(group));
    world.wal().start();
    EXPECT_EQ(disk.run_submitted(), 1U);  // the first frame alone
    ASSERT_TRUE(world.wal().checkpoint().ok());
    disk.hold_submits(false);
    while (disk.run_submitted() > 0) {
    }
    world.wal().drain();
  }
  world.close();
  disk.power_cut();
  Result<WalContents> contents = world.contents();
  ASSERT_TRUE(contents.ok());
  for (const int number : {1, 2, 3}) {
    const std::vector<std::int64_t> found = bases(*contents, number);
    ASSERT_FALSE(found.empty());
    EXPECT_EQ(found.back(), 2) << number;
  }
}

// Random lives of appends, groups, checkpoints, clean and unclean ends. After each crash the
// write-ahead log holds of every log what was told durable and not flushed, without a hole, and no
// more than was added.
class WalLife {
 public:
  explicit WalLife(std::uint64_t seed)
      : rng_(seed), disk_({seed, 4096, UINT64_MAX}), world_(disk_) {}

  void run(int lives) {
    for (int life = 0; life < lives && !::testing::Test::HasFailure(); ++life) {
      world_.open(clean_);
      clean_ = false;
      for (const auto& [number, known] : known_) {  // as a partition that recovered them
        world_.log(number)->write(Offset(known.added));
        world_.wal().note_unflushed(world_.log(number));
      }
      const auto steps = static_cast<int>(rng_.between(1, 60));
      const bool dies_midway = rng_.chance(2, 3);
      if (dies_midway) {
        disk_.cut_power_at(rng_.below(80));
      }
      for (int i = 0; i < steps; ++i) {
        step();
      }
      if (!dies_midway && rng_.chance(1, 3)) {
        clean_end();
        continue;
      }
      note_told();
      world_.close();
      disk_.power_cut();
      check();
    }
  }

 private:
  static constexpr int kLogs = 4;
  struct Known {
    std::int64_t added = 0;    // end of what was added
    std::int64_t durable = 0;  // told
    std::int64_t flushed = 0;  // told
  };

  void step() {
    if (rng_.chance(1, 12)) {
      world_.wal().checkpoint().ignore("a power cut may come");
      return;
    }
    const int number = static_cast<int>(rng_.below(kLogs));
    if (rng_.chance(1, 10)) {
      std::vector<WriteAheadLog::Entry> group;
      for (int i = 0; i < 3; ++i) {
        const int log = static_cast<int>(rng_.below(kLogs));
        group.push_back(world_.entry(log, known_[log].added++, rng_.below(9000)));
      }
      world_.wal().add_group(std::move(group));
      world_.wal().start();
      return;
    }
    world_.append(number, known_[number].added++, rng_.below(rng_.chance(1, 8) ? 60'000 : 3000));
  }

  void note_told() {
    for (auto& [number, known] : known_) {
      known.durable = std::max(known.durable, world_.log(number)->durable.value());
      known.flushed = std::max(known.flushed, world_.log(number)->flushed.value());
    }
  }

  void clean_end() {
    world_.wal().drain();
    note_told();
    world_.close();
    clean_ = true;
    for (auto& [number, known] : known_) {
      EXPECT_EQ(known.durable, known.added);
      known.flushed = known.added;
    }
  }

  void check() {
    Result<WalContents> contents = world_.contents();
    ASSERT_TRUE(contents.ok()) << contents.error().to_string();
    EXPECT_TRUE(contents->intact) << contents->damaged.front();
    for (auto& [number, known] : known_) {
      SCOPED_TRACE(number);
      const std::vector<std::int64_t> found = bases(*contents, number);
      const std::int64_t end = found.empty() ? known.flushed : found.back() + 1;
      for (std::size_t i = 1; i < found.size(); ++i) {
        // What a flush reached before the write-ahead log did needs no frame.
        EXPECT_TRUE(found[i] == found[i - 1] + 1 || found[i] <= known.flushed) << found[i];
      }
      EXPECT_LE(found.empty() ? end : found.front(), known.flushed);
      EXPECT_GE(end, known.durable);
      EXPECT_LE(end, known.added);
      // The partition cuts what is not there, and goes on behind the rest.
      known.added = std::max(end, known.flushed);
      known.durable = known.added;
    }
  }

  Rng rng_;
  MemoryFileSystem disk_;
  World world_;
  std::map<int, Known> known_;
  bool clean_ = true;
};

TEST(WriteAheadLog, HoldsEveryThingToldDurableThroughRandomLives) {
  const std::uint64_t seed = weir::testing::is_full_run()
                                 ? weir::testing::seed_of_run()
                                 : weir::testing::given_seed().value_or(4711);
  for (std::uint64_t i = 0; i < weir::testing::rounds(40U, 400U); ++i) {
    SCOPED_TRACE(fmt::format("seed {}", seed + i));
    WalLife(seed + i).run(12);
    if (HasFailure()) {
      break;
    }
  }
}

}  // namespace
}  // namespace weir::log
