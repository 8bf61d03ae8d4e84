#include "log/compaction/batch_cleaner.h"

#include "log/record/batch_decoder.h"
#include "log/record/compression.h"

#include <weir/runtime/varint.h>

#include <fmt/format.h>

#include <algorithm>
#include <cstring>

namespace weir::log {
namespace {

constexpr std::int16_t kTimestampTypeBit = 0x08;
constexpr std::int16_t kTransactionalBit = 0x10;
constexpr std::int16_t kControlBit = 0x20;
constexpr std::int16_t kDeleteHorizonBit = 0x40;

// What a number may grow by when its record is encoded anew: length and timestamp delta.
constexpr std::size_t kGrowthMax = 15;

char* write_nullable(char* out, const NullableBytes& bytes) {
  if (bytes.is_null()) {
    return write_varint(out, -1);
  }
  out = write_varint(out, static_cast<std::int32_t>(bytes.size()));
  std::memcpy(out, bytes.view().data(), bytes.size());
  return out + bytes.size();
}

std::size_t nullable_size(const NullableBytes& bytes) {
  return bytes.is_null() ? 1 : varint_size(static_cast<std::int32_t>(bytes.size())) + bytes.size();
}

std::int64_t minus(Timestamp a, Timestamp b) {
  return static_cast<std::int64_t>(static_cast<std::uint64_t>(a) - static_cast<std::uint64_t>(b));
}

// The record with its own offset delta, and a timestamp delta from `base`.
char* write_record(char* out, const BatchRecords::One& record, Timestamp base) {
  const std::int64_t delta = minus(record.timestamp, base);
  const std::size_t body = 1 + varlong_size(delta) + varint_size(record.raw.offset_delta) +
                           nullable_size(record.raw.key) + nullable_size(record.raw.value) +
                           varint_size(record.raw.header_count) + record.headers.size();
  out = write_varint(out, static_cast<std::int32_t>(body));
  *out++ = 0;  // attributes, unused
  out = write_varlong(out, delta);
  out = write_varint(out, record.raw.offset_delta);
  out = write_nullable(out, record.raw.key);
  out = write_nullable(out, record.raw.value);
  out = write_varint(out, record.raw.header_count);
  if (!record.headers.empty()) {
    std::memcpy(out, record.headers.data(), record.headers.size());
    out += record.headers.size();
  }
  return out;
}

SharedBytes finish_batch(SharedBytes batch, BatchHeader header) {
  header.batch_length = static_cast<std::int32_t>(batch.size() - kBatchLengthEnd);
  write_batch_header(batch.data(), header);
  stamp_crc(batch.data(), batch.size());
  return batch;
}

// Kafka's DefaultRecordBatch.writeEmptyHeader.
SharedBytes empty_batch(BatchHeader header, bool with_producer) {
  std::int16_t kept = kTimestampTypeBit;
  if (with_producer) {
    kept = static_cast<std::int16_t>(kept | kTransactionalBit | kControlBit);
  } else {
    header.producer_id = kNoProducerId;
    header.producer_epoch = kNoProducerEpoch;
    header.base_sequence = -1;
  }
  header.attributes = static_cast<std::int16_t>(header.attributes & kept);
  header.base_timestamp = kNoTimestamp;
  header.records_count = 0;
  SharedBytes batch = SharedBytes::allocate(kBatchHeaderBytes);
  batch.resize(kBatchHeaderBytes);
  return finish_batch(std::move(batch), header);
}

// The batch with these of its records alone. `horizon`: nullopt when it has none.
Result<SharedBytes> encode_batch(BatchHeader header, const std::vector<BatchRecords::One>& records,
                                 std::optional<Timestamp> horizon) {
  std::size_t bytes = kBatchHeaderBytes;
  Timestamp largest = kNoTimestamp;
  for (const BatchRecords::One& record : records) {
    bytes += record.size_bytes + kGrowthMax;
    largest = std::max(largest, record.timestamp);
  }
  const Timestamp base = horizon.value_or(records.front().timestamp);
  SharedBytes plain = SharedBytes::allocate(bytes);
  char* out = plain.data() + kBatchHeaderBytes;
  for (const BatchRecords::One& record : records) {
    out = write_record(out, record, base);
  }
  plain.resize(static_cast<std::size_t>(out - plain.data()));
  header.base_timestamp = base;
  header.max_timestamp = largest;
  header.records_count = static_cast<std::int32_t>(records.size());
  header.attributes = static_cast<std::int16_t>(horizon ? header.attributes | kDeleteHorizonBit
                                                        : header.attributes & ~kDeleteHorizonBit);
  if (header.codec_bits() == 0) {
    return finish_batch(std::move(plain), header);
  }
  SharedBytes packed = compress(Compression{static_cast<Codec>(header.codec_bits()), {}},
                                plain.view().substr(kBatchHeaderBytes), kBatchHeaderBytes);
  if (packed.size() > INT32_MAX) {
    return Error(Errc::kRecordTooLarge,
                 fmt::format("what is left of the batch at offset {} has {} bytes as {}",
                             header.base_offset.value(), packed.size(),
                             codec_name(static_cast<Codec>(header.codec_bits()))));
  }
  return finish_batch(std::move(packed), header);
}

}  // namespace

Result<std::optional<ControlType>> marker_type(const BatchHeader& header, ByteView batch) {
  if (header.records_count == 0) {
    return std::optional<ControlType>();
  }
  RecordViews records;
  SharedBytes decompressed;
  WEIR_TRY(decode_records(header, batch, DecodeLimits{}, records, decompressed));
  WEIR_TRY_ASSIGN(const ControlRecord control, parse_control_record(records.front()));
  return std::optional(control.type);
}

Result<Offset> add_to_map(OffsetMap& map, Offset from, const BatchHeader& header, ByteView batch,
                          std::size_t decompressed_bytes_max) {
  WEIR_TRY_ASSIGN(BatchRecords records, BatchRecords::open(header, batch, decompressed_bytes_max));
  BatchRecords::One record;
  while (true) {
    WEIR_TRY_ASSIGN(const bool more, records.next(record));
    if (!more) {
      return header.next_offset();
    }
    if (record.offset >= from && !record.raw.key.is_null() &&
        !map.put(record.raw.key.view(), record.offset)) {
      return record.offset;
    }
  }
}

bool BatchCleaner::horizon_passed(const BatchHeader& header) const {
  return header.has_delete_horizon() && header.base_timestamp <= rules_.now;
}

bool BatchCleaner::is_last_of_producer(const BatchHeader& header) const {
  const auto last = producers_.find(header.producer_id);
  if (header.producer_id == kNoProducerId || last == producers_.end()) {
    return false;
  }
  return last->second.last_data_offset != kNoOffset
             ? header.last_offset() == last->second.last_data_offset
             : header.is_control() && header.producer_epoch == last->second.epoch;
}

Result<BatchCleaner::Verdict> BatchCleaner::judge(const BatchHeader& header, ByteView batch) {
  Verdict verdict;
  verdict.is_last_of_producer = is_last_of_producer(header);
  if (!header.is_control()) {
    verdict.drops_records = transactions_.is_aborted(header);
    return verdict;
  }
  WEIR_TRY_ASSIGN(const std::optional<ControlType> type, marker_type(header, batch));
  verdict.is_done_marker = !type || transactions_.marker_is_done(header, *type);
  verdict.drops_records = verdict.is_done_marker && (!type || horizon_passed(header));
  return verdict;
}

bool BatchCleaner::keeps(const BatchHeader& header, const BatchRecords::One& record) {
  if (record.offset >= rules_.map_end) {
    return true;
  }
  if (record.raw.key.is_null()) {
    ++counts_.records_without_key;
    return false;
  }
  const std::optional<Offset> latest = map_.find(record.raw.key.view());
  if (latest && record.offset < *latest) {
    return false;
  }
  if (!record.raw.value.is_null() || !horizon_passed(header)) {
    return true;
  }
  ++counts_.tombstones_removed;
  tombstone_end_ = std::max(tombstone_end_, record.offset.next());
  return false;
}

BatchCleaner::Outcome BatchCleaner::without_records(const BatchHeader& header, ByteView batch,
                                                    bool keeps_producer, bool keeps_end) {
  if (!keeps_producer && !keeps_end) {
    return {false, SharedBytes()};
  }
  SharedBytes left = empty_batch(header, keeps_producer);
  counts_.bytes_written += left.size();
  const bool is_same = left.view() == batch;
  return is_same ? Outcome{true, SharedBytes()} : Outcome{false, std::move(left)};
}

Result<BatchCleaner::Outcome> BatchCleaner::clean(const BatchHeader& header, ByteView batch,
                                                  bool keeps_end) {
  counts_.bytes_read += batch.size();
  counts_.records_read += static_cast<std::uint64_t>(header.records_count);
  WEIR_TRY_ASSIGN(const Verdict verdict, judge(header, batch));
  if (verdict.drops_records || header.records_count == 0) {
    return without_records(header, batch, verdict.is_last_of_producer, keeps_end);
  }
  WEIR_TRY_ASSIGN(BatchRecords records,
                  BatchRecords::open(header, batch, rules_.decompressed_bytes_max));
  Kept kept;
  BatchRecords::One record;
  while (true) {
    WEIR_TRY_ASSIGN(const bool more, records.next(record));
    if (!more) {
      break;
    }
    if (!header.is_control() && !keeps(header, record)) {
      kept.has_all = false;
      continue;
    }
    kept.has_tombstone |= record.raw.value.is_null();
    kept.records.push_back(record);
  }
  if (kept.records.empty()) {
    return without_records(header, batch, verdict.is_last_of_producer, keeps_end);
  }
  counts_.records_kept += kept.records.size();
  const bool sets_horizon =
      (kept.has_tombstone || verdict.is_done_marker) && !header.has_delete_horizon();
  if (kept.has_all && !sets_horizon) {
    counts_.bytes_written += batch.size();
    return Outcome{true, SharedBytes()};
  }
  std::optional<Timestamp> horizon;
  if (header.has_delete_horizon()) {
    horizon = header.base_timestamp;
  } else if (sets_horizon) {
    Timestamp sum = 0;
    horizon =
        __builtin_add_overflow(rules_.now, rules_.delete_retention_ms, &sum) ? INT64_MAX : sum;
  }
  WEIR_TRY_ASSIGN(SharedBytes left, encode_batch(header, kept.records, horizon));
  counts_.bytes_written += left.size();
  return Outcome{false, std::move(left)};
}

}  // namespace weir::log
