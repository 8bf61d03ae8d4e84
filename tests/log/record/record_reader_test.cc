#include "log/record/record_reader.h"

#include "tests/log/record/fixtures.h"

#include <cstring>
#include <random>

namespace weir::log {
namespace {

using testing::from_hex;

// `record` behind enough bytes that the plain reader may try it.
const char* read_plainly(const std::string& padded, RawRecord& record) {
  return internal::read_plain_record(padded.data(), padded.data() + padded.size(), record);
}

const char* read_carefully(const std::string& padded, RawRecord& record, const char** fault) {
  return read_record_carefully(padded.data(), padded.data() + padded.size(), record, fault);
}

std::string fault_of(const std::string& hex) {
  RawRecord record;
  const char* fault = "none";
  const std::string bytes = from_hex(hex);
  return read_carefully(bytes, record, &fault) == nullptr ? fault : "none";
}

TEST(ReadRecordCarefully, NamesTheFault) {
  EXPECT_EQ(fault_of("10000000026b027600"), "none");
  EXPECT_EQ(fault_of(""), "the batch ends before it");
  EXPECT_EQ(fault_of("80"), "the record's length is cut or too long");
  EXPECT_EQ(fault_of("01"), "the record's length is negative");
  EXPECT_EQ(fault_of("10000000026b0276"), "the record is longer than the bytes left in the batch");
  EXPECT_EQ(fault_of("00"), "the record has no attributes");
  EXPECT_EQ(fault_of("040080"), "timestampDelta is cut or too long");
  EXPECT_EQ(fault_of("060000ff"), "offsetDelta is cut or too long");
  EXPECT_EQ(fault_of("08000000ff"), "the key's length is cut or too long");
  EXPECT_EQ(fault_of("0a000000046b"), "the key is longer than the record");
  EXPECT_EQ(fault_of("0a000000026b"), "the value's length is cut or too long");
  EXPECT_EQ(fault_of("0e000000026b0476"), "the value is longer than the record");
  EXPECT_EQ(fault_of("0e000000026b0276"), "the count of headers is cut or too long");
  EXPECT_EQ(fault_of("10000000026b027601"), "the count of headers is negative");
  EXPECT_EQ(fault_of("10000000026b027602"), "the count of headers is larger than the bytes left");
  EXPECT_EQ(fault_of("12000000026b02760201"), "a header name's length is negative");
  EXPECT_EQ(fault_of("14000000026b0276020203"), "a header value's length is cut or too long");
  EXPECT_EQ(fault_of("14000000026b0276020468"), "a header name is longer than the record");
  EXPECT_EQ(fault_of("16000000026b027602026803"), "a header value's length is below -1");
  EXPECT_EQ(fault_of("16000000026b027602026804"), "a header value is longer than the record");
  EXPECT_EQ(fault_of("12000000026b02760000"), "the record has bytes behind its last field");
}

TEST(ReadRecordCarefully, TakesEveryNegativeLengthForNullAndSaysSo) {
  const std::string bytes = from_hex("0c000000030300");  // key and value of -2 bytes
  RawRecord record;
  const char* fault = nullptr;

  ASSERT_EQ(read_carefully(bytes, record, &fault), bytes.data() + bytes.size()) << fault;
  EXPECT_TRUE(record.key.is_null());
  EXPECT_TRUE(record.value.is_null());
  EXPECT_TRUE(record.odd_length);
}

TEST(ReadPlainRecord, LeavesOddOnesToTheCarefulReader) {
  const std::string far(64, '\0');
  RawRecord record;

  EXPECT_NE(read_plainly(from_hex("0c000000010100") + far, record), nullptr);  // two nulls
  EXPECT_EQ(read_plainly(from_hex("0c000000030100") + far, record), nullptr);  // key of -2
  EXPECT_EQ(read_plainly(from_hex("0c000000010300") + far, record), nullptr);  // value of -2
  EXPECT_EQ(read_plainly(from_hex("0c000001010100") + far, record), nullptr);  // offset delta -1
  EXPECT_EQ(read_plainly(from_hex("0e000000010100") + far, record), nullptr);  // one byte too long
}

// Numbers at the borders of one, two, three bytes and beyond; lengths that fit and lengths that
// lie.
std::string random_record(std::mt19937_64& random) {
  const auto below = [&](std::uint64_t bound) { return random() % bound; };
  char number[10];
  const auto append = [&](std::string& out, std::uint64_t raw) {
    out.append(number, write_uvarint(number, raw));
  };
  std::string body(1, static_cast<char>(below(2)));
  append(body, random() >> below(64));
  append(body, below(10) == 0 ? random() >> (32 + below(32)) : 2 * below(10000));
  for (int field = 0; field < 2; ++field) {
    const std::uint64_t size = below(4) == 0 ? below(300) : below(70);
    append(body, below(10) == 0 ? random() >> (32 + below(32)) : below(8) == 0 ? 1 : 2 * size);
    body.append(size, static_cast<char>('a' + field));
  }
  append(body, below(10) == 0 ? below(4) : 0);
  std::string record;
  append(record, 2 * body.size() + (below(10) == 0 ? below(4) : 0));
  return record + body;
}

void expect_equal(const RawRecord& a, const RawRecord& b) {
  EXPECT_EQ(a.key, b.key);
  EXPECT_EQ(a.value, b.value);
  EXPECT_EQ(a.key.view_or_empty().data(), b.key.view_or_empty().data());
  EXPECT_EQ(a.value.view_or_empty().data(), b.value.view_or_empty().data());
  EXPECT_EQ(a.headers, b.headers);
  EXPECT_EQ(a.timestamp_delta, b.timestamp_delta);
  EXPECT_EQ(a.offset_delta, b.offset_delta);
  EXPECT_EQ(a.header_count, b.header_count);
  EXPECT_EQ(a.odd_length, b.odd_length);
}

TEST(ReadPlainRecord, GivesWhatTheCarefulReaderGivesOrNothing) {
  const auto seed = std::random_device{}();
  SCOPED_TRACE(::testing::Message() << "seed " << seed);
  std::mt19937_64 random(seed);
  int plain_count = 0;
  for (int i = 0; i < 50000 && !HasFailure(); ++i) {
    const std::string bytes = random_record(random) + std::string(random() % 40, 'z');
    RawRecord plain;
    RawRecord careful;
    const char* fault = nullptr;
    const char* const end = read_carefully(bytes, careful, &fault);
    const char* const plain_end = read_plainly(bytes, plain);
    if (plain_end != nullptr) {
      ++plain_count;
      ASSERT_EQ(plain_end, end) << testing::to_hex(bytes);
      expect_equal(plain, careful);
    }
  }
  EXPECT_GT(plain_count, 10000);
}

}  // namespace
}  // namespace weir::log
