#include "log/record/batch_builder.h"

#include <weir/runtime/assert.h>
#include <weir/runtime/varint.h>

#include <algorithm>
#include <bit>
#include <cstring>
#include <limits>
#include <utility>

namespace weir::log {

namespace {

constexpr std::int16_t kTransactionalBit = 0x10;
constexpr std::int16_t kControlBit = 0x20;

// attributes, timestampDelta, offsetDelta, key and value length, headers count: one byte each.
constexpr std::size_t kBodyOverheadMin = 6;
// length 5, attributes 1, timestampDelta 10, four more of 5 bytes.
constexpr std::size_t kRecordOverheadMax = 36;
constexpr std::size_t kBatchBytesMax = std::numeric_limits<std::int32_t>::max();

std::size_t payload_size(const RecordRef& record) {
  return record.key.size() + record.value.size() + record.headers.encoded().size();
}

// uvarint_size without a loop: 7 bits a byte, by multiplication instead of division.
std::size_t fast_varint_size(std::uint64_t raw) {
  return (static_cast<std::size_t>(std::bit_width(raw | 1U)) * 9U + 64U) >> 6U;
}

std::int64_t wrapping_minus(std::int64_t a, std::int64_t b) {
  return static_cast<std::int64_t>(static_cast<std::uint64_t>(a) - static_cast<std::uint64_t>(b));
}

std::size_t nullable_size(const NullableBytes& bytes) {
  return bytes.is_null() ? 1 : fast_varint_size(std::uint64_t{bytes.size()} << 1U) + bytes.size();
}

std::size_t body_size(const RecordRef& record, std::int64_t timestamp_delta,
                      std::int32_t offset_delta) {
  return 1 + fast_varint_size(zigzag64(timestamp_delta)) +
         fast_varint_size(zigzag32(offset_delta)) + nullable_size(record.key) +
         nullable_size(record.value) +
         fast_varint_size(std::uint64_t{record.headers.count()} << 1U) +
         record.headers.encoded().size();
}

std::size_t record_size(const RecordRef& record, std::int64_t timestamp_delta,
                        std::int32_t offset_delta) {
  const std::size_t body = body_size(record, timestamp_delta, offset_delta);
  return fast_varint_size(std::uint64_t{body} << 1U) + body;
}

// Not negative, so that zigzag is a shift. One and two bytes are nearly all numbers of a record.
inline char* write_size(char* out, std::uint64_t size) {
  const std::uint64_t raw = size << 1U;
  if (raw < 0x80U) [[likely]] {
    *out = static_cast<char>(raw);
    return out + 1;
  }
  if (raw < 0x4000U) [[likely]] {
    out[0] = static_cast<char>(raw | 0x80U);
    out[1] = static_cast<char>(raw >> 7U);
    return out + 2;
  }
  return write_uvarint(out, raw);
}

// Keys are short: two overlapping words are cheaper than a call.
inline char* write_bytes(char* out, const char* data, std::size_t size) {
  if (size >= 8 && size <= 16) {
    std::uint64_t head = 0;
    std::uint64_t tail = 0;
    std::memcpy(&head, data, sizeof(head));
    std::memcpy(&tail, data + size - sizeof(tail), sizeof(tail));
    std::memcpy(out, &head, sizeof(head));
    std::memcpy(out + size - sizeof(tail), &tail, sizeof(tail));
    return out + size;
  }
  std::memcpy(out, data, size);
  return out + size;
}

inline char* write_nullable(char* out, const NullableBytes& bytes) {
  if (bytes.is_null()) {
    *out = 1;  // zigzag of -1
    return out + 1;
  }
  const ByteView view = bytes.view();
  out = write_size(out, view.size());
  return write_bytes(out, view.data(), view.size());
}

}  // namespace

BatchBuilder::BatchBuilder(std::size_t batch_bytes)
    : batch_bytes_(std::clamp(batch_bytes, kBatchHeaderBytes, kBatchBytesMax)) {}

bool BatchBuilder::append(const RecordRef& record) {
  // Only near the end, or without a buffer, is the exact size worth its instructions.
  if (used_ + payload_size(record) + kRecordOverheadMax > limit_) [[unlikely]] {
    if (!make_room(record)) {
      return false;
    }
  }
  write(record);
  return true;
}

bool BatchBuilder::make_room(const RecordRef& record) {
  if (count_ != 0) {
    const std::int64_t delta = wrapping_minus(record.timestamp, base_timestamp_);
    return used_ + record_size(record, delta, count_) <= limit_;
  }
  const std::size_t needed = batch_size_of(record);
  WEIR_ASSERT(needed <= kBatchBytesMax);
  if (buffer_.capacity() < std::max(needed, batch_bytes_)) {
    buffer_ = SharedBytes::allocate(std::max(needed, batch_bytes_));
    limit_ = std::min(batch_bytes_, buffer_.capacity());
  }
  return true;
}

void BatchBuilder::write(const RecordRef& record) {
  if (count_ == 0) {
    base_timestamp_ = record.timestamp;
    max_timestamp_ = record.timestamp;
  }
  max_timestamp_ = std::max(max_timestamp_, record.timestamp);

  // The body is written behind a gap for its length. The gap is right unless the numbers in the
  // body push the length over a border, and never too large.
  const std::size_t gap = fast_varint_size((payload_size(record) + kBodyOverheadMin) << 1U);
  char* const start = buffer_.data() + used_;
  char* const body = start + gap;
  char* out = body;
  *out++ = 0;  // attributes, unused
  const std::uint64_t delta = zigzag64(wrapping_minus(record.timestamp, base_timestamp_));
  if (delta < 0x80U) [[likely]] {
    *out++ = static_cast<char>(delta);
  } else {
    out = write_uvarint(out, delta);
  }
  out = write_size(out, static_cast<std::uint64_t>(count_));
  out = write_nullable(out, record.key);
  out = write_nullable(out, record.value);
  out = write_size(out, record.headers.count());
  if (const ByteView headers = record.headers.encoded(); !headers.empty()) {
    std::memcpy(out, headers.data(), headers.size());
    out += headers.size();
  }

  const auto size = static_cast<std::size_t>(out - body);
  if (const std::size_t exact = fast_varint_size(size << 1U); exact != gap) [[unlikely]] {
    std::memmove(start + exact, body, size);
    out += exact - gap;
  }
  write_size(start, size);
  used_ = static_cast<std::size_t>(out - buffer_.data());
  ++count_;
}

SharedBytes BatchBuilder::seal(const Producer& producer) {
  WEIR_ASSERT(count_ > 0);
  BatchHeader header;
  header.batch_length = static_cast<std::int32_t>(used_ - kBatchLengthEnd);
  header.leader_epoch = kNoLeaderEpoch;
  header.attributes = producer.transactional ? kTransactionalBit : std::int16_t{0};
  header.last_offset_delta = count_ - 1;
  header.base_timestamp = base_timestamp_;
  header.max_timestamp = max_timestamp_;
  header.producer_id = producer.id;
  header.producer_epoch = producer.epoch;
  header.base_sequence = producer.base_sequence;
  header.records_count = count_;

  write_batch_header(buffer_.data(), header);
  stamp_crc(buffer_.data(), used_);
  buffer_.resize(used_);
  SharedBytes sealed = std::move(buffer_);
  buffer_ = SharedBytes();
  limit_ = 0;
  used_ = kBatchHeaderBytes;
  count_ = 0;
  return sealed;
}

std::size_t BatchBuilder::batch_size_of(const RecordRef& record) {
  return kBatchHeaderBytes + record_size(record, 0, 0);
}

SharedBytes build_control_batch(ByteView key, ByteView value, Timestamp timestamp,
                                const BatchBuilder::Producer& producer) {
  RecordRef record;
  record.key = key;
  record.value = value;
  record.timestamp = timestamp;
  BatchBuilder builder(BatchBuilder::batch_size_of(record));
  builder.append(record);
  SharedBytes batch = builder.seal(producer);
  // Attributes are one i16 at 21, whose low byte is at 22.
  char& attributes = batch.data()[kBatchCrcStart + 1];
  attributes = static_cast<char>(attributes | kControlBit);
  stamp_crc(batch.data(), batch.size());
  return batch;
}

}  // namespace weir::log
