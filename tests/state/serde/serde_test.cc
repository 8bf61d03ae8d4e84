#include <weir/state/aggregate_serde.h>
#include <weir/state/protobuf_serde.h>
#include <weir/state/serde.h>

#include <gmock/gmock.h>
#include <google/protobuf/struct.pb.h>
#include <google/protobuf/wrappers.pb.h>
#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <map>

namespace weir {

struct Money {
  std::int64_t cents = 0;
  friend bool operator==(const Money&, const Money&) = default;
};
template <>
struct Serde<Money> {
  static constexpr std::string_view kName = "money";
  static void write(const Money& value, std::string& out) { out += std::to_string(value.cents); }
  static Result<Money> read(ByteView bytes) {
    Money money;
    for (const char digit : bytes) {
      if (digit < '0' || digit > '9') {
        return Error(Errc::kCorrupt, "no money");
      }
      money.cents = money.cents * 10 + (digit - '0');
    }
    return money;
  }
};

namespace {

using ::testing::HasSubstr;

enum class Colour : std::uint16_t { kRed = 1, kBlue = 0x0203 };

struct Item {
  std::string name;
  std::int32_t count = 0;
  friend bool operator==(const Item&, const Item&) = default;
};
struct Order {
  std::int64_t id = 0;
  bool paid = false;
  Colour colour = Colour::kRed;
  double weight = 0;
  std::vector<Item> items;
  std::optional<std::string> note;
  Bytes raw;
  Money price;
  friend bool operator==(const Order&, const Order&) = default;
};
struct Sixteen {
  std::int8_t a, b, c, d, e, f, g, h, i, j, k, l, m, n, o, p;
  friend bool operator==(const Sixteen&, const Sixteen&) = default;
};
struct Seventeen {
  std::int8_t a, b, c, d, e, f, g, h, i, j, k, l, m, n, o, p, q;
};
struct HoldsPointer {
  std::int32_t a;
  const char* b;
};
struct HoldsMap {
  std::map<std::string, int> a;
};
class Closed {
 public:
  explicit Closed(int value) : value_(value) {}
  int value() const { return value_; }

 private:
  int value_;
};

// What has a serde, and what does not compile where it meets a topic or a store.
static_assert(Serdeable<std::string> && Serdeable<Bytes> && Serdeable<std::int16_t> &&
              Serdeable<std::int32_t> && Serdeable<std::int64_t> && Serdeable<float> &&
              Serdeable<double> && Serdeable<std::optional<std::int64_t>> && Serdeable<Money> &&
              Serdeable<Order> && Serdeable<Item> && Serdeable<Sixteen> &&
              Serdeable<google::protobuf::Struct>);
static_assert(!Serdeable<Closed> && !Serdeable<Seventeen> && !Serdeable<HoldsPointer> &&
              !Serdeable<HoldsMap> && !Serdeable<int*> && !Serdeable<const char*> &&
              !Serdeable<std::vector<std::string>> && !Serdeable<std::map<int, int>> &&
              !Serdeable<void*> && !Serdeable<unsigned> && !Serdeable<std::optional<Closed>>);
static_assert(Serde<std::string>::kName == "string" && Serde<std::int64_t>::kName == "long" &&
              Serde<std::optional<std::int32_t>>::kName == "integer" &&
              Serde<Order>::kName == "aggregate");

template <class T>
std::string bytes_of(const T& value) {
  std::string out;
  Serde<T>::write(value, out);
  return out;
}

template <std::size_t N>
std::string raw(const char (&literal)[N]) {
  return std::string(literal, N - 1);
}

// Kafka's serializers are ByteBuffer.putX, big-endian; the bytes follow from that by hand.
TEST(Serde, WritesNumbersAsKafkaDoes) {
  EXPECT_EQ(bytes_of<std::int16_t>(0x0102), raw("\x01\x02"));
  EXPECT_EQ(bytes_of<std::int32_t>(-2), raw("\xff\xff\xff\xfe"));
  EXPECT_EQ(bytes_of<std::int64_t>(1), raw("\0\0\0\0\0\0\0\x01"));
  EXPECT_EQ(bytes_of<std::int64_t>(std::numeric_limits<std::int64_t>::min()),
            raw("\x80\0\0\0\0\0\0\0"));
  EXPECT_EQ(bytes_of(1.0F), raw("\x3f\x80\0\0"));
  EXPECT_EQ(bytes_of(-2.5), raw("\xc0\x04\0\0\0\0\0\0"));
}

TEST(Serde, ReadsBackWhatItWrote) {
  for (const std::int64_t value :
       {std::int64_t{0}, std::int64_t{-1}, std::numeric_limits<std::int64_t>::max()}) {
    EXPECT_EQ(Serde<std::int64_t>::read(bytes_of(value)).value(), value);
  }
  EXPECT_EQ(Serde<double>::read(bytes_of(0.1)).value(), 0.1);
  EXPECT_TRUE(std::isnan(Serde<float>::read(bytes_of(std::nanf(""))).value()));
  EXPECT_EQ(Serde<std::string>::read("a\0b").value(), "a");
  EXPECT_EQ(Serde<Bytes>::read(raw("a\0b")).value().data, raw("a\0b"));
}

TEST(Serde, RefusesNumbersOfAnotherSize) {
  const Result<std::int64_t> read = Serde<std::int64_t>::read("1234");
  ASSERT_FALSE(read.ok());
  EXPECT_EQ(read.error().code(), Errc::kCorrupt);
  EXPECT_THAT(read.error().message(), HasSubstr("long takes 8 bytes but these are 4"));
}

TEST(Serde, NullIsTheAbsenceOfAnOptionalAndAnErrorElsewhere) {
  std::string scratch = "left over";
  EXPECT_TRUE(write_nullable(std::optional<std::string>(), scratch).is_null());
  EXPECT_EQ(write_nullable(std::optional<std::string>(""), scratch), NullableBytes(ByteView("")));
  EXPECT_EQ(write_nullable(std::string("x"), scratch), NullableBytes(ByteView("x")));
  EXPECT_EQ(read_nullable<std::optional<std::int32_t>>(NullableBytes()).value(), std::nullopt);
  EXPECT_EQ(read_nullable<std::optional<std::int32_t>>(ByteView("\0\0\0\x07", 4)).value(), 7);
  EXPECT_EQ(read_nullable<std::int32_t>(NullableBytes()).error().code(), Errc::kCorrupt);
}

Order order() {
  return {.id = 5,
          .paid = true,
          .colour = Colour::kBlue,
          .weight = 1.0,
          .items = {{"ab", 1}, {"", -1}},
          .note = "n",
          .raw = {raw("\0\xff")},
          .price = {250}};
}

// docs/formats/serde.md, by hand.
TEST(AggregateSerde, HasTheDocumentedLayout) {
  EXPECT_EQ(bytes_of(order()), raw("\x01"                  // format
                                   "\0\0\0\0\0\0\0\x05"    // id
                                   "\x01"                  // paid
                                   "\x02\x03"              // colour
                                   "\x3f\xf0\0\0\0\0\0\0"  // weight
                                   "\x02"                  // two items
                                   "\x02"
                                   "ab\0\0\0\x01"        // "ab", 1
                                   "\0\xff\xff\xff\xff"  // "", -1
                                   "\x01\x01n"           // note
                                   "\x02\0\xff"          // raw
                                   "\x03"
                                   "250"));  // money's own serde
}

TEST(AggregateSerde, ReadsBackWhatItWrote) {
  EXPECT_EQ(Serde<Order>::read(bytes_of(order())).value(), order());
  EXPECT_EQ(Serde<Order>::read(bytes_of(Order{})).value(), Order{});
  const Sixteen all{1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16};
  EXPECT_EQ(Serde<Sixteen>::read(bytes_of(all)).value(), all);
}

TEST(AggregateSerde, RefusesEveryTruncationTrailingBytesAndOtherFormats) {
  const std::string bytes = bytes_of(order());
  for (std::size_t size = 0; size < bytes.size(); ++size) {
    EXPECT_FALSE(Serde<Order>::read(bytes.substr(0, size)).ok()) << size;
  }
  EXPECT_FALSE(Serde<Order>::read(bytes + "x").ok());
  const Result<Order> other = Serde<Order>::read("\x02" + bytes.substr(1));
  ASSERT_FALSE(other.ok());
  EXPECT_THAT(other.error().message(), HasSubstr("format byte 2"));
}

TEST(AggregateSerde, RefusesLengthsAndFlagsThatCannotBe) {
  // A vector that claims 2^63 elements, and a bool of 2.
  EXPECT_FALSE(Serde<Order>::read(raw("\x01\0\0\0\0\0\0\0\x05\x01\x02\x03\0\0\0\0\0\0\0\0"
                                      "\xff\xff\xff\xff\xff\xff\xff\xff\x7f"))
                   .ok());
  EXPECT_FALSE(Serde<Order>::read(raw("\x01\0\0\0\0\0\0\0\x05\x02") + std::string(30, '\0')).ok());
}

// protobuf's encoding guide: field 1, varint 150 = 08 96 01.
TEST(ProtobufSerde, IsTheWireFormat) {
  google::protobuf::Int64Value message;
  message.set_value(150);
  EXPECT_EQ(bytes_of(message), raw("\x08\x96\x01"));
  EXPECT_EQ(Serde<google::protobuf::Int64Value>::read(raw("\x08\x96\x01")).value().value(), 150);
}

TEST(ProtobufSerde, WritesEqualMapsEqually) {
  google::protobuf::Struct forwards;
  google::protobuf::Struct backwards;
  for (int i = 0; i < 100; ++i) {
    (*forwards.mutable_fields())[std::to_string(i)].set_number_value(i);
    (*backwards.mutable_fields())[std::to_string(99 - i)].set_number_value(99 - i);
  }
  EXPECT_EQ(bytes_of(forwards), bytes_of(backwards));
}

TEST(ProtobufSerde, NamesTheMessageThatTheBytesAreNot) {
  const auto read = Serde<google::protobuf::Int64Value>::read(raw("\x0a\x7f"));
  ASSERT_FALSE(read.ok());
  EXPECT_EQ(read.error().code(), Errc::kCorrupt);
  EXPECT_THAT(read.error().message(), HasSubstr("google.protobuf.Int64Value"));
}

}  // namespace
}  // namespace weir
