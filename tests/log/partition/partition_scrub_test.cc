#include "log/partition/partition_scrub.h"

#include "log/segment/segment_names.h"
#include "tests/log/partition/log_on_disk.h"
#include "tests/runtime/observe/capture.h"

#include <weir/runtime/crc32c.h>

#include <fmt/format.h>

// Damage to what is durable is found, kept apart, and costs nothing else.

namespace weir::log {
namespace {

using testing::LogOnDisk;
using testing::make_batch;
using Ranges = std::vector<std::pair<std::int64_t, std::int64_t>>;

constexpr const char* kChecksums = "data/wal/checksums/t-0";
constexpr int kBatches = 24;
constexpr int kPerBatch = 3;

struct Place {
  std::string file;
  Offset segment;
  std::uint64_t position = 0;
  std::uint64_t size = 0;
  Offset from;
  Offset to;
};

class PartitionScrubTest : public ::testing::Test {
 protected:
  void SetUp() override {
    set_log_level(LogLevel::kOff);
    log_.options.settings.segment_bytes = 900;
    log_.options.settings.index_interval_bytes = 200;
    log_.options.leader_epoch = LeaderEpoch(5);
    log_.options.checksum_folder = kChecksums;
    log_.tail_cache_bytes = 0;
    partition_ = log_.try_open().value();
    for (int i = 0; i < kBatches; ++i) {
      append(i);
    }
  }
  void TearDown() override { set_log_level(LogLevel::kInfo); }

  void append(int i) {
    const Result<Partition::Appended> appended =
        partition_->append(make_batch(kPerBatch, static_cast<std::size_t>(10 + i % 5)));
    ASSERT_TRUE(appended.ok()) << appended.error().to_string();
    testing::wait_for(*partition_, appended->next_offset);
  }
  void reopen(bool clean) {
    if (clean) {
      ASSERT_TRUE(partition_->close().ok());
      log_.options.recovery_point = partition_->offsets().log_end;
    } else {
      log_.options.recovery_point = partition_->recovery_point();
    }
    partition_.reset();
    log_.options.clean = clean;
    Result<std::shared_ptr<LocalPartition>> opened = log_.try_open();
    ASSERT_TRUE(opened.ok()) << opened.error().to_string();
    partition_ = *opened;
  }

  // One pass in steps of `bytes`; what it found.
  std::vector<SegmentDamage> scrub(std::uint64_t bytes = 300) {
    PartitionScrub scrub(disk_, partition_);
    std::vector<SegmentDamage> news;
    while (true) {
      const PartitionScrub::Progress progress = scrub.step(bytes);
      news.insert(news.end(), progress.news.begin(), progress.news.end());
      if (progress.is_done) {
        return news;
      }
    }
  }

  // Where the batches are, read from the files by their headers alone.
  std::vector<Place> places() {
    std::vector<Place> all;
    for (const std::shared_ptr<Segment>& segment : partition_->segments()) {
      const std::string path = segment->path(kLogSuffix);
      const std::string text = testing::file_text(disk_, path).substr(0, segment->size_bytes());
      for (std::size_t at = 0; at < text.size();) {
        const BatchHeader header = read_batch_header(ByteView(text).substr(at)).value();
        all.push_back({path, segment->base_offset(), at, header.size_bytes(), header.base_offset,
                       header.next_offset()});
        at += header.size_bytes();
      }
    }
    return all;
  }

  // Everything but `place` is readable, and a reader in it is told the way on.
  void expect_all_but(const Place& place) {
    const std::int64_t end = partition_->offsets().log_end.value();
    ASSERT_LT(end, 1000);
    Ranges wanted;
    if (place.from > Offset(0)) {
      wanted.emplace_back(0, place.from.value() - 1);
    }
    if (place.to < Offset(end)) {
      wanted.emplace_back(place.to.value(), end - 1);
    }
    const testing::ReadBack read = testing::read_all(*partition_);
    EXPECT_EQ(read.ranges, wanted);
    EXPECT_EQ(read.errors.size(), static_cast<std::size_t>(kPerBatch));
    for (const std::string& error : read.errors) {
      EXPECT_NE(error.find(place.file), std::string::npos) << error;
      EXPECT_NE(
          error.find(fmt::format("position {}, offset {}", place.position, place.from.value())),
          std::string::npos)
          << error;
      EXPECT_NE(error.find(fmt::format("go on at offset {}", place.to.value())), std::string::npos)
          << error;
    }
    // From any offset, too: the index may have named the batch.
    for (Offset from(0); from < Offset(end); from = from.next()) {
      const Result<FetchResult> one = partition_->read(from, 1);
      EXPECT_EQ(one.ok(), from < place.from || from >= place.to) << from.value();
    }
  }

  void expect_found(const Place& place) {
    const std::vector<SegmentDamage> news = scrub();
    ASSERT_EQ(news.size(), 1U);
    EXPECT_EQ(news[0].segment, place.segment);
    EXPECT_EQ(news[0].range.position, place.position);
    EXPECT_EQ(news[0].range.end_position, place.position + place.size);
    EXPECT_EQ(news[0].range.from, place.from);
    EXPECT_EQ(news[0].range.to, place.to);
    EXPECT_EQ(partition_->damage(), news);
  }

  // A batch of a sealed segment that is neither its first nor its last.
  Place middle() {
    const std::vector<Place> all = places();
    for (std::size_t i = all.size() / 2; i + 1 < all.size(); ++i) {
      if (all[i - 1].segment == all[i].segment && all[i + 1].segment == all[i].segment) {
        return all[i];
      }
    }
    ADD_FAILURE() << "no batch in the middle";
    return {};
  }
  std::string side_car(const Place& place) {
    return join_path(kChecksums, segment_file_name(place.segment, kChecksumSuffix));
  }
  void expect_every_flip_is_found(const Place& place, std::uint64_t bytes_of_head) {
    for (std::uint64_t byte = 0; byte < bytes_of_head; ++byte) {
      for (int bit = 0; bit < 8; ++bit) {
        SCOPED_TRACE(
            fmt::format("byte {} bit {} of {} at {}", byte, bit, place.file, place.position));
        disk_.flip_bit(place.file, place.position + byte, bit);
        expect_found(place);
        expect_all_but(place);
        disk_.flip_bit(place.file, place.position + byte, bit);
        EXPECT_TRUE(scrub().empty());
        EXPECT_TRUE(partition_->damage().empty());
        if (HasFailure()) {
          return;
        }
      }
    }
    EXPECT_EQ(testing::read_all(*partition_).ranges,
              (Ranges{{0, partition_->offsets().log_end.value() - 1}}));
  }

  weir::testing::MemoryFileSystem disk_;
  LogOnDisk log_{disk_};
  std::shared_ptr<LocalPartition> partition_;
};

TEST_F(PartitionScrubTest, FindsNothingInASoundLog) {
  EXPECT_TRUE(scrub().empty());
  EXPECT_TRUE(scrub(1).empty());
  EXPECT_EQ(testing::read_all(*partition_).ranges, (Ranges{{0, kBatches * kPerBatch - 1}}));
}

TEST_F(PartitionScrubTest, FindsEveryFlippedBitOfAHeadInTheMiddle) {
  expect_every_flip_is_found(middle(), kBatchCrcStart);
}

TEST_F(PartitionScrubTest, FindsFlippedBitsInABody) {
  const Place place = middle();
  for (std::uint64_t byte = kBatchCrcStart; byte < place.size; byte += 7) {
    SCOPED_TRACE(byte);
    disk_.flip_bit(place.file, place.position + byte, static_cast<int>(byte % 8));
    expect_found(place);
    expect_all_but(place);
    disk_.flip_bit(place.file, place.position + byte, static_cast<int>(byte % 8));
    EXPECT_TRUE(scrub().empty());
  }
}

TEST_F(PartitionScrubTest, FindsFlipsInTheFirstAndTheLastBatchOfASegmentAndOfTheLog) {
  const std::vector<Place> all = places();
  for (std::size_t i = 0; i < all.size(); ++i) {
    const bool is_first = i == 0 || all[i - 1].segment != all[i].segment;
    const bool is_last = i + 1 == all.size() || all[i + 1].segment != all[i].segment;
    if (!is_first && !is_last) {
      continue;
    }
    for (const std::uint64_t byte : {0U, 6U, 7U, 8U, 11U, 12U, 15U, 16U, 17U, 40U}) {
      SCOPED_TRACE(fmt::format("batch {} byte {}", i, byte));
      disk_.flip_bit(all[i].file, all[i].position + byte, 4);
      expect_found(all[i]);
      expect_all_but(all[i]);
      disk_.flip_bit(all[i].file, all[i].position + byte, 4);
      EXPECT_TRUE(scrub().empty());
    }
  }
}

TEST_F(PartitionScrubTest, TakesAppendsAndReportsOnceWhileARangeIsDamaged) {
  const Place place = places().back();
  disk_.flip_bit(place.file, place.position + 7, 1);
  expect_found(place);
  append(1);
  append(2);
  EXPECT_TRUE(scrub().empty());
  expect_all_but(place);
}

TEST_F(PartitionScrubTest, ReportsTwoNeighboursAsOneRange) {
  const Place place = middle();
  std::vector<Place> all = places();
  std::erase_if(all, [&](const Place& other) { return other.from < place.from; });
  disk_.flip_bit(all[0].file, all[0].position + 9, 2);
  disk_.flip_bit(all[1].file, all[1].position + 50, 2);
  const std::vector<SegmentDamage> news = scrub();
  ASSERT_EQ(news.size(), 1U);
  EXPECT_EQ(news[0].range.from, all[0].from);
  EXPECT_EQ(news[0].range.to, all[1].to);
  EXPECT_EQ(news[0].range.end_position, all[1].position + all[1].size);
}

TEST_F(PartitionScrubTest, NamesWhatIsWrong) {
  const Place place = middle();
  disk_.flip_bit(place.file, place.position + 6, 0);  // 256
  EXPECT_EQ(scrub().at(0).range.what,
            fmt::format("base offset {} is not what was written", place.from.value() ^ 256));
  disk_.flip_bit(place.file, place.position + 6, 0);
  disk_.flip_bit(place.file, place.position + 15, 1);  // 5 becomes 7
  scrub();
  ASSERT_EQ(partition_->damage().size(), 1U);
  EXPECT_EQ(partition_->damage()[0].range.what, "leader epoch 7 is not what was written");
}

// --- Readers and starts ask the side-car

TEST_F(PartitionScrubTest, AReaderLearnsWhichBatchLiesAboutItsOffset) {
  const Place place = middle();
  for (std::uint64_t byte = 0; byte < 8; ++byte) {
    for (int bit = 0; bit < 8; ++bit) {
      SCOPED_TRACE(fmt::format("byte {} bit {}", byte, bit));
      reopen(true);
      disk_.flip_bit(place.file, place.position + byte, bit);
      const testing::ReadBack read = testing::read_all(*partition_);
      EXPECT_EQ(read.ranges,
                (Ranges{{0, place.from.value() - 1},
                        {place.to.value(), partition_->offsets().log_end.value() - 1}}));
      disk_.flip_bit(place.file, place.position + byte, bit);
    }
  }
}

TEST_F(PartitionScrubTest, AStartAfterACrashLearnsItAndKeepsTheRest) {
  const Offset end = partition_->offsets().log_end;
  const std::vector<Place> all = places();
  const Place& last = all.back();
  const Place& before = all[all.size() - 2];
  ASSERT_EQ(last.segment, before.segment);
  for (const Place& place : {before, last}) {
    for (std::uint64_t byte = 0; byte < kBatchCrcStart; ++byte) {
      if ((byte >= 12 && byte < 16) || byte > 16) {
        continue;  // leader epoch and CRC: a start reads only offsets below the recovery point
      }
      SCOPED_TRACE(fmt::format("batch at {} byte {}", place.from.value(), byte));
      disk_.flip_bit(place.file, place.position + byte, 3);
      reopen(false);
      ASSERT_EQ(partition_->offsets().log_end, end);
      EXPECT_EQ(partition_->recovery().truncated_bytes, 0U);
      EXPECT_EQ(partition_->recovery().damaged.size(), 1U);
      expect_all_but(place);
      disk_.flip_bit(place.file, place.position + byte, 3);
    }
  }
}

// --- The side-car itself

TEST_F(PartitionScrubTest, WithoutASideCarChecksCrcsAndOrderAndMakesOne) {
  const Place place = middle();
  const std::string path = side_car(place);
  ASSERT_TRUE(disk_.remove_file(path).ok());
  EXPECT_TRUE(scrub().empty());
  ASSERT_TRUE(path_exists(disk_, path));
  expect_every_flip_is_found(place, kBatchCrcStart);

  ASSERT_TRUE(disk_.remove_file(path).ok());
  disk_.flip_bit(place.file, place.position + 30, 3);
  expect_found(place);
  expect_all_but(place);
  EXPECT_FALSE(path_exists(disk_, path)) << "made from damaged bytes";
}

TEST_F(PartitionScrubTest, KeepsARangeInQuarantineWhenTheSideCarIsLost) {
  const Place place = middle();
  disk_.flip_bit(place.file, place.position + 14, 1);
  expect_found(place);
  ASSERT_TRUE(disk_.remove_file(side_car(place)).ok());
  EXPECT_TRUE(scrub().empty());
  EXPECT_TRUE(scrub().empty());
  expect_all_but(place);
  EXPECT_FALSE(path_exists(disk_, side_car(place))) << "made from damaged bytes";
}

TEST_F(PartitionScrubTest, MakesAShortTornOrRottenSideCarAnew) {
  const Place place = middle();
  const std::string path = side_car(place);
  const std::string whole = testing::file_text(disk_, path);
  const auto expect_made_anew = [&](const std::string& what) {
    SCOPED_TRACE(what);
    EXPECT_TRUE(scrub().empty());
    disk_.flip_bit(place.file, place.position + 14, 1);
    expect_found(place);
    disk_.flip_bit(place.file, place.position + 14, 1);
    EXPECT_TRUE(scrub().empty());
  };
  for (std::size_t size = 0; size < whole.size(); size += 9) {
    testing::write_text(disk_, path, whole.substr(0, size));
    expect_made_anew(fmt::format("cut to {}", size));
  }
  for (std::size_t at = 0; at < whole.size(); ++at) {
    testing::write_text(disk_, path, whole);
    disk_.flip_bit(path, at, static_cast<int>(at % 8));
    expect_made_anew(fmt::format("flipped at {}", at));
  }
  testing::write_text(disk_, path, std::string(whole.size(), '\0'));
  expect_made_anew("zeros");
}

TEST_F(PartitionScrubTest, ASideCarOfAnotherLogIsNoDamage) {
  const Place place = middle();
  const std::string path = side_car(place);
  const std::string own = testing::file_text(disk_, path);
  // The same offsets and sizes, other bytes.
  weir::testing::MemoryFileSystem other_disk;
  LogOnDisk other(other_disk);
  other.options = log_.options;
  const std::shared_ptr<LocalPartition> other_log = other.try_open().value();
  for (int i = 0; i < kBatches; ++i) {
    testing::wait_for(*other_log,
                      other_log
                          ->append(make_batch(kPerBatch, static_cast<std::size_t>(10 + i % 5),
                                              testing::kStart, 'x'))
                          ->next_offset);
  }
  testing::write_text(disk_, path, testing::file_text(other_disk, path));

  EXPECT_TRUE(scrub().empty());
  EXPECT_TRUE(scrub().empty());  // and now makes its own
  EXPECT_EQ(testing::file_text(disk_, path).size() > 0, true);
  disk_.flip_bit(place.file, place.position + 14, 1);
  expect_found(place);
}

// docs/formats/checksums.md, worked by hand from the segment's bytes.
TEST_F(PartitionScrubTest, WritesTheDocumentedBytes) {
  const Place place = places().front();
  const std::string log = testing::file_text(disk_, place.file);
  const std::string chk = testing::file_text(disk_, side_car(place));
  ASSERT_GE(chk.size(), 60U);
  const auto u32 = [&](std::size_t at) { return load_be<std::uint32_t>(chk.data() + at); };
  EXPECT_EQ(chk.substr(0, 4), "WCHK");
  EXPECT_EQ(u32(4), crc32c(ByteView(chk).substr(8, 52)));
  EXPECT_EQ(load_be<std::int64_t>(chk.data() + 8), 0);
  EXPECT_EQ(load_be<std::int64_t>(chk.data() + 16), kPerBatch);
  EXPECT_EQ(u32(24), 0U);
  EXPECT_EQ(u32(28), place.size);
  EXPECT_EQ(u32(32), 1U);
  EXPECT_EQ(u32(36), 0U);
  EXPECT_EQ(u32(48), place.size);
  EXPECT_EQ(chk.substr(52, 4), log.substr(17, 4));
  EXPECT_EQ(u32(56), crc32c(ByteView(log).substr(0, 21)));
}

// --- Its life

TEST_F(PartitionScrubTest, RemovesSideCarsWithTheirSegments) {
  const Place first = places().front();
  const std::string path = side_car(first);
  ASSERT_TRUE(path_exists(disk_, path));
  ASSERT_TRUE(partition_->advance_log_start(middle().from).ok());
  ASSERT_TRUE(partition_->remove_old_segments().ok());
  EXPECT_FALSE(path_exists(disk_, path));
  EXPECT_TRUE(scrub().empty());
}

TEST_F(PartitionScrubTest, GoesOnWithASideCarAfterACloseAndAfterACrash) {
  for (const bool clean : {true, false, false, true}) {
    reopen(clean);
    for (int i = 0; i < 3; ++i) {
      append(i);
    }
    EXPECT_TRUE(scrub().empty());
    const std::vector<Place> all = places();
    for (const Place& place : {all.back(), all[all.size() - 3], middle()}) {
      disk_.flip_bit(place.file, place.position + 13, 2);
      expect_found(place);
      disk_.flip_bit(place.file, place.position + 13, 2);
      EXPECT_TRUE(scrub().empty());
    }
  }
}

TEST_F(PartitionScrubTest, AReadErrorIsToldAndLeavesTheRestToBeRead) {
  const Place place = middle();
  const Place last = places().back();
  disk_.flip_bit(last.file, last.position + 13, 2);
  set_log_level(LogLevel::kInfo);
  weir::testing::LogCapture capture;
  disk_.set_fault(
      [&](weir::testing::MemoryFileSystem::Operation operation, const std::string& path) {
        return operation == weir::testing::MemoryFileSystem::Operation::kRead && path == place.file
                   ? Status(Error(Errc::kIo, path + ": Input/output error"))
                   : Status();
      });
  EXPECT_EQ(scrub().size(), 1U);
  const auto lines = capture.lines();
  EXPECT_TRUE(std::any_of(lines.begin(), lines.end(), [&](const auto& line) {
    return line.second.find("segment not scrubbed") != std::string::npos &&
           line.second.find(place.file) != std::string::npos;
  }));
}

}  // namespace
}  // namespace weir::log
