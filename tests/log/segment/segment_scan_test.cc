#include "log/segment/segment_scan.h"

#include "tests/log/partition/log_on_disk.h"

namespace weir::log {
namespace {

// A file of batches at offsets 0, 2, 4, ... of two records each.
class SegmentScan : public ::testing::Test {
 protected:
  void put(int batches) {
    for (int i = 0; i < batches; ++i) {
      SharedBytes batch = testing::make_batch(2, 20);
      stamp_offset(batch.data(), Offset(2 * i), LeaderEpoch(7));
      starts_.push_back(bytes_.size());
      bytes_ += batch.view();
    }
    starts_.push_back(bytes_.size());
  }

  ScanResult scan(Offset verify_from = Offset(0), Offset durable_to = Offset(0)) {
    testing::write_text(disk_, "s", bytes_);
    const auto file = disk_.open("s", OpenMode::kRead);
    EXPECT_TRUE(file.ok());
    ScanRange range;
    range.end = bytes_.size();
    range.verify_from = verify_from;
    range.durable_to = durable_to;
    SegmentIndexes indexes(Offset(0));
    Result<ScanResult> result = scan_segment(**file, range, indexes);
    EXPECT_TRUE(result.ok());
    return *std::move(result);
  }

  weir::testing::MemoryFileSystem disk_;
  std::string bytes_;
  std::vector<std::size_t> starts_;
};

TEST_F(SegmentScan, AcceptsAWholeFile) {
  put(5);
  const ScanResult result = scan();
  EXPECT_EQ(result.next_offset, Offset(10));
  EXPECT_EQ(result.valid_bytes, bytes_.size());
  EXPECT_TRUE(result.stop_reason.empty());
  EXPECT_EQ(result.epochs, (std::vector<EpochStart>{{LeaderEpoch(7), Offset(0)}}));
}

TEST_F(SegmentScan, EndsAtTheLastWholeBatchWhereverTheFileIsCut) {
  put(3);
  const std::string whole = bytes_;
  for (std::size_t size = 0; size < whole.size(); ++size) {
    bytes_ = whole.substr(0, size);
    const ScanResult result = scan();
    const std::size_t batches = size < starts_[1]   ? 0
                                : size < starts_[2] ? 1
                                : size < starts_[3] ? 2
                                                    : 3;
    ASSERT_EQ(result.valid_bytes, starts_[batches]) << size;
    ASSERT_EQ(result.next_offset, Offset(static_cast<std::int64_t>(2 * batches))) << size;
    ASSERT_EQ(result.stop_reason.empty(), size == starts_[batches]) << size;
  }
}

TEST_F(SegmentScan, FindsEveryFlippedBitOfTheCheckedPart) {
  put(3);
  const std::string whole = bytes_;
  for (std::size_t at = starts_[1] + 16; at < starts_[2]; ++at) {
    bytes_ = whole;
    bytes_[at] = static_cast<char>(bytes_[at] ^ 0x20);
    ASSERT_EQ(scan().valid_bytes, starts_[1]) << at;
  }
}

TEST_F(SegmentScan, StepsOverDamageBelowWhatWasDurable) {
  put(5);
  bytes_[starts_[2] + 70] ^= 1;
  const ScanResult result = scan(Offset(0), Offset(10));
  ASSERT_EQ(result.damage.size(), 1U);
  EXPECT_EQ(result.damage[0].position, starts_[2]);
  EXPECT_EQ(result.damage[0].end_position, starts_[3]);
  EXPECT_EQ(result.damage[0].from, Offset(4));
  EXPECT_EQ(result.damage[0].to, Offset(6));
  EXPECT_EQ(result.next_offset, Offset(10));
}

TEST_F(SegmentScan, ReadsOnlyHeadersBelowTheOffsetToVerifyFrom) {
  put(5);
  bytes_[starts_[1] + 70] ^= 1;
  EXPECT_EQ(scan(Offset(4)).next_offset, Offset(10));
  EXPECT_EQ(scan(Offset(3)).next_offset, Offset(2));
}

TEST_F(SegmentScan, RefusesTheBatchThatLiesAboutItsOffset) {
  put(5);
  stamp_offset(bytes_.data() + starts_[2], Offset(5), LeaderEpoch(7));  // jumps ahead
  EXPECT_EQ(scan().valid_bytes, starts_[2]);
  stamp_offset(bytes_.data() + starts_[2], Offset(3), LeaderEpoch(7));  // falls back
  EXPECT_EQ(scan().valid_bytes, starts_[2]);
  stamp_offset(bytes_.data() + starts_[2], Offset(INT64_MAX - 1), LeaderEpoch(7));
  EXPECT_EQ(scan().valid_bytes, starts_[2]);
  stamp_offset(bytes_.data() + starts_[2], Offset(-4), LeaderEpoch(7));
  EXPECT_EQ(scan().valid_bytes, starts_[2]);
}

TEST_F(SegmentScan, AcceptsTheHolesThatCompactionLeaves) {
  put(5);
  bytes_.erase(starts_[1], starts_[2] - starts_[1]);
  const ScanResult result = scan();
  EXPECT_EQ(result.next_offset, Offset(10));
  EXPECT_TRUE(result.stop_reason.empty());
}

TEST_F(SegmentScan, AnEpochThatFallsBackLaterWasNone) {
  std::vector<EpochStart> epochs;
  BatchHeader header;
  for (const auto& [epoch, base] : {std::pair{1, 0}, {1, 5}, {17, 6}, {1, 8}, {2, 9}}) {
    header.leader_epoch = LeaderEpoch(epoch);
    header.base_offset = Offset(base);
    note_epoch(epochs, header);
  }
  EXPECT_EQ(epochs,
            (std::vector<EpochStart>{{LeaderEpoch(1), Offset(0)}, {LeaderEpoch(2), Offset(9)}}));
}

}  // namespace
}  // namespace weir::log
