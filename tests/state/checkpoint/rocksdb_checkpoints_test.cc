#include "tests/state/store/changelog_sink.h"

#include <weir/runtime/testing/memory_file_system.h>
#include <weir/state/checkpoint_store.h>

#include <gtest/gtest.h>

#include <algorithm>

namespace weir::state {
namespace {

using testing::position_at;
using weir::testing::MemoryFileSystem;

std::unique_ptr<CheckpointDatabase> open(FileSystem& files,
                                         const CheckpointDatabaseOptions& options = {}) {
  auto opened = open_rocksdb_checkpoints(files, "state", options);
  EXPECT_TRUE(opened.ok()) << (opened.ok() ? "" : opened.error().to_string());
  return opened.ok() ? std::move(opened).value() : nullptr;
}

Status ingest_one(CheckpointStore& store, ByteView key, ByteView value,
                  const StorePosition& position) {
  bool given = false;
  return store.ingest(
      [&](StoreChange& change) {
        change = {.key = key, .value = value};
        return !std::exchange(given, true);
      },
      position);
}

TEST(RocksDbCheckpoints, SaysThatAnotherProcessHoldsThem) {
  MemoryFileSystem files;
  const auto first = open(files);

  const auto second = open_rocksdb_checkpoints(files, "state", {});

  ASSERT_FALSE(second.ok());
  EXPECT_EQ(second.error().code(), Errc::kLocked) << second.error().to_string();
}

TEST(RocksDbCheckpoints, ReadOnlyNeedsNoLockAndKeepsItsCheckpointWhileTheOwnerGoesOn) {
  MemoryFileSystem files;
  const auto owner = open(files);
  auto store = owner->open_store("counts-0").value();
  ASSERT_TRUE(ingest_one(*store, "a", "old", position_at(1)).ok());

  const auto reader = open(files, {.read_only = true});
  auto seen = reader->open_store("counts-0").value();
  for (std::size_t i = 2; i < 40; ++i) {  // enough for compactions that remove the reader's files
    ASSERT_TRUE(ingest_one(*store, "a", "new", position_at(i)).ok());
  }

  EXPECT_EQ(seen->get("a").value(), "old");
  EXPECT_EQ(seen->position().value(), position_at(1));
  EXPECT_EQ(seen->clear().error().code(), Errc::kReadOnly);
  EXPECT_EQ(ingest_one(*seen, "a", "mine", position_at(9)).error().code(), Errc::kReadOnly);
  EXPECT_EQ(reader->open_store("absent-0").error().code(), Errc::kNotFound);
}

TEST(RocksDbCheckpoints, ReadOnlySaysThatThereIsNothing) {
  MemoryFileSystem files;
  const auto opened = open_rocksdb_checkpoints(files, "state", {.read_only = true});
  ASSERT_FALSE(opened.ok());
  EXPECT_EQ(opened.error().code(), Errc::kNotFound);
}

TEST(RocksDbCheckpoints, WritesNoInfoLogFile) {
  MemoryFileSystem files;
  const auto owner = open(files);
  auto store = owner->open_store("counts-0").value();
  ASSERT_TRUE(ingest_one(*store, "a", "1", position_at(1)).ok());

  const std::vector<DirectoryEntry> entries = files.list("state").value();

  EXPECT_TRUE(std::none_of(entries.begin(), entries.end(), [](const DirectoryEntry& entry) {
    return entry.name == "LOG" || entry.name.ends_with(".ingest");
  }));
}

TEST(RocksDbCheckpoints, RemovesFilesOfInterruptedIngestsAtOpen) {
  MemoryFileSystem files;
  open(files).reset();
  ASSERT_TRUE(files.open("state/17.ingest", OpenMode::kCreateNew).ok());

  const auto owner = open(files);

  EXPECT_FALSE(path_exists(files, "state/17.ingest"));
}

TEST(RocksDbCheckpoints, TakesTheNextIngestAfterTheDiskWasFull) {
  MemoryFileSystem files;
  const auto owner = open(files);
  auto store = owner->open_store("counts-0").value();
  ASSERT_TRUE(ingest_one(*store, "a", "1", position_at(1)).ok());
  auto scan = store->scan("", std::nullopt).value();  // may stay open for ever
  files.set_fault([](MemoryFileSystem::Operation operation, const std::string&) {
    return operation == MemoryFileSystem::Operation::kWrite
               ? Status(Error(Errc::kNoSpace, "the disk is full"))
               : Status();
  });

  const Status full = ingest_one(*store, "a", "2", position_at(2));
  ASSERT_FALSE(full.ok());
  EXPECT_EQ(full.error().code(), Errc::kNoSpace) << full.error().to_string();
  EXPECT_EQ(store->get("a").value(), "1");
  files.set_fault(nullptr);

  const Status done = ingest_one(*store, "a", "3", position_at(3));
  ASSERT_TRUE(done.ok()) << done.error().to_string();
  EXPECT_EQ(store->get("a").value(), "3");
  EXPECT_EQ(scan->key(), "a");
}

TEST(RocksDbCheckpoints, TellsADirectStoreThatItsUnflushedCommitsAreLost) {
  MemoryFileSystem files;
  const auto owner = open(files);
  auto direct = owner->open_store("direct-0").value();
  ASSERT_TRUE(direct->write({{.key = "a", .value = ByteView("1")}}, position_at(1)).ok());
  ASSERT_TRUE(direct->flush().ok());
  ASSERT_TRUE(direct->write({{.key = "a", .value = ByteView("2")}}, position_at(2)).ok());
  files.set_fault([](MemoryFileSystem::Operation operation, const std::string&) {
    return operation == MemoryFileSystem::Operation::kSync ? Status(Error(Errc::kIo, "EIO"))
                                                           : Status();
  });
  ASSERT_FALSE(direct->flush().ok());
  files.set_fault(nullptr);

  const Status written = direct->write({{.key = "b", .value = ByteView("1")}}, position_at(3));

  ASSERT_FALSE(written.ok());
  EXPECT_EQ(written.error().code(), Errc::kIo);
  EXPECT_FALSE(direct->get("a").ok());
  auto next_owner = owner->open_store("direct-0").value();
  EXPECT_EQ(next_owner->position().value(), position_at(1));
  EXPECT_EQ(next_owner->get("a").value(), "1");
}

TEST(RocksDbCheckpoints, ReportsACorruptDatabase) {
  MemoryFileSystem files;
  {
    const auto owner = open(files);
    auto store = owner->open_store("counts-0").value();
    ASSERT_TRUE(ingest_one(*store, "a", "1", position_at(1)).ok());
  }
  ASSERT_TRUE(replace_file(files, "state/CURRENT", "MANIFEST-999999\n").ok());

  const auto opened = open_rocksdb_checkpoints(files, "state", {});

  ASSERT_FALSE(opened.ok());
  EXPECT_NE(opened.error().message().find("state"), std::string::npos);
}

}  // namespace
}  // namespace weir::state
