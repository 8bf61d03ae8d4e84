#pragma once

#include <weir/runtime/bytes.h>
#include <weir/runtime/varint.h>

#include <cstddef>
#include <cstdint>
#include <cstring>

namespace weir::log {

// One record as it stands in a batch (org.apache.kafka.common.record.DefaultRecord):
//
//   length varint | attributes i8 | timestampDelta varlong | offsetDelta varint
//   | keyLength varint | key | valueLength varint | value | headers count varint
//   | headers: count times {nameLength varint | name | valueLength varint | value}
//
// Negative lengths of key and value are null, all of them, as for Kafka's reader. A header value's
// is -1 or the record is refused: HeadersView promises bytes that parse, with -1 as the only null.
struct RawRecord {
  NullableBytes key;
  NullableBytes value;
  const char* headers = nullptr;
  std::int64_t timestamp_delta = 0;
  std::int32_t offset_delta = 0;
  std::int32_t header_count = 0;
  bool odd_length = false;  // key or value below -1: Kafka reads it, others need not
};

// Every step checked; what read_record() falls back to and what names the fault.
// Returns the end of the record, or null with `*fault` set.
const char* read_record_carefully(const char* in, const char* end, RawRecord& record,
                                  const char** fault);

namespace internal {

// By value, so that it lives in two registers. `next` is null when the number is too long.
struct Number {
  const char* next;
  std::uint64_t raw;
};

// [in, in + 10) must be readable.
Number read_long_number32(const char* in);
Number read_long_number64(const char* in);

// Numbers of one or two bytes are nearly all of a record's. [in, in + 10) must be readable.
template <class Long>
[[gnu::always_inline]] inline Number read_number(const char* in, Long read_long) {
  std::uint16_t pair = 0;
  std::memcpy(&pair, in, sizeof(pair));
  if ((pair & 0x80U) == 0) [[likely]] {
    return {in + 1, pair & 0x7fU};
  }
  if ((pair & 0x8000U) == 0) [[likely]] {
    return {in + 2, (pair & 0x7fU) | ((pair & 0x7f00U) >> 1U)};
  }
  return read_long(in);
}

[[gnu::always_inline]] inline Number read_number32(const char* in) {
  return read_number(in, read_long_number32);
}

// A length and its bytes, `bytes_behind` more of which must be there. Returns their end, or null,
// also for lengths below -1, which are for the careful reader.
[[gnu::always_inline]] inline const char* read_sized(const char* in, const char* end,
                                                     std::ptrdiff_t bytes_behind,
                                                     NullableBytes& bytes) {
  const Number number = read_number32(in);
  if (number.next == nullptr) [[unlikely]] {
    return nullptr;
  }
  if ((number.raw & 1U) != 0) {
    bytes = NullableBytes();
    return number.raw != 1 || end - number.next < bytes_behind ? nullptr : number.next;
  }
  const auto size = static_cast<std::ptrdiff_t>(number.raw >> 1U);
  if (end - number.next < size + bytes_behind) [[unlikely]] {
    return nullptr;
  }
  bytes = NullableBytes(ByteView(number.next, static_cast<std::size_t>(size)));
  return number.next + size;
}

// length, attributes, timestampDelta, offsetDelta, keyLength at their longest.
inline constexpr std::ptrdiff_t kFrontBytesMax = 5 + 1 + 10 + 5 + 5;
inline constexpr std::ptrdiff_t kNumberBytesMax = 10;

// The whole record when it is well formed, has no headers and lies far enough from `end` that its
// numbers can be read without a check each. Null: nothing is known, ask read_record_carefully().
[[gnu::always_inline]] inline const char* read_plain_record(const char* in, const char* end,
                                                            RawRecord& record) {
  if (end - in < kFrontBytesMax) [[unlikely]] {
    return nullptr;
  }
  const Number length = read_number32(in);
  if (length.next == nullptr) [[unlikely]] {
    return nullptr;
  }
  const char* const body = length.next;
  // Behind the attributes, any value of which is read.
  const Number timestamp = read_number(body + 1, read_long_number64);
  if (timestamp.next == nullptr) [[unlikely]] {
    return nullptr;
  }
  const Number offset = read_number32(timestamp.next);
  if (offset.next == nullptr || (offset.raw & 1U) != 0) [[unlikely]] {
    return nullptr;  // or a negative delta
  }
  const char* p = read_sized(offset.next, end, kNumberBytesMax, record.key);
  if (p == nullptr) [[unlikely]] {
    return nullptr;
  }
  p = read_sized(p, end, 1, record.value);
  // Behind the value one zero byte must follow, the count of headers, and the record must end.
  if (p == nullptr || *p != 0 || static_cast<std::uint64_t>(p + 1 - body) * 2 != length.raw)
      [[unlikely]] {
    return nullptr;
  }
  record.timestamp_delta = unzigzag64(timestamp.raw);
  record.offset_delta = static_cast<std::int32_t>(offset.raw >> 1U);
  record.header_count = 0;
  record.headers = p + 1;
  record.odd_length = false;
  return p + 1;
}

}  // namespace internal

// Reads the record at `in`. Returns its end, or null when it is not well formed within [in, end).
[[gnu::always_inline]] inline const char* read_record(const char* in, const char* end,
                                                      RawRecord& record) {
  if (const char* next = internal::read_plain_record(in, end, record); next != nullptr) [[likely]] {
    return next;
  }
  // A second object, so that the first can live in registers.
  RawRecord careful;
  const char* fault = nullptr;
  const char* const next = read_record_carefully(in, end, careful, &fault);
  record = careful;
  return next;
}

// Smallest record: length, attributes and five numbers of one byte.
inline constexpr std::size_t kRecordBytesMin = 7;

}  // namespace weir::log
