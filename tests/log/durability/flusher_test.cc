#include "tests/log/durability/fake_log.h"

#include <weir/runtime/thread_annotations.h>

#include <gtest/gtest.h>

namespace weir::log {
namespace {

using testing::FakeLog;

void append(Durability& flusher, const std::shared_ptr<FakeLog>& log, Offset end) {
  log->write(end);
  flusher.add(log, SharedBytes(), end);
  flusher.start();
}

TEST(Flusher, TellsTheLogWhatIsDurable) {
  weir::testing::MemoryFileSystem disk;
  const auto flusher = make_flusher(disk);
  const auto log = std::make_shared<FakeLog>(disk, "a");
  append(*flusher, log, Offset(7));
  flusher->drain();
  EXPECT_EQ(log->durable, Offset(7));
  EXPECT_EQ(log->rounds, 1);
}

TEST(Flusher, ServesWhatComesDuringASyncTogetherByTheNext) {
  weir::testing::MemoryFileSystem disk;
  const auto flusher = make_flusher(disk);
  const auto log = std::make_shared<FakeLog>(disk, "a");
  disk.hold_submits(true);
  for (int i = 1; i <= 9; ++i) {
    append(*flusher, log, Offset(i));
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
  append(*flusher, log, Offset(1));
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
  append(*flusher, good, Offset(3));
  append(*flusher, bad, Offset(3));
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
    append(*flusher, logs.back(), Offset(i + 1));
  }
  EXPECT_EQ(disk.run_submitted(), 10U);
  flusher->drain();
  for (int i = 0; i < 10; ++i) {
    EXPECT_EQ(logs[static_cast<std::size_t>(i)]->durable, Offset(i + 1));
  }
}

}  // namespace
}  // namespace weir::log
