#include "log/record/batch_header.h"

#include <weir/runtime/assert.h>
#include <weir/runtime/crc32c.h>
#include <weir/runtime/endian.h>

#include <fmt/format.h>

#include <string>

namespace weir::log {

namespace {

constexpr std::size_t kLengthAt = 8;
constexpr std::size_t kLeaderEpochAt = 12;
constexpr std::size_t kMagicAt = 16;
constexpr std::size_t kCrcAt = 17;
constexpr std::size_t kMaxTimestampAt = 35;
constexpr std::int32_t kBatchLengthMin =
    static_cast<std::int32_t>(kBatchHeaderBytes - kBatchLengthEnd);
// Smallest message of magic 0 (LegacyRecord.RECORD_OVERHEAD_V0). Below it the bytes are no message
// set either: zeroes behind a torn tail must not be taken for an old format.
constexpr std::int32_t kLegacyLengthMin = 14;
constexpr std::int16_t kLogAppendTimeBit = 0x08;

Error bad_batch(Errc code, Offset base_offset, std::string_view what) {
  return Error(code, fmt::format("batch at offset {}: {}", base_offset.value(), what));
}

BatchHeader load_header(const char* in) {
  BatchHeader h;
  h.base_offset = Offset(load_be<std::int64_t>(in));
  h.batch_length = load_be<std::int32_t>(in + kLengthAt);
  h.leader_epoch = LeaderEpoch(load_be<std::int32_t>(in + kLeaderEpochAt));
  h.magic = static_cast<std::int8_t>(in[kMagicAt]);
  h.crc = load_be<std::uint32_t>(in + kCrcAt);
  h.attributes = load_be<std::int16_t>(in + kBatchCrcStart);
  h.last_offset_delta = load_be<std::int32_t>(in + 23);
  h.base_timestamp = load_be<std::int64_t>(in + 27);
  h.max_timestamp = load_be<std::int64_t>(in + kMaxTimestampAt);
  h.producer_id = ProducerId(load_be<std::int64_t>(in + 43));
  h.producer_epoch = ProducerEpoch(load_be<std::int16_t>(in + 51));
  h.base_sequence = load_be<std::int32_t>(in + 53);
  h.records_count = load_be<std::int32_t>(in + 57);
  return h;
}

}  // namespace

Result<BatchHeader> read_batch_header(ByteView bytes, std::size_t batch_bytes_max) {
  WEIR_ASSERT(bytes.size() >= kBatchHeaderBytes);
  BatchHeader h = load_header(bytes.data());
  if (h.batch_length < kLegacyLengthMin) [[unlikely]] {
    return bad_batch(Errc::kCorrupt, h.base_offset,
                     fmt::format("batchLength {} is smaller than any batch", h.batch_length));
  }
  if (h.magic == 0 || h.magic == 1) [[unlikely]] {
    return bad_batch(Errc::kUnsupported, h.base_offset,
                     fmt::format("magic {} is a message set from before Kafka 0.11; copy the topic "
                                 "through a newer Kafka producer to get magic 2",
                                 h.magic));
  }
  if (h.magic != 2) [[unlikely]] {
    return bad_batch(Errc::kCorrupt, h.base_offset, fmt::format("magic {} is not 2", h.magic));
  }
  if (h.batch_length < kBatchLengthMin) [[unlikely]] {
    return bad_batch(Errc::kCorrupt, h.base_offset,
                     fmt::format("batchLength {} is below the {} bytes of a header", h.batch_length,
                                 kBatchLengthMin));
  }
  if (h.size_bytes() > batch_bytes_max) [[unlikely]] {
    return bad_batch(Errc::kCorrupt, h.base_offset,
                     fmt::format("{} bytes by its header, over the limit of {}", h.size_bytes(),
                                 batch_bytes_max));
  }
  return h;
}

Result<BatchHeader> verify_batch(ByteView batch) {
  if (batch.size() < kBatchHeaderBytes) [[unlikely]] {
    return Error(Errc::kCorrupt, fmt::format("batch of {} bytes is shorter than its header of {}",
                                             batch.size(), kBatchHeaderBytes));
  }
  WEIR_TRY_ASSIGN(BatchHeader h, read_batch_header(batch, ~std::size_t{0}));
  if (h.size_bytes() != batch.size()) [[unlikely]] {
    return bad_batch(
        Errc::kCorrupt, h.base_offset,
        fmt::format("{} bytes by its header, {} are here", h.size_bytes(), batch.size()));
  }
  const std::uint32_t crc = crc32c(batch.substr(kBatchCrcStart));
  if (crc != h.crc) [[unlikely]] {
    return bad_batch(Errc::kCorrupt, h.base_offset,
                     fmt::format("crc is {:08x}, the header says {:08x}", crc, h.crc));
  }
  if (h.records_count < 0 || h.last_offset_delta < 0) [[unlikely]] {
    return bad_batch(Errc::kCorrupt, h.base_offset,
                     fmt::format("recordsCount {} or lastOffsetDelta {} is negative",
                                 h.records_count, h.last_offset_delta));
  }
  return h;
}

void write_batch_header(char* out, const BatchHeader& header) {
  out = store_be(out, header.base_offset.value());
  out = store_be(out, header.batch_length);
  out = store_be(out, header.leader_epoch.value());
  *out++ = static_cast<char>(header.magic);
  out = store_be(out, header.crc);
  out = store_be(out, header.attributes);
  out = store_be(out, header.last_offset_delta);
  out = store_be(out, header.base_timestamp);
  out = store_be(out, header.max_timestamp);
  out = store_be(out, header.producer_id.value());
  out = store_be(out, header.producer_epoch.value());
  out = store_be(out, header.base_sequence);
  store_be(out, header.records_count);
}

void stamp_crc(char* batch, std::size_t batch_size) {
  WEIR_ASSERT(batch_size >= kBatchHeaderBytes);
  store_be(batch + kCrcAt, crc32c({batch + kBatchCrcStart, batch_size - kBatchCrcStart}));
}

void stamp_offset(char* batch, Offset base_offset, LeaderEpoch leader_epoch) {
  store_be(batch, base_offset.value());
  store_be(batch + kLeaderEpochAt, leader_epoch.value());
}

void stamp_append_time(char* batch, std::size_t batch_size, Timestamp now) {
  WEIR_ASSERT(batch_size >= kBatchHeaderBytes);
  const auto attributes = load_be<std::int16_t>(batch + kBatchCrcStart);
  store_be(batch + kBatchCrcStart, static_cast<std::int16_t>(attributes | kLogAppendTimeBit));
  store_be(batch + kMaxTimestampAt, now);
  stamp_crc(batch, batch_size);
}

}  // namespace weir::log
