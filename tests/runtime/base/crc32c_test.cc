#include "tests/runtime/base/vector_file.h"

#include <weir/runtime/crc32c.h>
#include <weir/runtime/rng.h>

#include <gtest/gtest.h>

#include <string>

namespace weir {
namespace {

// The definition, bit by bit.
std::uint32_t reference_crc(ByteView bytes) {
  std::uint32_t crc = 0xffffffffU;
  for (const char byte : bytes) {
    crc ^= static_cast<unsigned char>(byte);
    for (int bit = 0; bit < 8; ++bit) {
      crc = (crc >> 1U) ^ ((crc & 1U) != 0 ? 0x82f63b78U : 0U);
    }
  }
  return ~crc;
}

std::string random_bytes(Rng& rng, std::size_t size) {
  std::string bytes(size, '\0');
  for (char& byte : bytes) {
    byte = static_cast<char>(rng.below(256));
  }
  return bytes;
}

TEST(Crc32c, GivesTheCheckValue) {
  EXPECT_EQ(crc32c("123456789"), 0xe3069283U);
  EXPECT_EQ(internal::crc32c_portable(0, "123456789"), 0xe3069283U);
  EXPECT_EQ(crc32c(""), 0U);
}

// RFC 3720, B.4.
TEST(Crc32c, GivesTheValuesOfIscsi) {
  EXPECT_EQ(crc32c(std::string(32, '\0')), 0x8a9136aaU);
  EXPECT_EQ(crc32c(std::string(32, '\xff')), 0x62a8ab43U);
}

TEST(Crc32c, GivesKafkasValues) {
  for (const auto& row : testing::read_vectors("crc32c.txt")) {
    const std::string bytes = testing::from_hex(row.at(0));
    const auto expected = static_cast<std::uint32_t>(std::stoul(row.at(1)));

    EXPECT_EQ(crc32c(bytes), expected) << bytes.size() << " bytes";
    EXPECT_EQ(internal::crc32c_portable(0, bytes), expected) << bytes.size() << " bytes";
  }
}

// Around every border of the interleaved path: 8, 24, 384 bytes, and more than one round.
TEST(Crc32c, AgreesWithTheDefinitionAtEveryLength) {
  Rng rng(17);
  const std::string bytes = random_bytes(rng, 900);
  for (std::size_t size = 0; size <= bytes.size(); ++size) {
    const ByteView part = ByteView(bytes).substr(bytes.size() - size);
    const std::uint32_t expected = reference_crc(part);
    ASSERT_EQ(crc32c(part), expected) << size << " bytes";
    ASSERT_EQ(internal::crc32c_portable(0, part), expected) << size << " bytes";
  }
}

TEST(Crc32c, AgreesWithTheDefinitionOnLongInput) {
  Rng rng(18);
  const std::string bytes = random_bytes(rng, 200'003);
  for (const std::size_t size : {24'575U, 24'576U, 24'577U, 24'960U, 49'152U, 65'536U, 200'000U}) {
    for (const std::size_t start : {0U, 1U, 3U}) {
      const ByteView part = ByteView(bytes).substr(start, size);
      ASSERT_EQ(crc32c(part), reference_crc(part)) << size << " bytes at " << start;
    }
  }
}

TEST(Crc32c, ContinuesOverAnySplit) {
  constexpr std::uint64_t kSeed = 19;
  Rng rng(kSeed);
  const std::string bytes = random_bytes(rng, 3000);
  const std::uint32_t whole = crc32c(bytes);
  for (int i = 0; i < 500; ++i) {
    const std::size_t cut = rng.below(bytes.size() + 1);
    const ByteView head = ByteView(bytes).substr(0, cut);
    const ByteView tail = ByteView(bytes).substr(cut);
    ASSERT_EQ(crc32c_extend(crc32c(head), tail), whole) << "seed " << kSeed << " cut " << cut;
    ASSERT_EQ(internal::crc32c_portable(internal::crc32c_portable(0, head), tail), whole);
  }
}

}  // namespace
}  // namespace weir
