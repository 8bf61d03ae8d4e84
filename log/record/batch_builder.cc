#include "log/record/batch_builder.h"

#include "log/record/compression.h"

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
// The same of a plain record, in which delta and offset take at most two bytes each.
constexpr std::size_t kPlainBodyOverheadMax = kBodyOverheadMin + 3;
// Payloads with which the body has 64 to 8,191 bytes whatever its numbers: two bytes of length.
constexpr std::size_t kPlainPayloadMin = 64 - kBodyOverheadMin;
constexpr std::size_t kPlainPayloadMax = 8191 - kRecordOverheadMax;
// And up to 63 bytes: one. Between them it depends.
constexpr std::size_t kShortPayloadMax = 63 - kPlainBodyOverheadMax;
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

// Little-endian: the low byte first.
static_assert(std::endian::native == std::endian::little);

// A number of at most 14 bits as one byte or two. With two, raw + (raw & ~127) moves the upper
// seven bits up by one, and 128 sets the first byte's high bit.
inline char* write_short(char* out, std::uint64_t raw) {
  if (raw < 0x80U) [[likely]] {
    *out = static_cast<char>(raw);
    return out + 1;
  }
  const auto pair = static_cast<std::uint16_t>(raw + (raw & ~std::uint64_t{127}) + 128U);
  std::memcpy(out, &pair, sizeof(pair));
  return out + 2;
}

template <class Word>
inline void copy_ends(char* out, const char* data, std::size_t size) {
  Word head{};
  Word tail{};
  std::memcpy(&head, data, sizeof(head));
  std::memcpy(&tail, data + size - sizeof(tail), sizeof(tail));
  std::memcpy(out, &head, sizeof(head));
  std::memcpy(out + size - sizeof(tail), &tail, sizeof(tail));
}

constexpr std::size_t kShortBytesMax = 32;

// Keys and counts are short: two overlapping words are cheaper than a call. Requires: size <=
// kShortBytesMax.
inline void copy_short(char* out, const char* data, std::size_t size) {
  struct Pair {
    std::uint64_t words[2];
  };
  if (size >= 8) [[likely]] {
    if (size <= 16) [[likely]] {
      copy_ends<std::uint64_t>(out, data, size);
    } else {
      copy_ends<Pair>(out, data, size);
    }
  } else if (size >= 4) {
    copy_ends<std::uint32_t>(out, data, size);
  } else if (size > 0) {
    const char middle = data[size / 2];
    const char last = data[size - 1];
    out[0] = data[0];
    out[size / 2] = middle;
    out[size - 1] = last;
  }
}

inline char* write_nullable(char* out, const NullableBytes& bytes) {
  if (bytes.is_null()) {
    *out = 1;  // zigzag of -1
    return out + 1;
  }
  const ByteView view = bytes.view();
  out = write_size(out, view.size());
  std::memcpy(out, view.data(), view.size());
  return out + view.size();
}

}  // namespace

BatchBuilder::BatchBuilder(std::size_t batch_bytes, Compression compression)
    : batch_bytes_(std::clamp(batch_bytes, kBatchHeaderBytes, kBatchBytesMax)),
      compression_(compression) {}

std::size_t BatchBuilder::batch_bytes_within(std::size_t sealed_bytes, Codec codec) {
  if (codec == Codec::kNone || sealed_bytes <= kBatchHeaderBytes) {
    return sealed_bytes;
  }
  // What a codec adds grows with the size: what it adds to the whole is enough for the rest.
  const std::size_t records = sealed_bytes - kBatchHeaderBytes;
  const std::size_t added = compressed_bytes_max(codec, records) - records;
  return added < records ? sealed_bytes - added : kBatchHeaderBytes;
}

bool BatchBuilder::append(const RecordRef& record) {
  const std::size_t payload = record.key.size() + record.value.size();
  const std::uint64_t delta = zigzag64(wrapping_minus(record.timestamp, base_timestamp_));
  // The plain record: it surely fits, its length takes one byte or two and we know which, every
  // other number one or two.
  const bool fits = used_ + payload + kRecordOverheadMax <= limit_;
  const bool one_byte = payload <= kShortPayloadMax;
  const bool two_bytes = payload - kPlainPayloadMin <= kPlainPayloadMax - kPlainPayloadMin;
  if (record.headers.count() != 0 || !fits || !(one_byte || two_bytes) || delta >= 0x4000U ||
      count_ >= 0x2000 || record.key.is_null() || record.key.size() > kShortBytesMax ||
      record.value.is_null()) [[unlikely]] {
    return append_slowly(record);
  }
  if (record.timestamp > max_timestamp_) {
    max_timestamp_ = record.timestamp;
  }
  char* const start = data_ + used_;
  char* out = start + (one_byte ? 1 : 2);
  char* const body = out;
  *out++ = 0;  // attributes, unused
  out = write_short(out, delta);
  out = write_short(out, static_cast<std::uint64_t>(count_) << 1U);
  const ByteView key = record.key.view();
  *out++ = static_cast<char>(key.size() << 1U);
  copy_short(out, key.data(), key.size());
  out += key.size();
  const ByteView value = record.value.view();
  out = write_short(out, std::uint64_t{value.size()} << 1U);
  char* const value_at = out;
  out += value.size();
  *out++ = 0;  // count of headers
  write_short(start, static_cast<std::uint64_t>(out - body) << 1U);
  used_ += static_cast<std::size_t>(out - start);
  ++count_;
  if (value.size() <= kShortBytesMax) {
    copy_short(value_at, value.data(), value.size());
    return true;
  }
  // Last, so that nothing needs to be kept over the call.
  std::memcpy(value_at, value.data(), value.size());
  return true;
}

[[gnu::noinline]] bool BatchBuilder::append_slowly(const RecordRef& record) {
  // Only near the end, or without a buffer, is the exact size worth its instructions.
  if (used_ + payload_size(record) + kRecordOverheadMax > limit_ && !make_room(record)) {
    return false;
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
    data_ = buffer_.data();
    limit_ = std::min(batch_bytes_, buffer_.capacity());
  }
  base_timestamp_ = record.timestamp;
  max_timestamp_ = record.timestamp;
  return true;
}

void BatchBuilder::write(const RecordRef& record) {
  max_timestamp_ = std::max(max_timestamp_, record.timestamp);

  // The body is written behind a gap for its length. The gap is right unless the numbers in the
  // body push the length over a border, and never too large.
  const std::size_t gap = fast_varint_size((payload_size(record) + kBodyOverheadMin) << 1U);
  char* const start = data_ + used_;
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
  used_ = static_cast<std::size_t>(out - data_);
  ++count_;
}

SharedBytes BatchBuilder::seal(const Producer& producer) {
  WEIR_ASSERT(count_ > 0);
  BatchHeader header;
  header.leader_epoch = kNoLeaderEpoch;
  header.attributes = producer.transactional ? kTransactionalBit : std::int16_t{0};
  header.last_offset_delta = count_ - 1;
  header.base_timestamp = base_timestamp_;
  header.max_timestamp = max_timestamp_;
  header.producer_id = producer.id;
  header.producer_epoch = producer.epoch;
  header.base_sequence = producer.base_sequence;
  header.records_count = count_;

  SharedBytes sealed = take_records(header);
  header.batch_length = static_cast<std::int32_t>(sealed.size() - kBatchLengthEnd);
  write_batch_header(sealed.data(), header);
  stamp_crc(sealed.data(), sealed.size());
  return sealed;
}

// The records behind room for their header, compressed if that is asked for, and a new start.
SharedBytes BatchBuilder::take_records(BatchHeader& header) {
  buffer_.resize(used_);
  SharedBytes records = std::move(buffer_);
  buffer_ = SharedBytes();
  data_ = nullptr;
  limit_ = 0;
  used_ = kBatchHeaderBytes;
  count_ = 0;
  if (compression_.codec == Codec::kNone) {
    return records;
  }
  SharedBytes compressed =
      compress(compression_, records.view().substr(kBatchHeaderBytes), kBatchHeaderBytes);
  if (compressed.size() > kBatchBytesMax) {
    return records;
  }
  header.attributes =
      static_cast<std::int16_t>(header.attributes | static_cast<std::int16_t>(compression_.codec));
  return compressed;
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
