#include "log/record/batch_header.h"

#include "log/record/append_validation.h"
#include "tests/log/record/fixtures.h"

#include <weir/runtime/crc32c.h>
#include <weir/runtime/endian.h>

namespace weir::log {
namespace {

using testing::from_hex;
using testing::to_hex;

// Written by Kafka's DefaultRecordBatch: producer 4242 epoch 7 sequence 100, leader epoch 3, three
// records.
constexpr std::string_view kThreeRecords =
    "00000000000000000000005300000003023411fe600000000000020000018bcfe568000000018bcfe5680500000000"
    "000010920007000000640000000320000000026b0476310402680278026e0110000a0201047632000e000204026b01"
    "00";

TEST(ReadBatchHeader, GivesEveryFieldOfABatchWrittenByKafka) {
  const std::string bytes = from_hex(kThreeRecords);

  const Result<BatchHeader> header = read_batch_header(bytes);

  ASSERT_TRUE(header.ok()) << header.error().message();
  EXPECT_EQ(header->base_offset, Offset(0));
  EXPECT_EQ(header->batch_length, 0x53);
  EXPECT_EQ(header->leader_epoch, LeaderEpoch(3));
  EXPECT_EQ(header->magic, 2);
  EXPECT_EQ(header->crc, 0x3411fe60U);
  EXPECT_EQ(header->attributes, 0);
  EXPECT_EQ(header->last_offset_delta, 2);
  EXPECT_EQ(header->base_timestamp, 1700000000000);
  EXPECT_EQ(header->max_timestamp, 1700000000005);
  EXPECT_EQ(header->producer_id, ProducerId(4242));
  EXPECT_EQ(header->producer_epoch, ProducerEpoch(7));
  EXPECT_EQ(header->base_sequence, 100);
  EXPECT_EQ(header->records_count, 3);
  EXPECT_EQ(header->size_bytes(), 95U);
  EXPECT_EQ(header->last_offset(), Offset(2));
  EXPECT_EQ(header->next_offset(), Offset(3));
}

TEST(ReadBatchHeader, TellsOldFormatsFromDamage) {
  std::string bytes = from_hex(kThreeRecords);

  bytes[16] = 1;
  EXPECT_EQ(read_batch_header(bytes).error().code(), Errc::kUnsupported);
  bytes[16] = 3;
  EXPECT_EQ(read_batch_header(bytes).error().code(), Errc::kCorrupt);
  const std::string zeroes(kBatchHeaderBytes, '\0');
  EXPECT_EQ(read_batch_header(zeroes).error().code(), Errc::kCorrupt);
}

TEST(ReadBatchHeader, RefusesLengthsBelowAHeaderAndAboveTheLimit) {
  std::string bytes = from_hex(kThreeRecords);

  EXPECT_TRUE(read_batch_header(bytes, 95).ok());
  EXPECT_EQ(read_batch_header(bytes, 94).error().code(), Errc::kCorrupt);
  store_be(bytes.data() + 8, std::int32_t{48});
  EXPECT_EQ(read_batch_header(bytes).error().code(), Errc::kCorrupt);
  store_be(bytes.data() + 8, std::int32_t{-1});
  EXPECT_EQ(read_batch_header(bytes).error().code(), Errc::kCorrupt);
  store_be(bytes.data() + 8, std::int32_t{0x7fffffff});
  EXPECT_EQ(read_batch_header(bytes).error().code(), Errc::kCorrupt);
}

TEST(BatchHeader, WrapsOffsetsInsteadOfOverflowing) {
  BatchHeader header;
  header.base_offset = Offset(INT64_MAX);
  header.last_offset_delta = 0;

  EXPECT_EQ(header.last_offset(), Offset(INT64_MAX));
  EXPECT_EQ(header.next_offset(), Offset(INT64_MIN));
}

TEST(VerifyBatch, FindsEverySingleFlippedBitButThoseOutsideTheCrc) {
  const std::string good = from_hex(kThreeRecords);
  ASSERT_TRUE(verify_batch(good).ok());

  for (std::size_t bit = 0; bit < good.size() * 8; ++bit) {
    std::string bytes = good;
    bytes[bit / 8] = static_cast<char>(bytes[bit / 8] ^ (1 << (bit % 8)));
    const bool outside = bit / 8 < 8 || (bit / 8 >= 12 && bit / 8 < 16);
    EXPECT_EQ(verify_batch(bytes).ok(), outside) << "bit " << bit;
  }
}

TEST(VerifyBatch, RefusesBytesThatAreNotExactlyOneBatch) {
  const std::string good = from_hex(kThreeRecords);

  EXPECT_EQ(verify_batch(good + '\0').error().code(), Errc::kCorrupt);
  EXPECT_EQ(verify_batch(good.substr(0, 94)).error().code(), Errc::kCorrupt);
  EXPECT_EQ(verify_batch(good.substr(0, 60)).error().code(), Errc::kCorrupt);
  EXPECT_EQ(verify_batch("").error().code(), Errc::kCorrupt);
}

TEST(WriteBatchHeader, RestoresTheBytesOfKafka) {
  const std::string good = from_hex(kThreeRecords);
  std::string written(good.size(), '\xaa');

  write_batch_header(written.data(), *read_batch_header(good));
  written.replace(kBatchHeaderBytes, std::string::npos, good.substr(kBatchHeaderBytes));
  EXPECT_EQ(to_hex(written), kThreeRecords);

  store_be(written.data() + 17, std::uint32_t{0});
  stamp_crc(written.data(), written.size());
  EXPECT_EQ(to_hex(written), kThreeRecords);
}

TEST(StampOffset, ChangesOnlyBytesOutsideTheCrc) {
  std::string bytes = from_hex(kThreeRecords);

  stamp_offset(bytes.data(), Offset(0x0102030405060708), LeaderEpoch(0x0a0b0c0d));

  EXPECT_EQ(to_hex(bytes), "01020304050607080000005" + std::string("3") + "0a0b0c0d" +
                               std::string(kThreeRecords.substr(32)));
  EXPECT_TRUE(verify_batch(bytes).ok());
}

TEST(StampAppendTime, SetsBitTimeAndCrcAndCreateTimeTakesThemBack) {
  std::string bytes = from_hex(kThreeRecords);

  stamp_append_time(bytes.data(), bytes.size(), 1800000000000);
  const Result<BatchHeader> stamped = verify_batch(bytes);
  ASSERT_TRUE(stamped.ok());
  EXPECT_EQ(stamped->timestamp_type(), TimestampType::kLogAppendTime);
  EXPECT_EQ(stamped->max_timestamp, 1800000000000);
  EXPECT_EQ(stamped->base_timestamp, 1700000000000);

  stamp_create_time(bytes.data(), bytes.size(), 1700000000005);
  EXPECT_EQ(to_hex(bytes), kThreeRecords);
}

TEST(CodecName, IsKafkas) {
  EXPECT_EQ(codec_name(Codec::kNone), "none");
  EXPECT_EQ(codec_name(Codec::kGzip), "gzip");
  EXPECT_EQ(codec_name(Codec::kSnappy), "snappy");
  EXPECT_EQ(codec_name(Codec::kLz4), "lz4");
  EXPECT_EQ(codec_name(Codec::kZstd), "zstd");
}

}  // namespace
}  // namespace weir::log
