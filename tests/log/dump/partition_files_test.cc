#include "log/dump/partition_files.h"

#include "log/dump/dump_output.h"

#include <weir/runtime/crc32c.h>
#include <weir/runtime/endian.h>
#include <weir/runtime/testing/memory_file_system.h>

#include <gtest/gtest.h>

#include <string>
#include <vector>

namespace weir::log {
namespace {

// Kafka's own bytes for one entry (ProducerStateManager.writeSnapshot).
std::string kafkas_snapshot() {
  const std::string_view hex =
      "00016906b8ea0000000100000000000010920007000000660000000000000002000000020000018bcfe56805"
      "ffffffffffffffffffffffff";
  std::string bytes;
  for (std::size_t i = 0; i < hex.size(); i += 2) {
    bytes.push_back(static_cast<char>(std::stoi(std::string(hex.substr(i, 2)), nullptr, 16)));
  }
  return bytes;
}

TEST(ProducerSnapshot, ReadsWhatKafkaWrote) {
  const auto entries = parse_producer_snapshot(kafkas_snapshot());

  ASSERT_TRUE(entries.ok());
  ASSERT_EQ(entries->size(), 1U);
  const ProducerEntry& entry = entries->front();
  EXPECT_EQ(entry.id, ProducerId(4242));
  EXPECT_EQ(entry.epoch, ProducerEpoch(7));
  EXPECT_EQ(entry.last_sequence, 102);
  EXPECT_EQ(entry.last_offset, Offset(2));
  EXPECT_EQ(entry.offset_delta, 2);
  EXPECT_EQ(entry.timestamp, 1700000000005);
  EXPECT_EQ(entry.coordinator_epoch, -1);
  EXPECT_EQ(entry.transaction_first_offset, kNoOffset);
}

TEST(ProducerSnapshot, RefusesWhatIsDamaged) {
  const std::string good = kafkas_snapshot();
  for (std::size_t size = 0; size < good.size(); ++size) {
    EXPECT_FALSE(parse_producer_snapshot(good.substr(0, size)).ok()) << size;
  }
  for (std::size_t i = 0; i < good.size(); ++i) {
    std::string bytes = good;
    bytes[i] = static_cast<char>(bytes[i] ^ 0x10);
    EXPECT_FALSE(parse_producer_snapshot(bytes).ok()) << i;
  }
  // A count that the bytes do not hold, under a CRC that is right.
  for (const std::int32_t count : {-1, 0, 2, INT32_MAX, INT32_MIN}) {
    std::string bytes = good;
    store_be(bytes.data() + 6, count);
    store_be(bytes.data() + 2, crc32c(ByteView(bytes).substr(6)));
    EXPECT_FALSE(parse_producer_snapshot(bytes).ok()) << count;
  }
}

TEST(LeaderEpochs, AreReadAsKafkaWritesThem) {
  const auto epochs = parse_leader_epochs("0\n2\n0 0\n4 42\n");

  ASSERT_TRUE(epochs.ok());
  EXPECT_EQ(*epochs,
            (std::vector<EpochStart>{{LeaderEpoch(0), Offset(0)}, {LeaderEpoch(4), Offset(42)}}));
  EXPECT_TRUE(parse_leader_epochs("")->empty());
  EXPECT_TRUE(parse_leader_epochs("0\n0\n")->empty());
}

TEST(LeaderEpochs, AreRefusedWhenGarbled) {
  for (const char* text : {"garbage", "0", "0\n", "0\nx\n", "0\n1\n", "0\n2\n0 0\n", "0\n1\n0\n",
                           "0\n1\n0 x\n", "0\n1\n0 -1\n", "0\n1\n0 0 0\n", "0\n1\n0 0\n1 5\n"}) {
    EXPECT_EQ(parse_leader_epochs(text).error().code(), Errc::kCorrupt) << text;
  }
  EXPECT_EQ(parse_leader_epochs("1\n0\n").error().code(), Errc::kUnsupported);
}

TEST(PartitionMetadata, IsReadWithAndWithoutALastNewline) {
  for (const char* text : {"version: 0\ntopic_id: mAsSErzsRKyBN3nvQyW23Q",
                           "version: 0\ntopic_id: mAsSErzsRKyBN3nvQyW23Q\n"}) {
    const auto metadata = parse_metadata_file(text);

    ASSERT_TRUE(metadata.ok()) << text;
    EXPECT_EQ(metadata->version, 0);
    EXPECT_EQ(metadata->topic_id.to_string(), "mAsSErzsRKyBN3nvQyW23Q");
  }
}

TEST(PartitionMetadata, IsRefusedWhenGarbled) {
  for (const char* text : {"", "version: 0", "version 0\ntopic_id: mAsSErzsRKyBN3nvQyW23Q",
                           "version: 0\ntopic_id: short", "version: 0\ntopicid: x", "version:\n"}) {
    EXPECT_EQ(parse_metadata_file(text).error().code(), Errc::kCorrupt) << text;
  }
  EXPECT_EQ(parse_metadata_file("version: 1\ntopic_id: x").error().code(), Errc::kUnsupported);
}

std::vector<std::string> entries_of(const std::string& bytes, std::uint64_t size) {
  weir::testing::MemoryFileSystem files;
  const auto file = files.open("/index", OpenMode::kCreateNew);
  EXPECT_TRUE((*file)->write_at(0, bytes).ok());
  std::vector<std::string> entries;
  const Status status =
      for_each_entry(**file, size, 8, [&](const char* in) { entries.emplace_back(in, 8); });
  EXPECT_TRUE(status.ok());
  return entries;
}

TEST(ForEachEntry, LeavesOutZeroesOnlyAtTheEnd) {
  const std::string zero(8, '\0');
  const std::string some = "entry  1";

  EXPECT_EQ(entries_of(zero + some + zero + zero, 32), (std::vector<std::string>{zero, some}));
  EXPECT_TRUE(entries_of(zero + zero, 16).empty());
  EXPECT_EQ(entries_of(some + "abc", 11), std::vector<std::string>{some});
  EXPECT_EQ(entries_of(some, 1000), std::vector<std::string>{some}) << "shorter than it was";
}

TEST(ForEachEntry, KeepsZeroesBetweenEntriesOfDifferentReads) {
  std::string bytes(200'000, '\0');
  bytes.replace(160'000, 8, "the last");

  const std::vector<std::string> entries = entries_of(bytes, bytes.size());

  ASSERT_EQ(entries.size(), 20'001U);
  EXPECT_EQ(entries.back(), "the last");
  EXPECT_EQ(entries.front(), std::string(8, '\0'));
}

std::string printable(std::string_view bytes) {
  std::string out;
  const std::function<void(std::string_view)> write = [&](std::string_view piece) { out += piece; };
  DumpOutput output(write);
  output.printable(bytes);
  output.flush();
  return out;
}

TEST(DumpOutput, KeepsPrintableTextAndEscapesTheRest) {
  EXPECT_EQ(printable("a\\b ~"), "a\\b ~");
  EXPECT_EQ(printable("Straße, слово, 語, 😀"), "Straße, слово, 語, 😀");
  EXPECT_EQ(printable(std::string_view("\0\n\x1b[31m\x7f", 8)), "\\x00\\x0a\\x1b[31m\\x7f");
  EXPECT_EQ(printable("\xc2\x9b"), "\\xc2\\x9b") << "control character U+009B";
  EXPECT_EQ(printable("\xe2\x80\xae"), "\\xe2\\x80\\xae") << "U+202E turns the line around";
}

TEST(DumpOutput, EscapesWhatIsNoUtf8) {
  EXPECT_EQ(printable("\xff\xfe"), "\\xff\\xfe");
  EXPECT_EQ(printable("\xc3"), "\\xc3") << "cut off";
  EXPECT_EQ(printable("\xc0\xaf"), "\\xc0\\xaf") << "not the shortest form";
  EXPECT_EQ(printable("\xe0\x80\xaf"), "\\xe0\\x80\\xaf") << "not the shortest form";
  EXPECT_EQ(printable("\xed\xa0\x80"), "\\xed\\xa0\\x80") << "surrogate";
  EXPECT_EQ(printable("\xf4\x90\x80\x80"), "\\xf4\\x90\\x80\\x80") << "above U+10FFFF";
  EXPECT_EQ(printable("\xc3x\xc3\xa9"), "\\xc3x\xc3\xa9");
}

TEST(DumpOutput, HandsOnPiecesOfAbout64KiB) {
  std::size_t largest = 0;
  std::size_t total = 0;
  const std::function<void(std::string_view)> write = [&](std::string_view piece) {
    largest = std::max(largest, piece.size());
    total += piece.size();
  };
  DumpOutput output(write);

  output.printable(std::string(1'000'000, '\x01'));
  output.printable(std::string(1'000'000, 'x'));
  output.flush();

  EXPECT_EQ(total, 5'000'000U);
  EXPECT_LE(largest, (64U << 10U) + 4096U);
}

}  // namespace
}  // namespace weir::log
