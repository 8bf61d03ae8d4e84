#include "log/partition/checkpoint_file.h"

#include <weir/runtime/testing/memory_file_system.h>

#include <gtest/gtest.h>

namespace weir::log {
namespace {

using testing::MemoryFileSystem;

void write(FileSystem& files, const std::string& text) {
  ASSERT_TRUE(replace_file(files, "checkpoint", text).ok());
}

TEST(OffsetCheckpoint, IsWrittenInKafkasFormat) {
  MemoryFileSystem files;
  const OffsetCheckpoint offsets{{{"a", PartitionId(0)}, Offset(7)},
                                 {{"b.c_d-e", PartitionId(12)}, Offset(0)}};

  ASSERT_TRUE(write_offset_checkpoint(files, "checkpoint", offsets).ok());

  EXPECT_EQ(read_file(files, "checkpoint").value(), "0\n2\na 0 7\nb.c_d-e 12 0\n");
  EXPECT_EQ(read_offset_checkpoint(files, "checkpoint").value(), offsets);
}

TEST(OffsetCheckpoint, HasNoEntriesWhenAbsentOrEmpty) {
  MemoryFileSystem files;
  EXPECT_TRUE(read_offset_checkpoint(files, "checkpoint")->empty());
  write(files, "");
  EXPECT_TRUE(read_offset_checkpoint(files, "checkpoint")->empty());
  write(files, "0\n0\n");
  EXPECT_TRUE(read_offset_checkpoint(files, "checkpoint")->empty());
}

TEST(OffsetCheckpoint, NamesTheLineThatIsWrong) {
  MemoryFileSystem files;
  for (const char* text :
       {"1\n0\n", "0\nmany\n", "0\n1\na 0\n", "0\n2\na 0 7\n", "0\n1\na x 7\n", "0\n1\n 0 7\n"}) {
    write(files, text);
    const auto read = read_offset_checkpoint(files, "checkpoint");
    ASSERT_FALSE(read.ok()) << text;
    EXPECT_EQ(read.error().code(), Errc::kCorrupt);
    EXPECT_NE(read.error().message().find("checkpoint"), std::string::npos);
  }
}

}  // namespace
}  // namespace weir::log
