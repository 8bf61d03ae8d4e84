#include "log/record/append_validation.h"

#include "log/record/compression.h"
#include "log/record/record_reader.h"

#include <weir/runtime/assert.h>
#include <weir/runtime/endian.h>

#include <fmt/format.h>

#include <algorithm>
#include <string>

namespace weir::log {

namespace {

constexpr std::int16_t kLogAppendTimeBit = 0x08;
constexpr std::size_t kMaxTimestampAt = 35;

// The message is made only when the check failed: a good batch formats nothing.
template <class... Args>
Error refuse(Errc code, fmt::format_string<Args...> format, Args&&... args) {
  return Error(code, "batch refused: " + fmt::format(format, std::forward<Args>(args)...));
}

Status validate_header(const BatchHeader& header, const AppendRules& rules) {
  if (header.base_offset.value() != 0) {
    return refuse(Errc::kInvalidRecord, "baseOffset {} is not 0: the log assigns offsets",
                  header.base_offset.value());
  }
  if (header.records_count <= 0 ||
      std::int64_t{header.last_offset_delta} + 1 != header.records_count) {
    return refuse(Errc::kInvalidRecord, "recordsCount {} does not fit lastOffsetDelta {}",
                  header.records_count, header.last_offset_delta);
  }
  if (header.is_control() && !rules.allow_control) {
    return refuse(Errc::kInvalidRecord, "a control batch from a client");
  }
  if (header.has_delete_horizon()) {
    return refuse(Errc::kInvalidRecord,
                  "attributes {:#06x} have the delete-horizon bit, which only compaction sets",
                  static_cast<std::uint16_t>(header.attributes));
  }
  if (header.codec_bits() > static_cast<std::uint8_t>(Codec::kZstd)) {
    return refuse(Errc::kUnsupported, "codec {} is none of none, gzip, snappy, lz4, zstd",
                  header.codec_bits());
  }
  const bool has_producer = header.producer_id.value() >= 0;
  if (has_producer && header.producer_epoch.value() < 0) {
    return refuse(Errc::kInvalidRecord, "producer {} without an epoch", header.producer_id.value());
  }
  // A coordinator's batches need none: nobody sends them twice.
  if (has_producer && header.base_sequence < 0 && !rules.allow_control) {
    return refuse(Errc::kInvalidRecord, "producer {} without a sequence",
                  header.producer_id.value());
  }
  if (header.is_transactional() && !has_producer) {
    return refuse(Errc::kInvalidRecord, "transactional without a producer id");
  }
  return Status();
}

Status validate_timestamp(Timestamp timestamp, std::int32_t index, const AppendRules& rules) {
  if (timestamp != kNoTimestamp &&
      (timestamp < rules.timestamp_min || timestamp > rules.timestamp_max)) [[unlikely]] {
    return refuse(Errc::kInvalidTimestamp, "timestamp {} of record {} is outside [{}, {}]",
                  timestamp, index, rules.timestamp_min, rules.timestamp_max);
  }
  return Status();
}

Status validate_record(const RawRecord& record, std::int32_t index, const AppendRules& rules) {
  if (record.offset_delta != index) [[unlikely]] {
    return refuse(Errc::kInvalidRecord, "record {} has the offset delta {}", index,
                  record.offset_delta);
  }
  if (record.odd_length) [[unlikely]] {
    return refuse(Errc::kInvalidRecord, "record {} has a length below -1", index);
  }
  if (rules.require_keys && record.key.is_null()) [[unlikely]] {
    return refuse(Errc::kInvalidRecord,
                  "record {} has no key, which a compacted topic needs; set a key or the topic's "
                  "cleanup.policy to delete",
                  index);
  }
  return Status();
}

// Largest record timestamp in `max_timestamp`.
Status validate_records(const BatchHeader& header, ByteView records, const AppendRules& rules,
                        Timestamp& max_timestamp) {
  const char* in = records.data();
  const char* const end = in + records.size();
  const bool create_time = rules.timestamp_type == TimestampType::kCreateTime;
  // A control batch's key is its type.
  const bool plain = !header.is_control();
  max_timestamp = INT64_MIN;
  RawRecord record;
  for (std::int32_t i = 0; i < header.records_count; ++i) {
    const char* const next = read_record(in, end, record);
    if (next == nullptr) [[unlikely]] {
      const char* fault = "";
      read_record_carefully(in, end, record, &fault);
      return refuse(Errc::kInvalidRecord, "record {} of {}: {}", i, header.records_count, fault);
    }
    in = next;
    if (plain) {
      WEIR_TRY(validate_record(record, i, rules));
    }
    const auto timestamp =
        static_cast<Timestamp>(static_cast<std::uint64_t>(header.base_timestamp) +
                               static_cast<std::uint64_t>(record.timestamp_delta));
    max_timestamp = std::max(max_timestamp, timestamp);
    if (create_time) {
      WEIR_TRY(validate_timestamp(timestamp, i, rules));
    }
  }
  if (in != end) [[unlikely]] {
    return refuse(Errc::kInvalidRecord, "{} bytes behind the last of {} records", end - in,
                  header.records_count);
  }
  return Status();
}

Status validate_max_timestamp(const BatchHeader& header, Timestamp max_timestamp, AppendFix* fix) {
  const bool has_bit = header.timestamp_type() == TimestampType::kLogAppendTime;
  if (!has_bit && header.max_timestamp == max_timestamp) {
    return Status();
  }
  if (fix == nullptr) {
    return refuse(Errc::kInvalidTimestamp,
                  "maxTimestamp {}{}, but the largest of its records is {}", header.max_timestamp,
                  has_bit ? " of LogAppendTime" : "", max_timestamp);
  }
  fix->needed = true;
  fix->max_timestamp = max_timestamp;
  return Status();
}

}  // namespace

Status validate_for_append(const BatchHeader& header, ByteView batch, const AppendRules& rules,
                           AppendFix* fix) {
  WEIR_ASSERT(batch.size() == header.size_bytes());
  if (fix != nullptr) {
    *fix = AppendFix();
  }
  WEIR_TRY(validate_header(header, rules));
  const bool create_time = rules.timestamp_type == TimestampType::kCreateTime;
  if (rules.trust_records) {
    // The builder's maxTimestamp is the largest; a lower bound is judged by the first record's.
    if (create_time) {
      WEIR_TRY(validate_timestamp(header.max_timestamp, header.last_offset_delta, rules));
      WEIR_TRY(validate_timestamp(header.base_timestamp, 0, rules));
    }
    return Status();
  }
  ByteView records = batch.substr(kBatchHeaderBytes);
  SharedBytes plain;
  if (header.codec_bits() != 0) {
    WEIR_TRY_ASSIGN(plain,
                    decompress(header.codec_bits(), records, rules.limits.decompressed_bytes_max));
    records = plain.view();
  }
  Timestamp max_timestamp = kNoTimestamp;
  WEIR_TRY(validate_records(header, records, rules, max_timestamp));
  // With LogAppendTime the log stamps both fields anyway.
  return create_time ? validate_max_timestamp(header, max_timestamp, fix) : Status();
}

void stamp_create_time(char* batch, std::size_t batch_size, Timestamp max_timestamp) {
  WEIR_ASSERT(batch_size >= kBatchHeaderBytes);
  const auto attributes = load_be<std::int16_t>(batch + kBatchCrcStart);
  store_be(batch + kBatchCrcStart, static_cast<std::int16_t>(attributes & ~kLogAppendTimeBit));
  store_be(batch + kMaxTimestampAt, max_timestamp);
  stamp_crc(batch, batch_size);
}

}  // namespace weir::log
