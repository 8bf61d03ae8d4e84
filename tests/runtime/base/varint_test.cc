#include "tests/runtime/base/vector_file.h"

#include <weir/runtime/rng.h>
#include <weir/runtime/varint.h>

#include <gtest/gtest.h>

#include <optional>
#include <string>

namespace weir {
namespace {

template <class Number>
struct Codec {
  char* (*write)(char* out, Number value);
  const char* (*read)(const char* in, const char* end, Number* value);
  std::size_t (*size)(Number value);
};

constexpr Codec<std::int32_t> kVarint{write_varint, read_varint, varint_size};
constexpr Codec<std::int64_t> kVarlong{write_varlong, read_varlong, varlong_size};
constexpr Codec<std::uint64_t> kUnsigned{write_uvarint, read_uvarint64, uvarint_size};

template <class Number>
void expect_both_ways(const Codec<Number>& codec, Number value, const std::string& bytes) {
  char out[10];
  char* const behind = codec.write(out, value);
  Number read{};
  const char* const end = bytes.data() + bytes.size();

  EXPECT_EQ(std::string(static_cast<char*>(out), behind), bytes) << value;
  EXPECT_EQ(codec.size(value), bytes.size()) << value;
  EXPECT_EQ(codec.read(bytes.data(), end, &read), end) << value;
  EXPECT_EQ(read, value);
}

TEST(Varint, WritesAndReadsKafkasBytes) {
  for (const auto& row : testing::read_vectors("varint.txt")) {
    expect_both_ways(kVarint, std::stoi(row.at(0)), testing::from_hex(row.at(1)));
  }
}

TEST(Varlong, WritesAndReadsKafkasBytes) {
  for (const auto& row : testing::read_vectors("varlong.txt")) {
    expect_both_ways(kVarlong, std::int64_t{std::stoll(row.at(0))}, testing::from_hex(row.at(1)));
  }
}

TEST(UnsignedVarint, WritesAndReadsKafkasBytes) {
  for (const auto& row : testing::read_vectors("unsigned_varint.txt")) {
    const std::string bytes = testing::from_hex(row.at(1));
    const auto value = static_cast<std::uint32_t>(std::stoul(row.at(0)));
    std::uint32_t read = 0;

    expect_both_ways(kUnsigned, std::uint64_t{value}, bytes);
    EXPECT_EQ(read_uvarint32(bytes.data(), bytes.data() + bytes.size(), &read),
              bytes.data() + bytes.size());
    EXPECT_EQ(read, value);
  }
}

TEST(UnsignedVarlong, WritesAndReadsKafkasBytes) {
  for (const auto& row : testing::read_vectors("unsigned_varlong.txt")) {
    // Java prints the unsigned value as a signed one.
    const auto value = row.at(0).front() == '-'
                           ? static_cast<std::uint64_t>(std::stoll(row.at(0)))
                           : static_cast<std::uint64_t>(std::stoull(row.at(0)));
    expect_both_ways(kUnsigned, value, testing::from_hex(row.at(1)));
  }
}

struct ReadOutcome {
  std::int64_t value = 0;
  std::int64_t used = 0;
  friend bool operator==(const ReadOutcome&, const ReadOutcome&) = default;
};

template <class Number>
std::optional<ReadOutcome> outcome(const char* (*read)(const char*, const char*, Number*),
                                   const std::string& bytes) {
  Number value{};
  const char* const behind = read(bytes.data(), bytes.data() + bytes.size(), &value);
  if (behind == nullptr) {
    return std::nullopt;
  }
  return ReadOutcome{static_cast<std::int64_t>(value), behind - bytes.data()};
}

// Over-long, padded, cut and overflowing encodings: what Kafka accepts we accept with its value,
// what it rejects we reject.
TEST(VarintReads, TreatOddEncodingsAsKafkaDoes) {
  for (const auto& row : testing::read_vectors("varint_read.txt")) {
    const std::string bytes = testing::from_hex(row.at(1));
    std::optional<ReadOutcome> expected;
    if (row.at(2) != "rejected") {
      expected = ReadOutcome{std::stoll(row.at(2)), std::stoll(row.at(3))};
    }
    std::optional<ReadOutcome> actual;
    if (row.at(0) == "varint") {
      actual = outcome(read_varint, bytes);
    } else if (row.at(0) == "varlong") {
      actual = outcome(read_varlong, bytes);
    } else {
      actual = outcome(read_uvarint32, bytes);
    }

    EXPECT_EQ(actual.has_value(), expected.has_value()) << row.at(0) << " " << row.at(1);
    if (actual && expected) {
      EXPECT_EQ(actual->value, expected->value) << row.at(0) << " " << row.at(1);
      EXPECT_EQ(actual->used, expected->used) << row.at(0) << " " << row.at(1);
    }
  }
}

TEST(VarintReads, NeverReadBehindTheEnd) {
  Rng rng(23);
  for (int i = 0; i < 2000; ++i) {
    const auto value = static_cast<std::int64_t>(rng.next() >> rng.below(64));
    char out[10];
    const char* const end = write_varlong(out, value);
    for (const char* cut = out; cut != end; ++cut) {
      std::int64_t read = 0;
      ASSERT_EQ(read_varlong(out, cut, &read), nullptr);
    }
    std::int64_t read = 0;
    ASSERT_EQ(read_varlong(out, end, &read), end);
    ASSERT_EQ(read, value);
  }
}

}  // namespace
}  // namespace weir
