#include "log/record/compression.h"

#include "log/record/lz4_frame.h"
#include "tests/log/record/fixtures.h"

#include <map>
#include <zlib.h>
#include <zstd.h>

namespace weir::log {
namespace {

using testing::from_hex;
using testing::read_json;
using testing::to_hex;

constexpr std::size_t kLimit = 16U << 20U;

std::uint8_t codec_bits(const std::string& name) {
  static const std::map<std::string, std::uint8_t> kBits = {
      {"gzip", 1}, {"snappy", 2}, {"lz4", 3}, {"zstd", 4}};
  return kBits.at(name);
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

TEST(Decompress, ReadsWhatKafkasWritersProduce) {
  const nlohmann::json vectors = read_json("vectors/vectors.json")["compressed"];
  ASSERT_EQ(vectors.size(), 44U);
  for (const auto& vector : vectors) {
    SCOPED_TRACE(vector["codec"].get<std::string>() + " " + vector["inputLength"].dump());
    const std::string input = from_hex(vector["output"].get<std::string>());
    const auto plain = decompress(codec_bits(vector["codec"]), input, kLimit);
    ASSERT_TRUE(plain.ok()) << plain.error().message();
    EXPECT_EQ(plain->size(), vector["inputLength"].get<std::size_t>());
    EXPECT_EQ(to_hex(plain->view()), to_hex(pattern(vector["input"])));
  }
}

TEST(Decompress, AcceptsAndRejectsTheFramingsThatKafkasReadersDo) {
  const nlohmann::json vectors = read_json("vectors/vectors.json")["decompress"];
  ASSERT_EQ(vectors.size(), 80U);
  for (const auto& vector : vectors) {
    SCOPED_TRACE(vector["codec"].get<std::string>() + ": " + vector["what"].get<std::string>());
    const std::string input = from_hex(vector["input"].get<std::string>());
    const auto plain = decompress(codec_bits(vector["codec"]), input, kLimit);
    ASSERT_EQ(plain.ok(), vector.contains("output"))
        << (plain.ok() ? "accepted" : plain.error().message());
    if (plain.ok()) {
      EXPECT_EQ(to_hex(plain->view()), vector["output"].get<std::string>());
    } else {
      EXPECT_EQ(plain.error().code(), Errc::kCorrupt);
    }
  }
}

TEST(Decompress, RefusesUnknownCodecs) {
  for (std::uint8_t bits = 5; bits <= 7; ++bits) {
    EXPECT_EQ(decompress(bits, "x", kLimit).error().code(), Errc::kUnsupported);
  }
}

TEST(Decompress, StopsAtTheLimitAndReadsUpToIt) {
  const nlohmann::json vectors = read_json("vectors/vectors.json")["compressed"];
  for (const auto& vector : vectors) {
    const auto size = vector["inputLength"].get<std::size_t>();
    if (size == 0) {
      continue;
    }
    SCOPED_TRACE(vector["codec"].get<std::string>() + " " + vector["inputLength"].dump());
    const std::string input = from_hex(vector["output"].get<std::string>());
    EXPECT_TRUE(decompress(codec_bits(vector["codec"]), input, size).ok());
    EXPECT_EQ(decompress(codec_bits(vector["codec"]), input, size - 1).error().code(),
              Errc::kCorrupt);
  }
}

std::string gzip_of(const std::string& plain) {
  z_stream stream{};
  EXPECT_EQ(deflateInit2(&stream, 9, Z_DEFLATED, 16 + MAX_WBITS, 8, Z_DEFAULT_STRATEGY), Z_OK);
  std::string out(plain.size() + 1000, '\0');
  std::string in = plain;
  stream.next_in = reinterpret_cast<Bytef*>(in.data());
  stream.avail_in = static_cast<uInt>(in.size());
  stream.next_out = reinterpret_cast<Bytef*>(out.data());
  stream.avail_out = static_cast<uInt>(out.size());
  EXPECT_EQ(deflate(&stream, Z_FINISH), Z_STREAM_END);
  out.resize(stream.total_out);
  deflateEnd(&stream);
  return out;
}

std::string zstd_of(const std::string& plain) {
  std::string out(ZSTD_compressBound(plain.size()), '\0');
  out.resize(ZSTD_compress(out.data(), out.size(), plain.data(), plain.size(), 3));
  return out;
}

TEST(Decompress, ReadsContentFarLargerThanItsStream) {
  const std::string plain(20'000'000, 'a');

  const auto gzip = decompress(1, gzip_of(plain), 1U << 25U);
  ASSERT_TRUE(gzip.ok()) << gzip.error().message();
  EXPECT_EQ(gzip->view(), plain);
  const auto zstd = decompress(4, zstd_of(plain), 1U << 25U);
  ASSERT_TRUE(zstd.ok()) << zstd.error().message();
  EXPECT_EQ(zstd->view(), plain);
}

TEST(Decompress, DoesNotBelieveABombsClaims) {
  const std::string bomb(20'000'000, 'a');

  EXPECT_EQ(decompress(1, gzip_of(bomb), 1'000'000).error().code(), Errc::kCorrupt);
  EXPECT_EQ(decompress(4, zstd_of(bomb), 1'000'000).error().code(), Errc::kCorrupt);
  // A snappy block of 6 bytes that says it holds 200 MiB; with a limit above that.
  const auto claim = decompress(2, from_hex("808080640461"), 1U << 30U);
  EXPECT_THAT(claim.error().message(), ::testing::HasSubstr("a block's length is wrong"));
}

TEST(Decompress, ReadsAGzipMemberWithEveryOptionalField) {
  // extra field of 3 bytes, name, comment, header crc
  std::string member = gzip_of("content");
  std::string header = member.substr(0, 10);
  header[3] = 0x1e;
  header += std::string("\x03\0xyz", 5) + std::string("name\0", 5) + std::string("comment\0", 8);
  const auto crc = static_cast<std::uint32_t>(
      crc32(0, reinterpret_cast<const Bytef*>(header.data()), static_cast<uInt>(header.size())));
  header.push_back(static_cast<char>(crc));
  header.push_back(static_cast<char>(crc >> 8U));

  const auto plain = decompress(1, header + member.substr(10), kLimit);
  ASSERT_TRUE(plain.ok()) << plain.error().message();
  EXPECT_EQ(plain->view(), "content");

  header[11] = 'X';  // an extra field longer than the stream
  EXPECT_EQ(decompress(1, header + member.substr(10), kLimit).error().code(), Errc::kCorrupt);
  header[11] = 0;
  header[12] = 'q';  // the header's crc is wrong now
  EXPECT_EQ(decompress(1, header + member.substr(10), kLimit).error().code(), Errc::kCorrupt);
}

// GZIPInputStream looks for a further member only in more than 26 bytes, its own trailer included.
TEST(Decompress, TakesAShortRestBehindAGzipMemberForJunkAndALongOneForAMember) {
  const std::string member = gzip_of("content");
  const std::string other =
      gzip_of(std::string(testing::from_hex("0badc0de")) + "a longer content");

  EXPECT_EQ(decompress(1, member + other.substr(0, 18), kLimit)->view(), "content");
  EXPECT_EQ(decompress(1, member + other.substr(0, 19), kLimit).error().code(), Errc::kCorrupt);
  EXPECT_EQ(decompress(1, member + member, kLimit)->view(), "contentcontent");
}

// Values of the xxHash specification and of the reference implementation.
TEST(Xxh32, GivesKnownHashes) {
  EXPECT_EQ(internal::xxh32(""), 0x02cc5d05U);
  EXPECT_EQ(internal::xxh32("a"), 0x550d7456U);
  EXPECT_EQ(internal::xxh32("abc"), 0x32d153ffU);
  EXPECT_EQ(internal::xxh32("Nobody inspects the spammish repetition"), 0xe2293b2fU);
}

}  // namespace
}  // namespace weir::log
