#include "log/record/batch_builder.h"

#include "tests/log/record/fixtures.h"

#include <random>

namespace weir::log {
namespace {

using testing::from_hex;
using testing::to_hex;
using testing::verify_and_decode;

constexpr Timestamp kTime = 1700000000000;

struct OwnedRecord {
  std::optional<std::string> key;
  std::optional<std::string> value;
  Timestamp timestamp = kTime;
  Headers headers;

  RecordRef ref() const {
    RecordRef record;
    record.key = key ? NullableBytes(ByteView(*key)) : NullableBytes();
    record.value = value ? NullableBytes(ByteView(*value)) : NullableBytes();
    record.timestamp = timestamp;
    record.headers = headers.view();
    return record;
  }
};

OwnedRecord make_record(std::optional<std::string> key, std::optional<std::string> value,
                        Timestamp timestamp = kTime) {
  OwnedRecord record;
  record.key = std::move(key);
  record.value = std::move(value);
  record.timestamp = timestamp;
  return record;
}

void expect_equal(const RecordView& actual, const OwnedRecord& expected, std::int64_t offset) {
  EXPECT_EQ(actual.key, expected.ref().key);
  EXPECT_EQ(actual.value, expected.ref().value);
  EXPECT_EQ(actual.timestamp, expected.timestamp);
  EXPECT_EQ(actual.offset, Offset(offset));
  EXPECT_EQ(actual.headers.count(), expected.headers.view().count());
  EXPECT_EQ(actual.headers.encoded(), expected.headers.view().encoded());
}

void expect_decodes_to(const SharedBytes& batch, const std::vector<OwnedRecord>& expected) {
  const auto decoded = verify_and_decode(batch.view());
  ASSERT_TRUE(decoded.ok()) << decoded.error().message();
  ASSERT_EQ(decoded->records.size(), expected.size());
  for (std::size_t i = 0; i < expected.size(); ++i) {
    expect_equal(decoded->records[i], expected[i], static_cast<std::int64_t>(i));
  }
}

TEST(BatchBuilder, WritesTheBytesThatKafkaWrites) {
  OwnedRecord first = make_record("k", "v1");
  first.headers.add("h", ByteView("x"));
  first.headers.add("n", NullableBytes());
  BatchBuilder builder(1000);
  EXPECT_TRUE(builder.append(first.ref()));
  EXPECT_TRUE(builder.append(make_record(std::nullopt, "v2", kTime + 5).ref()));
  EXPECT_TRUE(builder.append(make_record("k", std::nullopt, kTime + 1).ref()));
  BatchBuilder::Producer producer;
  producer.id = ProducerId(4242);
  producer.epoch = ProducerEpoch(7);
  producer.base_sequence = 100;

  SharedBytes batch = builder.seal(producer);
  stamp_offset(batch.data(), Offset(0), LeaderEpoch(3));

  EXPECT_EQ(to_hex(batch.view()),
            "00000000000000000000005300000003023411fe600000000000020000018bcfe568000000018bcfe56805"
            "00000000000010920007000000640000000320000000026b0476310402680278026e0110000a0201047632"
            "000e000204026b0100");
}

TEST(BatchBuilder, WritesKafkasBatchOfOneRecordAndLeavesTheEpochOpen) {
  BatchBuilder builder(1000);
  ASSERT_TRUE(builder.append(make_record("k", "v").ref()));

  // edge-batches/edge.json, "one-record"
  EXPECT_EQ(to_hex(builder.seal().view()),
            "00000000000000000000003affffffff02e99b8dd80000000000000000018bcfe568000000018bcfe56800"
            "ffffffffffffffffffffffffffff0000000110000000026b027600");
}

TEST(BuildControlBatch, WritesKafkasTransactionMarkers) {
  BatchBuilder::Producer producer;
  producer.id = ProducerId(4242);
  producer.epoch = ProducerEpoch(7);
  producer.transactional = true;

  SharedBytes commit =
      build_control_batch(from_hex("00000001"), from_hex("000000000009"), kTime, producer);
  stamp_offset(commit.data(), Offset(55), LeaderEpoch(3));
  EXPECT_EQ(to_hex(commit.view()),
            "0000000000000037000000420000000302e314eb360030000000000000018bcfe568000000018bcfe56800"
            "00000000000010920007ffffffff000000012000000008000000010c00000000000900");
  SharedBytes abort =
      build_control_batch(from_hex("00000000"), from_hex("000000000009"), kTime, producer);
  stamp_offset(abort.data(), Offset(55), LeaderEpoch(3));
  EXPECT_EQ(to_hex(abort.view()),
            "0000000000000037000000420000000302172a3d7e0030000000000000018bcfe568000000018bcfe56800"
            "00000000000010920007ffffffff000000012000000008000000000c00000000000900");
}

TEST(BuildControlBatch, WritesKafkasLeaderChangeWithoutAProducer) {
  // edge-batches/edge.json, "control-leader-change"
  SharedBytes batch = build_control_batch(
      from_hex("00000002"), from_hex("000000000001030000000100000000020002000000010000"), kTime,
      BatchBuilder::Producer{});
  stamp_offset(batch.data(), Offset(0), LeaderEpoch(3));

  EXPECT_EQ(to_hex(batch.view()),
            "0000000000000000000000540000000302725319f00020000000000000018bcfe568000000018bcfe56800"
            "ffffffffffffffffffffffffffff0000000144000000080000000230000000000001030000000100000000"
            "02000200000001000000");
}

TEST(BatchBuilder, RefusesARecordThatDoesNotFitBehindOthersAndKeepsTheBatchWhole) {
  const OwnedRecord record = make_record("k", "v");  // 9 bytes
  BatchBuilder builder(kBatchHeaderBytes + 3 * 9 - 1);

  EXPECT_TRUE(builder.append(record.ref()));
  EXPECT_TRUE(builder.append(record.ref()));
  EXPECT_FALSE(builder.append(record.ref()));
  EXPECT_EQ(builder.count(), 2);
  EXPECT_EQ(builder.size_bytes(), kBatchHeaderBytes + 2 * 9);
  expect_decodes_to(builder.seal(), {record, record});
}

TEST(BatchBuilder, FillsABatchToTheLastByte) {
  const OwnedRecord record = make_record("k", "v");
  BatchBuilder builder(kBatchHeaderBytes + 3 * 9);

  EXPECT_TRUE(builder.append(record.ref()));
  EXPECT_TRUE(builder.append(record.ref()));
  EXPECT_TRUE(builder.append(record.ref()));
  EXPECT_FALSE(builder.append(record.ref()));
  EXPECT_EQ(builder.seal().size(), kBatchHeaderBytes + 3 * 9);
}

TEST(BatchBuilder, GrowsForAFirstRecordOfAnySize) {
  BatchBuilder builder(100);
  const OwnedRecord large = make_record("key", std::string(5'000'000, 'x'));
  const OwnedRecord small = make_record("key", "x");

  EXPECT_TRUE(builder.append(large.ref()));
  EXPECT_FALSE(builder.append(small.ref()));
  EXPECT_EQ(builder.size_bytes(), BatchBuilder::batch_size_of(large.ref()));
  expect_decodes_to(builder.seal(), {large});
  EXPECT_TRUE(builder.append(small.ref()));
  expect_decodes_to(builder.seal(), {small});
}

TEST(BatchBuilder, StartsAnewAfterSeal) {
  BatchBuilder builder(1000);
  ASSERT_TRUE(builder.append(make_record("a", "1", kTime + 50).ref()));
  const SharedBytes first = builder.seal();

  EXPECT_TRUE(builder.empty());
  EXPECT_EQ(builder.size_bytes(), kBatchHeaderBytes);
  const OwnedRecord second = make_record("b", "2", kTime);
  ASSERT_TRUE(builder.append(second.ref()));
  const SharedBytes batch = builder.seal();
  EXPECT_EQ(verify_batch(batch.view())->base_timestamp, kTime);
  EXPECT_EQ(verify_batch(batch.view())->max_timestamp, kTime);
  expect_decodes_to(batch, {second});
  expect_decodes_to(first, {make_record("a", "1", kTime + 50)});
}

TEST(BatchBuilder, KeepsTimestampsInAnyOrderAndNamesTheLargest) {
  const std::vector<Timestamp> times = {
      kTime,        kTime - 1,   0,          kTime + 90'000'000'000, kNoTimestamp,
      INT64_MAX,    INT64_MIN,   kTime + 64, kTime + 8191,           kTime + 8192,
      kTime - 8192, kTime - 8193};
  std::vector<OwnedRecord> records;
  BatchBuilder builder(10000);
  for (const Timestamp time : times) {
    records.push_back(make_record("key of the plain path", std::string(80, 'v'), time));
    ASSERT_TRUE(builder.append(records.back().ref()));
  }

  const SharedBytes batch = builder.seal();

  EXPECT_EQ(verify_batch(batch.view())->base_timestamp, kTime);
  EXPECT_EQ(verify_batch(batch.view())->max_timestamp, INT64_MAX);
  expect_decodes_to(batch, records);
}

TEST(BatchBuilder, WritesTheSizeThatItForetells) {
  for (const std::size_t size : {0U, 1U, 53U, 54U, 55U, 56U, 57U, 58U, 63U, 64U, 127U, 128U, 8145U,
                                 8160U, 8180U, 8191U, 8192U, 1048575U, 1048576U}) {
    const OwnedRecord record = make_record(std::nullopt, std::string(size, 'v'));
    BatchBuilder builder(64);
    ASSERT_TRUE(builder.append(record.ref()));
    EXPECT_EQ(builder.size_bytes(), BatchBuilder::batch_size_of(record.ref())) << size;
    expect_decodes_to(builder.seal(), {record});
  }
}

TEST(BatchBuilder, ReadsBackAtEveryKeyAndValueSizeAroundTheBorders) {
  std::vector<OwnedRecord> records;
  BatchBuilder builder(4U << 20U);
  for (std::size_t key = 0; key <= 40; ++key) {
    for (const std::size_t value :
         {0U, 1U, 20U, 45U, 50U, 58U, 63U, 64U, 65U, 200U, 8100U, 8191U, 8192U}) {
      std::string key_bytes;
      for (std::size_t i = 0; i < key; ++i) {
        key_bytes.push_back(static_cast<char>(i + key));
      }
      records.push_back(make_record(key_bytes, std::string(value, static_cast<char>(key)),
                                    kTime + static_cast<Timestamp>(value * key)));
      ASSERT_TRUE(builder.append(records.back().ref()));
    }
  }
  expect_decodes_to(builder.seal(), records);
}

OwnedRecord random_record(std::mt19937_64& random) {
  const auto below = [&](std::uint64_t bound) { return random() % bound; };
  const auto bytes = [&](std::uint64_t bound) {
    std::string text(below(bound), '\0');
    for (char& byte : text) {
      byte = static_cast<char>(random());
    }
    return text;
  };
  OwnedRecord record;
  if (below(8) != 0) {
    record.key = bytes(below(2) != 0 ? 20 : 100);
  }
  if (below(8) != 0) {
    record.value = bytes(below(10) != 0 ? 200 : 20000);
  }
  record.timestamp = kTime + static_cast<Timestamp>(below(1ULL << below(40))) - 500;
  for (std::uint64_t i = below(5) == 0 ? below(4) : 0; i > 0; --i) {
    record.headers.add(bytes(10), below(3) != 0 ? NullableBytes("value") : NullableBytes());
  }
  return record;
}

TEST(BatchBuilder, ReadsBackRandomBatches) {
  const auto seed = std::random_device{}();
  SCOPED_TRACE(::testing::Message() << "seed " << seed);
  std::mt19937_64 random(seed);
  std::size_t total = 0;
  for (int round = 0; round < 200; ++round) {
    BatchBuilder builder(61 + random() % 100000);
    std::vector<OwnedRecord> records;
    for (OwnedRecord record = random_record(random); builder.append(record.ref());
         record = random_record(random)) {
      records.push_back(std::move(record));
    }
    total += records.size();
    expect_decodes_to(builder.seal(), records);
  }
  EXPECT_GT(total, 1000U);
}

TEST(BatchBuilder, NumbersMoreThan8192RecordsOfABatch) {
  BatchBuilder builder(4U << 20U);
  std::vector<OwnedRecord> records(20000, make_record("0123456789abcdef", std::string(100, 'v')));
  for (const OwnedRecord& record : records) {
    ASSERT_TRUE(builder.append(record.ref()));
  }
  expect_decodes_to(builder.seal(), records);
}

}  // namespace
}  // namespace weir::log
