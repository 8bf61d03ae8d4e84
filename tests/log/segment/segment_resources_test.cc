#include "log/segment/segment_resources.h"

#include "tests/log/partition/log_on_disk.h"

#include <fmt/format.h>

namespace weir::log {
namespace {

using testing::kStart;
using testing::make_batch;

TEST(SegmentResources, KeepsTheNumberOfOpenFilesWithinItsBound) {
  weir::testing::MemoryFileSystem disk;
  const auto resources =
      std::make_shared<SegmentResources>(SegmentResources::Limits{.open_files_max = 3});
  std::vector<std::shared_ptr<Segment>> segments;
  for (int i = 0; i < 10; ++i) {
    const std::string folder = fmt::format("t-{}", i);
    ASSERT_TRUE(disk.create_directories(folder).ok());
    segments.push_back(std::make_shared<Segment>(disk, folder, Offset(0), true, resources));
    ASSERT_TRUE(segments.back()->create({}, kStart).ok());
    EXPECT_LE(resources->open_files(), 3U);
  }
  // One that was closed is opened again when it is used.
  const SharedBytes batch = make_batch(1, 10);
  const BatchHeader header = *read_batch_header(batch.view());
  for (const auto& segment : segments) {
    ASSERT_TRUE(segment->append(batch.view(), header, {}).ok());
    EXPECT_LE(resources->open_files(), 3U);
  }
  segments.clear();
  EXPECT_EQ(resources->open_files(), 0U);
}

TEST(SegmentResources, LetsLittleLieReservedAndUnused) {
  weir::testing::MemoryFileSystem disk;
  const auto resources =
      std::make_shared<SegmentResources>(SegmentResources::Limits{.unused_bytes_max = 200'000});
  std::vector<std::shared_ptr<Segment>> segments;
  const SharedBytes batch = make_batch(1, 10);
  const BatchHeader header = *read_batch_header(batch.view());
  for (int i = 0; i < 10; ++i) {
    const std::string folder = fmt::format("t-{}", i);
    ASSERT_TRUE(disk.create_directories(folder).ok());
    segments.push_back(std::make_shared<Segment>(disk, folder, Offset(0), true, resources));
    ASSERT_TRUE(segments.back()->create({}, kStart).ok());
    ASSERT_TRUE(segments.back()->append(batch.view(), header, {}).ok());
  }
  const std::uint64_t used =
      UINT64_MAX / 4096 * 4096 - disk.disk_space(".")->available_bytes / 4096 * 4096;
  EXPECT_LE(used, 200'000U + 10 * 4096U + 4096U);  // 3 with 64 KiB, 7 with what they need
  segments.clear();
  EXPECT_TRUE(resources->take_unused(200'000));  // all came back
}

TEST(SegmentResources, TellsTheTailCacheThatIsToBeEmptied) {
  SegmentResources resources({.tail_bytes_max = 100});
  EXPECT_TRUE(resources.count_tail(0, 60));
  EXPECT_FALSE(resources.count_tail(0, 60));
  EXPECT_TRUE(resources.count_tail(60, 0));
  EXPECT_TRUE(resources.count_tail(60, 90));
}

}  // namespace
}  // namespace weir::log
