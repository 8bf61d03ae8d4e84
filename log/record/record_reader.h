#pragma once

#include <weir/runtime/bytes.h>
#include <weir/runtime/varint.h>

#include <cstdint>

namespace weir::log {

// One record as it stands in a batch (org.apache.kafka.common.record.DefaultRecord):
//
//   length varint | attributes i8 | timestampDelta varlong | offsetDelta varint
//   | keyLength varint | key | valueLength varint | value | headers count varint
//   | headers: count times {nameLength varint | name | valueLength varint | value}
//
// Negative lengths are kept as they are: readers take each of them as null, as Kafka's does.
struct RawRecord {
  const char* key;
  const char* value;
  const char* headers;
  std::int64_t timestamp_delta;
  std::int32_t offset_delta;
  std::int32_t key_length;
  std::int32_t value_length;
  std::int32_t header_count;
};

// Every step checked; what read_record() falls back to and what names the fault.
// Returns the end of the record, or null with `*fault` set.
const char* read_record_carefully(const char* in, const char* end, RawRecord& record,
                                  const char** fault);

namespace internal {

// [in, in + 10) must be readable. Null when the number is too long.
const char* read_long_number32(const char* in, std::uint32_t* raw);
const char* read_long_number64(const char* in, std::uint64_t* raw);

inline const char* read_number(const char* in, std::uint32_t* raw) {
  const auto first = static_cast<unsigned char>(in[0]);
  *raw = first;
  if (first < 0x80U) [[likely]] {
    return in + 1;
  }
  const auto second = static_cast<unsigned char>(in[1]);
  if (second < 0x80U) [[likely]] {
    *raw = (first & 0x7fU) | (static_cast<std::uint32_t>(second) << 7U);
    return in + 2;
  }
  return read_long_number32(in, raw);
}

inline const char* read_number(const char* in, std::uint64_t* raw) {
  const auto first = static_cast<unsigned char>(in[0]);
  *raw = first;
  if (first < 0x80U) [[likely]] {
    return in + 1;
  }
  const auto second = static_cast<unsigned char>(in[1]);
  if (second < 0x80U) [[likely]] {
    *raw = (first & 0x7fU) | (static_cast<std::uint64_t>(second) << 7U);
    return in + 2;
  }
  return read_long_number64(in, raw);
}

// length, attributes, timestampDelta, offsetDelta, keyLength at their longest.
inline constexpr std::ptrdiff_t kFrontBytesMax = 5 + 1 + 10 + 5 + 5;

// The whole record when it is well formed, has no headers and lies far enough from `end` that its
// numbers can be read without a check each. Null: nothing is known, ask read_record_carefully().
inline const char* read_plain_record(const char* in, const char* end, RawRecord& record) {
  if (end - in < kFrontBytesMax) [[unlikely]] {
    return nullptr;
  }
  std::uint32_t raw = 0;
  const char* p = read_number(in, &raw);
  if (p == nullptr) [[unlikely]] {
    return nullptr;
  }
  const std::int64_t length = unzigzag32(raw);
  const char* const body = p;
  ++p;  // attributes: unused, any value is read
  std::uint64_t raw64 = 0;
  p = read_number(p, &raw64);
  if (p == nullptr) [[unlikely]] {
    return nullptr;
  }
  record.timestamp_delta = unzigzag64(raw64);
  p = read_number(p, &raw);
  if (p == nullptr) [[unlikely]] {
    return nullptr;
  }
  record.offset_delta = unzigzag32(raw);
  p = read_number(p, &raw);
  if (p == nullptr) [[unlikely]] {
    return nullptr;
  }
  record.key_length = unzigzag32(raw);
  record.key = p;
  if (record.key_length > 0) {
    if (end - p < std::int64_t{record.key_length} + 10) [[unlikely]] {
      return nullptr;
    }
    p += record.key_length;
  } else if (end - p < 10) [[unlikely]] {
    return nullptr;
  }
  p = read_number(p, &raw);
  if (p == nullptr) [[unlikely]] {
    return nullptr;
  }
  record.value_length = unzigzag32(raw);
  record.value = p;
  const std::int64_t value_bytes = record.value_length > 0 ? record.value_length : 0;
  // Behind the value one zero byte must follow, the count of headers, and the record must end.
  if (end - p <= value_bytes) [[unlikely]] {
    return nullptr;
  }
  p += value_bytes;
  if (*p != 0 || p + 1 - body != length) [[unlikely]] {
    return nullptr;
  }
  record.header_count = 0;
  record.headers = p + 1;
  return p + 1;
}

}  // namespace internal

// Reads the record at `in`. Returns its end, or null when it is not well formed within [in, end).
inline const char* read_record(const char* in, const char* end, RawRecord& record) {
  if (const char* next = internal::read_plain_record(in, end, record); next != nullptr) [[likely]] {
    return next;
  }
  const char* fault = nullptr;
  return read_record_carefully(in, end, record, &fault);
}

// Smallest record: length, attributes and five numbers of one byte.
inline constexpr std::size_t kRecordBytesMin = 7;

}  // namespace weir::log
