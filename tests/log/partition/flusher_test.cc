#include "log/partition/durability.h"

#include <weir/runtime/testing/memory_file_system.h>
#include <weir/runtime/thread_annotations.h>

#include <gtest/gtest.h>

namespace weir::log {
namespace {

class FakeLog : public DurableLog {
 public:
  explicit FakeLog(FileSystem& files, const std::string& path) {
    file_ = *files.open(path, OpenMode::kCreateOrOpen);
  }
  void write(Offset end) {
    end_ = end;
    dirty_ = true;
  }
  Dirty take_dirty() override {
    ++rounds;
    Dirty dirty{{}, end_};
    if (dirty_) {
      dirty.files.push_back(file_);
    }
    dirty_ = false;
    return dirty;
  }
  void on_durable(Offset end) override { durable = end; }
  void on_durability_lost(const Error& error) override { lost = error.to_string(); }

  int rounds = 0;
  Offset durable;
  std::string lost;

 private:
  std::shared_ptr<File> file_;
  Offset end_;
  bool dirty_ = false;
};

TEST(Flusher, TellsTheLogWhatIsDurable) {
  weir::testing::MemoryFileSystem disk;
  const auto flusher = make_flusher(disk);
  const auto log = std::make_shared<FakeLog>(disk, "a");
  log->write(Offset(7));
  flusher->submit(log);
  flusher->drain();
  EXPECT_EQ(log->durable, Offset(7));
  EXPECT_EQ(log->rounds, 1);
}

TEST(Flusher, ServesWhatComesDuringASyncTogetherByTheNext) {
  weir::testing::MemoryFileSystem disk;
  const auto flusher = make_flusher(disk);
  const auto log = std::make_shared<FakeLog>(disk, "a");
  disk.hold_submits(true);
  log->write(Offset(1));
  flusher->submit(log);
  for (int i = 2; i <= 9; ++i) {
    log->write(Offset(i));
    flusher->submit(log);
  }
  EXPECT_EQ(disk.run_submitted(), 1U);
  EXPECT_EQ(log->durable, Offset(1));
  EXPECT_EQ(disk.run_submitted(), 1U);
  EXPECT_EQ(log->durable, Offset(9));
  EXPECT_EQ(log->rounds, 2);
  flusher->drain();
}

TEST(Flusher, KeepsTheLogAliveUntilItWasTold) {
  weir::testing::MemoryFileSystem disk;
  const auto flusher = make_flusher(disk);
  disk.hold_submits(true);
  auto log = std::make_shared<FakeLog>(disk, "a");
  const std::weak_ptr<FakeLog> watch = log;
  log->write(Offset(1));
  flusher->submit(log);
  log.reset();
  EXPECT_FALSE(watch.expired());
  disk.run_submitted();
  flusher->drain();
  EXPECT_TRUE(watch.expired());
}

TEST(Flusher, ReportsAFailedSyncOfThatLogOnly) {
  weir::testing::MemoryFileSystem disk;
  const auto flusher = make_flusher(disk);
  const auto good = std::make_shared<FakeLog>(disk, "good");
  const auto bad = std::make_shared<FakeLog>(disk, "bad");
  disk.set_fault([](weir::testing::MemoryFileSystem::Operation operation, const std::string& path) {
    return operation == weir::testing::MemoryFileSystem::Operation::kSync && path == "bad"
               ? Status(Error(Errc::kIo, "sync bad"))
               : Status();
  });
  good->write(Offset(3));
  bad->write(Offset(3));
  flusher->submit(good);
  flusher->submit(bad);
  flusher->drain();
  EXPECT_EQ(good->durable, Offset(3));
  EXPECT_TRUE(good->lost.empty());
  EXPECT_EQ(bad->durable, Offset(0));
  EXPECT_NE(bad->lost.find("sync bad"), std::string::npos);
}

TEST(Flusher, RunsLogsBesideEachOther) {
  weir::testing::MemoryFileSystem disk;
  const auto flusher = make_flusher(disk);
  disk.hold_submits(true);
  std::vector<std::shared_ptr<FakeLog>> logs;
  for (int i = 0; i < 10; ++i) {
    logs.push_back(std::make_shared<FakeLog>(disk, std::to_string(i)));
    logs.back()->write(Offset(i + 1));
    flusher->submit(logs.back());
  }
  EXPECT_EQ(disk.run_submitted(), 10U);
  flusher->drain();
  for (int i = 0; i < 10; ++i) {
    EXPECT_EQ(logs[static_cast<std::size_t>(i)]->durable, Offset(i + 1));
  }
}

}  // namespace
}  // namespace weir::log
