#include "log/partition/watermarks.h"

#include <weir/runtime/testing/memory_file_system.h>

#include <gtest/gtest.h>

namespace weir::log {
namespace {

using testing::MemoryFileSystem;

Uuid id(std::uint8_t n) {
  Uuid uuid;
  uuid.bytes.fill(n);
  return uuid;
}

TEST(Watermarks, ShowReadersWhatTheHolderPublished) {
  MemoryFileSystem files;
  const auto holder = Watermarks::create(files, "watermarks").value();
  const auto reader = Watermarks::open(files, "watermarks").value();
  WatermarkSlot* slot = holder->claim(id(1), PartitionId(3));
  ASSERT_NE(slot, nullptr);
  EXPECT_FALSE(reader->find(id(1), PartitionId(3)).has_value());

  slot->publish(Offset(5), Offset(9), Offset(7));
  Watermarks::activate(slot);

  const auto found = reader->find(id(1), PartitionId(3));
  ASSERT_TRUE(found.has_value());
  EXPECT_EQ(found->log_start, Offset(5));
  EXPECT_EQ(found->high_watermark, Offset(9));
  EXPECT_FALSE(reader->find(id(1), PartitionId(4)).has_value());
  EXPECT_FALSE(reader->find(id(2), PartitionId(3)).has_value());
}

TEST(Watermarks, GiveAReleasedSlotToTheNext) {
  MemoryFileSystem files;
  const auto holder = Watermarks::create(files, "watermarks").value();
  WatermarkSlot* first = holder->claim(id(1), PartitionId(0));
  Watermarks::activate(first);
  WatermarkSlot* second = holder->claim(id(2), PartitionId(0));
  second->publish(Offset(0), Offset(2), Offset(2));
  Watermarks::activate(second);

  holder->release(first);

  const auto reader = Watermarks::open(files, "watermarks").value();
  EXPECT_FALSE(reader->find(id(1), PartitionId(0)).has_value());
  EXPECT_EQ(reader->find(id(2), PartitionId(0))->high_watermark, Offset(2));
  EXPECT_EQ(holder->claim(id(3), PartitionId(0)), first);
}

TEST(Watermarks, StartAnewWithANewHolder) {
  MemoryFileSystem files;
  {
    const auto holder = Watermarks::create(files, "watermarks").value();
    Watermarks::activate(holder->claim(id(1), PartitionId(0)));
  }
  const auto reader = Watermarks::open(files, "watermarks").value();
  ASSERT_TRUE(reader->find(id(1), PartitionId(0)).has_value());

  const auto next = Watermarks::create(files, "watermarks").value();

  EXPECT_FALSE(reader->find(id(1), PartitionId(0)).has_value());
}

TEST(Watermarks, RefuseAFileThatIsNone) {
  MemoryFileSystem files;
  EXPECT_EQ(Watermarks::open(files, "watermarks").error().code(), Errc::kNotFound);
  auto file = files.open("watermarks", OpenMode::kCreateNew).value();
  ASSERT_TRUE(file->truncate(4U << 20U).ok());
  EXPECT_EQ(Watermarks::open(files, "watermarks").error().code(), Errc::kCorrupt);
}

TEST(Watermarks, SayWhenAllSlotsAreUsed) {
  MemoryFileSystem files;
  const auto holder = Watermarks::create(files, "watermarks").value();
  for (int i = 0; i < 16'384; ++i) {
    ASSERT_NE(holder->claim(id(1), PartitionId(i)), nullptr);
  }
  EXPECT_EQ(holder->claim(id(1), PartitionId(16'384)), nullptr);
}

}  // namespace
}  // namespace weir::log
