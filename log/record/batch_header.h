#pragma once

#include <weir/runtime/bytes.h>
#include <weir/runtime/compression.h>
#include <weir/runtime/result.h>
#include <weir/runtime/types.h>

#include <cstdint>

namespace weir::log {

// Kafka record batch v2 (org.apache.kafka.common.record.DefaultRecordBatch), all big-endian:
//
//    0 baseOffset i64 | 8 batchLength i32 (bytes behind this field) | 12 partitionLeaderEpoch i32
//   16 magic i8 = 2 | 17 crc u32 (CRC-32C of byte 21 to the end) | 21 attributes i16
//   23 lastOffsetDelta i32 | 27 baseTimestamp i64 | 35 maxTimestamp i64 | 43 producerId i64
//   51 producerEpoch i16 | 53 baseSequence i32 | 57 recordsCount i32 | 61 records
//
// baseOffset and partitionLeaderEpoch are outside the CRC: stamping them re-encodes nothing.
inline constexpr std::size_t kBatchHeaderBytes = 61;
inline constexpr std::size_t kBatchLengthEnd = 12;  // batchLength counts from here
inline constexpr std::size_t kBatchCrcStart = 21;
inline constexpr std::int16_t kCodecMask = 0x07;  // of the attributes

enum class TimestampType : std::uint8_t { kCreateTime = 0, kLogAppendTime = 1 };

struct BatchHeader {
  Offset base_offset;
  std::int32_t batch_length = 0;
  LeaderEpoch leader_epoch;
  std::int8_t magic = 2;
  std::uint32_t crc = 0;
  std::int16_t attributes = 0;
  std::int32_t last_offset_delta = 0;
  Timestamp base_timestamp = 0;
  Timestamp max_timestamp = 0;
  ProducerId producer_id = kNoProducerId;
  ProducerEpoch producer_epoch = kNoProducerEpoch;
  std::int32_t base_sequence = -1;
  std::int32_t records_count = 0;

  std::size_t size_bytes() const {
    return kBatchLengthEnd + static_cast<std::size_t>(batch_length);
  }
  // Wrap as Java's do: a hostile base offset near 2^63 is no undefined behaviour.
  Offset last_offset() const { return wrapping_plus(last_offset_delta); }
  Offset next_offset() const { return wrapping_plus(std::int64_t{last_offset_delta} + 1); }
  std::uint8_t codec_bits() const { return static_cast<std::uint8_t>(attributes & kCodecMask); }
  TimestampType timestamp_type() const {
    return (attributes & 0x08) != 0 ? TimestampType::kLogAppendTime : TimestampType::kCreateTime;
  }
  bool is_transactional() const { return (attributes & 0x10) != 0; }
  bool is_control() const { return (attributes & 0x20) != 0; }
  bool has_delete_horizon() const { return (attributes & 0x40) != 0; }

 private:
  Offset wrapping_plus(std::int64_t delta) const {
    return Offset(static_cast<std::int64_t>(static_cast<std::uint64_t>(base_offset.value()) +
                                            static_cast<std::uint64_t>(delta)));
  }
};

// Reads the fields and checks what can be checked without the rest: magic 2 and a batchLength of at
// least 49 that keeps the batch at or below `batch_bytes_max`.
// Requires: bytes.size() >= kBatchHeaderBytes.
// Errors: kUnsupported for magic 0 and 1 (message sets from before Kafka 0.11), kCorrupt otherwise.
Result<BatchHeader> read_batch_header(ByteView bytes, std::size_t batch_bytes_max = 256U << 20U);

// Checks that `batch` is exactly one whole batch: header, length, CRC, recordsCount not negative,
// lastOffsetDelta not negative.
// Errors: kCorrupt, kUnsupported.
Result<BatchHeader> verify_batch(ByteView batch);

// Writes the 61 bytes with header.crc as it is. Requires: room for kBatchHeaderBytes at `out`.
void write_batch_header(char* out, const BatchHeader& header);
// Computes and writes the CRC of a whole batch. Requires: batch_size >= kBatchHeaderBytes.
void stamp_crc(char* batch, std::size_t batch_size);

// Stamps the fields outside the CRC into a batch in place. Requires: batch_size >=
// kBatchHeaderBytes.
void stamp_offset(char* batch, Offset base_offset, LeaderEpoch leader_epoch);
// Sets LogAppendTime and maxTimestamp, and recomputes the CRC; records are not re-encoded.
void stamp_append_time(char* batch, std::size_t batch_size, Timestamp now);

}  // namespace weir::log
