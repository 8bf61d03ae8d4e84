#include "log/record/batch_builder.h"
#include "log/record/compression.h"
#include "tests/log/record/fixtures.h"

#include <fmt/format.h>

#include <map>
#include <random>
#include <thread>

// What we write: compress(), the builder with a codec, and batches that get another codec.

namespace weir::log {
namespace {

using testing::data_path;
using testing::Decoded;
using testing::from_hex;
using testing::read_file;
using testing::read_json;
using testing::split_batches;
using testing::to_hex;
using testing::verify_and_decode;

constexpr std::size_t kLimit = 64U << 20U;
constexpr Timestamp kTime = 1700000000000;

const std::vector<Compression> kEveryLevel = {
    {Codec::kNone, {}},      {Codec::kGzip, {}},   {Codec::kGzip, 1}, {Codec::kGzip, 6},
    {Codec::kGzip, 9},       {Codec::kSnappy, {}}, {Codec::kLz4, {}}, {Codec::kLz4, 1},
    {Codec::kLz4, 8},        {Codec::kLz4, 12},    {Codec::kLz4, 17}, {Codec::kZstd, {}},
    {Codec::kZstd, -131072}, {Codec::kZstd, -5},   {Codec::kZstd, 0}, {Codec::kZstd, 1},
    {Codec::kZstd, 19},      {Codec::kZstd, 22}};

std::string name_of(const Compression& compression) {
  return fmt::format("{} level {}", codec_name(compression.codec), compression.level_in_force());
}

std::uint8_t bits(Codec codec) {
  return static_cast<std::uint8_t>(codec);
}

std::string noise(std::size_t size, std::uint64_t seed) {
  std::mt19937_64 random(seed);
  std::string bytes(size, '\0');
  for (char& byte : bytes) {
    byte = static_cast<char>(random());
  }
  return bytes;
}

std::string words(std::size_t size) {
  std::string text;
  for (std::size_t i = 0; text.size() < size; ++i) {
    text += fmt::format("word{} ", i * i % 977);
  }
  text.resize(size);
  return text;
}

// "76 x 50" is the byte 76 fifty times.
std::string pattern(const std::string& text) {
  const std::size_t times = text.find(" x ");
  if (times == std::string::npos) {
    return from_hex(text);
  }
  const std::string part = from_hex(text.substr(0, times));
  std::string bytes;
  for (int i = std::stoi(text.substr(times + 3)); i > 0; --i) {
    bytes += part;
  }
  return bytes;
}

// zstd writes the content's size, which Kafka's streaming writer does not know.
TEST(Compress, WritesTheBytesThatKafkasWritersDo) {
  const std::map<std::string, Codec> codecs = {
      {"gzip", Codec::kGzip}, {"snappy", Codec::kSnappy}, {"lz4", Codec::kLz4}};
  const nlohmann::json vectors = read_json("vectors/vectors.json")["compressed"];
  int compared = 0;
  for (const auto& vector : vectors) {
    const auto codec = codecs.find(vector["codec"].get<std::string>());
    if (codec == codecs.end()) {
      continue;
    }
    SCOPED_TRACE(codec->first + " " + vector["inputLength"].dump());
    const SharedBytes written =
        compress({codec->second, {}}, pattern(vector["input"].get<std::string>()));
    EXPECT_EQ(to_hex(written.view()), vector["output"].get<std::string>());
    ++compared;
  }
  EXPECT_EQ(compared, 33);
}

// Batches of Kafka's producer at several levels: unpacked and packed again they are the same bytes.
// Not lz4's level 1, for which versions of the library have different algorithms.
TEST(Compress, WritesTheBytesThatKafkasProducerDoesAtEveryLevel) {
  const std::pair<const char*, Compression> cases[] = {
      {"gzip", {Codec::kGzip, {}}},        {"gzip-level-1", {Codec::kGzip, 1}},
      {"gzip-level-9", {Codec::kGzip, 9}}, {"snappy", {Codec::kSnappy, {}}},
      {"lz4", {Codec::kLz4, {}}},          {"lz4-level-17", {Codec::kLz4, 17}}};
  for (const auto& [name, compression] : cases) {
    for (const char* segment : {"00000000000000000000.log", "00000000000000000125.log"}) {
      const std::string bytes =
          read_file(data_path(fmt::format("codecs/{0}/codec-{0}-0/{1}", name, segment)));
      const std::vector<ByteView> batches = split_batches(bytes).value();
      EXPECT_FALSE(batches.empty());
      for (const ByteView batch : batches) {
        const ByteView stream = batch.substr(kBatchHeaderBytes);
        const SharedBytes plain = decompress(bits(compression.codec), stream, kLimit).value();
        EXPECT_TRUE(compress(compression, plain.view()).view() == stream)
            << name << " " << plain.size() << " bytes: " << stream.size() << " of Kafka, "
            << compress(compression, plain.view()).size() << " here";
      }
    }
  }
}

TEST(Compress, ReadsBackWithEveryCodecAndLevel) {
  const std::vector<std::string> inputs = {"",
                                           "a",
                                           std::string(100, 'x'),
                                           words(5000),
                                           noise(300, 1),
                                           words(65536),
                                           words(65537),
                                           noise(65536, 2),
                                           noise(200000, 3),
                                           words(300000),
                                           std::string(1U << 20U, '\0')};
  for (const Compression& compression : kEveryLevel) {
    for (const std::string& input : inputs) {
      SCOPED_TRACE(fmt::format("{}, {} bytes", name_of(compression), input.size()));
      const SharedBytes written = compress(compression, input, 7);
      ASSERT_GE(written.size(), 7U);
      EXPECT_LE(written.size() - 7, compressed_bytes_max(compression.codec, input.size()));
      const auto read = decompress(bits(compression.codec), written.view().substr(7), kLimit, 3);
      ASSERT_TRUE(read.ok()) << read.error().message();
      EXPECT_TRUE(read->view().substr(3) == input);
    }
  }
}

TEST(Compress, TakesTheLevel) {
  const std::string input = words(300000);
  const auto size = [&](Codec codec, std::int32_t level) {
    return compress({codec, level}, input).size();
  };
  EXPECT_LT(size(Codec::kGzip, 9), size(Codec::kGzip, 1));
  EXPECT_LT(size(Codec::kLz4, 12), size(Codec::kLz4, 9));  // 9 is the fast compressor
  EXPECT_EQ(size(Codec::kLz4, 17), size(Codec::kLz4, 12));
  EXPECT_LT(size(Codec::kZstd, 19), size(Codec::kZstd, 1));
  EXPECT_LT(size(Codec::kZstd, 1), size(Codec::kZstd, -131072));
  EXPECT_EQ(compress({Codec::kGzip, {}}, input).view(), compress({Codec::kGzip, 6}, input).view());
  EXPECT_EQ(compress({Codec::kZstd, {}}, input).view(), compress({Codec::kZstd, 3}, input).view());
}

// The states that a thread keeps must not show: not what went before, nor at which level.
TEST(Compress, WritesTheSameWhateverTheThreadWroteBefore) {
  const std::string input = words(90000);
  for (const Compression& compression : kEveryLevel) {
    SCOPED_TRACE(name_of(compression));
    std::string fresh;
    std::thread([&] { fresh = compress(compression, input).view(); }).join();
    for (const Compression& before : kEveryLevel) {
      compress(before, noise(70000, 5));
    }
    EXPECT_TRUE(compress(compression, input).view() == fresh);
  }
}

RecordRef record_of(const std::string& value, Timestamp timestamp = kTime) {
  RecordRef record;
  record.key = ByteView("key");
  record.value = ByteView(value);
  record.timestamp = timestamp;
  return record;
}

TEST(CompressedBatch, SaysItsCodecAndKeepsEveryRecord) {
  for (const Compression& compression : kEveryLevel) {
    SCOPED_TRACE(name_of(compression));
    BatchBuilder builder(1U << 20U, compression);
    for (int round = 0; round < 3; ++round) {  // a builder goes on after a seal
      const std::string value = words(100) + std::to_string(round);
      for (int i = 0; i < 500; ++i) {
        ASSERT_TRUE(builder.append(record_of(value, kTime + i)));
      }
      const std::size_t plain = builder.size_bytes();
      const SharedBytes batch = builder.seal();
      const Result<Decoded> decoded = verify_and_decode(batch.view());
      ASSERT_TRUE(decoded.ok()) << decoded.error().message();
      EXPECT_EQ(decoded->header.codec_bits(), bits(compression.codec));
      if (compression.codec == Codec::kNone) {
        EXPECT_EQ(batch.size(), plain);
      } else if (compression.level != -131072) {  // which looks for nothing
        EXPECT_LT(batch.size(), plain / 2);
      }
      ASSERT_EQ(decoded->records.size(), 500U);
      EXPECT_EQ(decoded->records[499].value.view(), value);
      EXPECT_EQ(decoded->records[499].timestamp, kTime + 499);
      EXPECT_EQ(decoded->header.max_timestamp, kTime + 499);
    }
  }
}

TEST(CompressedBatch, StaysCompressedWhereThatIsLarger) {
  const std::string value = noise(20, 7);
  for (const Codec codec : {Codec::kGzip, Codec::kSnappy, Codec::kLz4, Codec::kZstd}) {
    SCOPED_TRACE(codec_name(codec));
    BatchBuilder builder(1000, {codec, {}});
    ASSERT_TRUE(builder.append(record_of(value)));
    const std::size_t plain = builder.size_bytes();
    const SharedBytes batch = builder.seal();
    EXPECT_GT(batch.size(), plain);
    const Result<Decoded> decoded = verify_and_decode(batch.view());
    ASSERT_TRUE(decoded.ok()) << decoded.error().message();
    EXPECT_EQ(decoded->header.codec_bits(), bits(codec));
    EXPECT_EQ(decoded->records[0].value.view(), value);
  }
}

TEST(CompressedBatch, IsNeverOverTheSizeThatWasAskedForWhateverTheRecords) {
  for (const Codec codec :
       {Codec::kNone, Codec::kGzip, Codec::kSnappy, Codec::kLz4, Codec::kZstd}) {
    for (const std::size_t limit : {std::size_t{1000}, std::size_t{40000}, std::size_t{200000}}) {
      SCOPED_TRACE(fmt::format("{} {}", codec_name(codec), limit));
      BatchBuilder builder(BatchBuilder::batch_bytes_within(limit, codec), {codec, {}});
      std::size_t records = 0;
      for (std::uint64_t seed = 0;; ++seed) {
        const std::string value = noise(30, seed);
        if (!builder.append(record_of(value))) {
          break;
        }
        ++records;
      }
      EXPECT_GT(records * 60, limit / 2);  // and not far below it
      EXPECT_LE(builder.seal().size(), limit);
    }
  }
}

// Snappy batches that Kafka's broker turned into plain ones, and the same turned by us.
TEST(ConvertBatch, WritesTheBytesThatKafkasBrokerDoes) {
  const std::string from = data_path("codecs/snappy/codec-snappy-0/");
  const std::string to =
      data_path("codecs/recompressed-snappy-to-none/codec-recompressed-snappy-to-none-0/");
  for (const char* segment : {"00000000000000000000.log", "00000000000000000125.log"}) {
    const std::string input = read_file(from + segment);
    std::string written;
    const std::vector<ByteView> batches = split_batches(input).value();
    for (const ByteView batch : batches) {
      SharedBytes converted = convert_batch(verify_batch(batch).value(), batch, {}, kLimit).value();
      stamp_crc(converted.data(), converted.size());
      written += converted.view();
    }
    EXPECT_TRUE(written == read_file(to + segment)) << segment;
  }
}

TEST(ConvertBatch, RefusesADamagedStream) {
  BatchBuilder builder(1000, {Codec::kGzip, {}});
  ASSERT_TRUE(builder.append(record_of("value")));
  SharedBytes batch = builder.seal();
  batch.data()[kBatchHeaderBytes + 12] ^= 0x55;
  const BatchHeader header = read_batch_header(batch.view()).value();
  for (const Codec to : {Codec::kNone, Codec::kZstd}) {
    EXPECT_EQ(convert_batch(header, batch.view(), {to, {}}, kLimit).error().code(), Errc::kCorrupt);
  }
}

struct Owned {
  std::optional<std::string> key;
  std::optional<std::string> value;
  Timestamp timestamp = 0;
  Headers headers;

  bool operator==(const RecordView& record) const {
    return key == record.key.to_owned() && value == record.value.to_owned() &&
           timestamp == record.timestamp && headers.view().count() == record.headers.count() &&
           headers.view().encoded() == record.headers.encoded();
  }
};

class RandomBatch {
 public:
  explicit RandomBatch(std::mt19937_64& random) : random_(random) {
    BatchBuilder builder(1U << 20U, {static_cast<Codec>(below(5)), {}});
    for (std::uint64_t i = 1 + below(60); i > 0; --i) {
      records.push_back(record());
      const Owned& added = records.back();
      RecordRef ref;
      ref.key = added.key ? NullableBytes(ByteView(*added.key)) : NullableBytes();
      ref.value = added.value ? NullableBytes(ByteView(*added.value)) : NullableBytes();
      ref.timestamp = added.timestamp;
      ref.headers = added.headers.view();
      EXPECT_TRUE(builder.append(ref));
    }
    BatchBuilder::Producer producer;
    if (below(2) == 0) {
      producer.id = ProducerId(static_cast<std::int64_t>(below(1000)));
      producer.epoch = ProducerEpoch(static_cast<std::int16_t>(below(9)));
      producer.base_sequence = static_cast<std::int32_t>(below(1U << 31U));
      producer.transactional = below(2) == 0;
    }
    bytes = builder.seal(producer);
    stamp_offset(bytes.data(), Offset(static_cast<std::int64_t>(below(1U << 20U))),
                 LeaderEpoch(static_cast<std::int32_t>(below(9))));
    if (below(4) == 0) {
      stamp_append_time(bytes.data(), bytes.size(), kTime + 5);
      for (Owned& stamped : records) {
        stamped.timestamp = kTime + 5;
      }
    }
  }
  std::vector<Owned> records;
  SharedBytes bytes;

 private:
  std::uint64_t below(std::uint64_t bound) { return random_() % bound; }
  std::string text(std::uint64_t size) {
    return below(2) == 0 ? noise(size, random_()) : words(size);
  }
  Owned record() {
    Owned made;
    if (below(4) != 0) {
      made.key = text(below(30));
    }
    if (below(8) != 0) {
      made.value = text(below(below(20) == 0 ? 9000 : 300));
    }
    made.timestamp = kTime + static_cast<Timestamp>(below(1ULL << below(38))) - 1000;
    for (std::uint64_t i = below(3) == 0 ? below(4) : 0; i > 0; --i) {
      made.headers.add(text(below(10)), below(3) == 0 ? NullableBytes() : NullableBytes("value"));
    }
    return made;
  }
  std::mt19937_64& random_;
};

// Fields of the header that a change of the codec leaves alone.
auto lasting(const BatchHeader& header) {
  return std::make_tuple(header.base_offset, header.leader_epoch, header.attributes & ~kCodecMask,
                         header.last_offset_delta, header.base_timestamp, header.max_timestamp,
                         header.producer_id, header.producer_epoch, header.base_sequence,
                         header.records_count);
}

TEST(ConvertBatch, KeepsEveryFieldOfRandomBatchesBetweenAllCodecs) {
  const std::uint64_t seed = std::random_device{}();
  SCOPED_TRACE(::testing::Message() << "seed " << seed);
  std::mt19937_64 random(seed);
  for (int round = 0; round < 40; ++round) {
    const RandomBatch batch(random);
    const BatchHeader original = verify_batch(batch.bytes.view()).value();
    for (int from = 0; from < 5; ++from) {
      SharedBytes first =
          convert_batch(original, batch.bytes.view(), {static_cast<Codec>(from), {}}, kLimit)
              .value();
      stamp_crc(first.data(), first.size());
      for (int to = 0; to < 5; ++to) {
        SCOPED_TRACE(fmt::format("round {} from {} to {}", round, from, to));
        SharedBytes second = convert_batch(verify_batch(first.view()).value(), first.view(),
                                           {static_cast<Codec>(to), {}}, kLimit)
                                 .value();
        stamp_crc(second.data(), second.size());
        const Result<Decoded> decoded = verify_and_decode(second.view());
        ASSERT_TRUE(decoded.ok()) << decoded.error().message();
        EXPECT_EQ(decoded->header.codec_bits(), to);
        EXPECT_EQ(lasting(decoded->header), lasting(original));
        ASSERT_EQ(decoded->records.size(), batch.records.size());
        for (std::size_t i = 0; i < batch.records.size(); ++i) {
          ASSERT_TRUE(batch.records[i] == decoded->records[i]) << i;
          ASSERT_EQ(decoded->records[i].offset,
                    original.base_offset.plus(static_cast<std::int64_t>(i)));
        }
      }
    }
  }
}

}  // namespace
}  // namespace weir::log
