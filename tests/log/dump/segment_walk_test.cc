#include "log/dump/segment_walk.h"

#include "log/segment/segment_scan.h"
#include "tests/log/dump/dump_support.h"

#include <weir/runtime/endian.h>

#include <gtest/gtest.h>

#include <string>
#include <vector>

namespace weir::log {
namespace {

// The second segment of a folder that Kafka wrote: 12 + 2 + 12 + 2 batches, offsets 68 to 139. The
// batch at 2923 (236 bytes, offsets 106 and 107) has a wrong CRC in the file; healthy() mends it.
constexpr std::uint64_t kPosition = 2923;
constexpr std::uint64_t kEnd = 3159;
constexpr Offset kBase{68};
constexpr Offset kNextSegment{140};

std::string healthy() {
  std::string bytes =
      testing::file_text(testing::dump_data_folder("crash-0/00000000000000000068.log"));
  stamp_crc(bytes.data() + kPosition, kEnd - kPosition);
  return bytes;
}

struct Walked {
  std::vector<std::int64_t> base_offsets;
  std::vector<DamagedRange> damage;
  std::uint64_t valid_bytes = 0;
};

Walked walk(const std::string& bytes, Offset offset_end = kNextSegment,
            std::uint64_t size = UINT64_MAX) {
  weir::testing::MemoryFileSystem files;
  testing::put_file(files, "/68.log", bytes);
  const auto file = files.open("/68.log", OpenMode::kRead);
  SegmentWalk walk(**file, std::min<std::uint64_t>(size, bytes.size()), kBase, offset_end);
  Walked walked;
  while (true) {
    const Result<WalkItem> item = walk.next();
    EXPECT_TRUE(item.ok());
    if (!item.ok() || std::holds_alternative<std::monostate>(*item)) {
      break;
    }
    if (const auto* batch = std::get_if<WalkedBatch>(&*item)) {
      EXPECT_EQ(batch->bytes, ByteView(bytes).substr(batch->position, batch->bytes.size()));
      walked.base_offsets.push_back(batch->header.base_offset.value());
    } else {
      walked.damage.push_back(std::get<DamagedRange>(*item));
    }
  }
  walked.valid_bytes = walk.valid_bytes();
  return walked;
}

// One range, and all batches but those in it.
void expect_one_range(const Walked& walked, std::uint64_t position, std::uint64_t end,
                      std::string_view reason) {
  const std::vector<std::int64_t> all = walk(healthy()).base_offsets;
  ASSERT_EQ(walked.damage.size(), 1U);
  EXPECT_EQ(walked.damage[0].position, position);
  EXPECT_EQ(walked.damage[0].end_position, end);
  EXPECT_NE(walked.damage[0].reason.find(reason), std::string::npos) << walked.damage[0].reason;
  EXPECT_EQ(walked.base_offsets.size() + 1, all.size());
}

void flip(std::string& bytes, std::uint64_t position, int bit) {
  bytes[position] = static_cast<char>(bytes[position] ^ (1 << bit));
}

TEST(SegmentWalk, GivesEveryBatchOfAHealthySegment) {
  const Walked walked = walk(healthy());

  EXPECT_EQ(walked.base_offsets.front(), 68);
  EXPECT_EQ(walked.base_offsets.back(), 139);
  EXPECT_TRUE(walked.damage.empty());
  EXPECT_EQ(walked.valid_bytes, healthy().size());
}

TEST(SegmentWalk, StepsOverOneFlippedBitAnywhereInABatch) {
  for (std::uint64_t position = kPosition; position < kEnd; ++position) {
    const bool is_leader_epoch = position >= kPosition + 12 && position < kPosition + 16;
    if (is_leader_epoch) {
      continue;  // not covered by the CRC, and any value is possible
    }
    std::string bytes = healthy();
    flip(bytes, position, static_cast<int>(position % 8));

    const Walked walked = walk(bytes);

    SCOPED_TRACE(position);
    expect_one_range(walked, kPosition, kEnd, "");
    EXPECT_EQ(walked.damage[0].first_offset, Offset(106));
    EXPECT_EQ(walked.damage[0].next_offset, Offset(108));
  }
}

TEST(SegmentWalk, SeesThatABaseOffsetLies) {
  for (const std::int64_t lie : {0, 105, 107, 110, 139, 140, 1 << 20}) {
    std::string bytes = healthy();
    store_be<std::int64_t>(bytes.data() + kPosition, lie);

    const Walked walked = walk(bytes);

    SCOPED_TRACE(lie);
    expect_one_range(walked, kPosition, kEnd, "batch at offset " + std::to_string(lie) + ": ");
    ASSERT_TRUE(walked.damage[0].header.has_value());
    EXPECT_TRUE(walked.damage[0].is_crc_right);
  }
}

TEST(SegmentWalk, TakesAHoleForAHole) {
  std::string bytes = healthy();
  bytes.erase(kPosition, kEnd - kPosition);

  const Walked walked = walk(bytes);

  EXPECT_TRUE(walked.damage.empty());
  EXPECT_EQ(walked.base_offsets.size() + 1, walk(healthy()).base_offsets.size());
}

TEST(SegmentWalk, NamesATailThatIsCutOff) {
  const std::string bytes = healthy();
  const std::uint64_t last = 5769;  // position of the last batch
  for (std::uint64_t size = last + 1; size < bytes.size(); ++size) {
    const Walked walked = walk(bytes.substr(0, size), kOffsetMax);

    SCOPED_TRACE(size);
    expect_one_range(walked, last, size, "left");
    EXPECT_EQ(walked.damage[0].first_offset, Offset(139));
    EXPECT_FALSE(walked.damage[0].next_offset.has_value());
    EXPECT_EQ(walked.valid_bytes, last);
  }
}

TEST(SegmentWalk, KnowsTheNextOffsetFromTheNextSegment) {
  const Walked walked = walk(healthy().substr(0, 5800), kNextSegment);

  ASSERT_EQ(walked.damage.size(), 1U);
  EXPECT_EQ(walked.damage[0].next_offset, kNextSegment);
}

TEST(SegmentWalk, LeavesOutABatchThatIsBeingAppended) {
  const std::uint64_t last = 5769;
  for (std::uint64_t size = last; size < healthy().size(); ++size) {
    const Walked walked = walk(healthy(), kOffsetMax, size);

    EXPECT_TRUE(walked.damage.empty()) << size;
    EXPECT_EQ(walked.valid_bytes, last) << size;
  }
}

TEST(SegmentWalk, StillNamesDamageInAFileThatGrows) {
  std::string bytes = healthy();
  flip(bytes, 5769 + 16, 0);  // magic of the last batch

  const Walked walked = walk(bytes + bytes.substr(0, 100), kOffsetMax, bytes.size());

  EXPECT_EQ(walked.damage.size(), 1U);
}

TEST(SegmentWalk, SaysWhenOnlyZeroesAreLeft) {
  const Walked walked = walk(healthy() + std::string(200'000, '\0'), kOffsetMax);

  ASSERT_EQ(walked.damage.size(), 1U);
  EXPECT_EQ(walked.damage[0].reason,
            "zeroes up to the end of the file: preallocated, or lost with the power");
  EXPECT_EQ(walked.damage[0].end_position, healthy().size() + 200'000);
}

TEST(SegmentWalk, GivesALastBatchThatStandsTwiceOnce) {
  const std::string bytes = healthy();

  const Walked walked = walk(bytes + bytes.substr(5769), kOffsetMax);

  ASSERT_EQ(walked.damage.size(), 1U);
  EXPECT_EQ(walked.damage[0].position, bytes.size());
  EXPECT_EQ(walked.base_offsets, walk(bytes).base_offsets);
}

TEST(SegmentWalk, JoinsDamagedNeighbours) {
  std::string bytes = healthy();
  flip(bytes, kPosition + 100, 3);
  flip(bytes, kEnd + 100, 3);

  const Walked walked = walk(bytes);

  ASSERT_EQ(walked.damage.size(), 1U);
  EXPECT_EQ(walked.damage[0].position, kPosition);
  EXPECT_EQ(walked.damage[0].first_offset, Offset(106));
  EXPECT_EQ(walked.damage[0].next_offset, Offset(109));
  EXPECT_FALSE(walked.damage[0].header.has_value()) << "that is one of two batches";
}

TEST(SegmentWalk, HasNothingToSayAboutAnEmptyFile) {
  const Walked walked = walk("");

  EXPECT_TRUE(walked.base_offsets.empty());
  EXPECT_TRUE(walked.damage.empty());
}

}  // namespace
}  // namespace weir::log
