#pragma once

#include "log/record/append_validation.h"
#include "log/record/batch_builder.h"
#include "log/record/batch_decoder.h"
#include "log/record/batch_json.h"
#include "log/record/control_record.h"

#include <weir/runtime/assert.h>

#include <nlohmann/json.hpp>

#include <string>
#include <vector>

// What must hold for any bytes that are offered as a record batch. For the fuzzer and for the test
// that replays fixtures and mutations.

namespace weir::log::fuzz {

inline constexpr std::size_t kDecompressedMax = 4U << 20U;

inline void check_record(const BatchHeader& header, const RecordView& record) {
  std::uint32_t count = 0;
  for (const HeaderView& entry : record.headers) {
    WEIR_ASSERT(entry.name.size() <= record.headers.encoded().size());
    ++count;
  }
  WEIR_ASSERT(count == record.headers.count());
  WEIR_ASSERT(!record_json(header, record).dump().empty());
  parse_control_record(record).status().ignore("any answer is right, a crash is not");
}

// Decodes twice and compares; encodes again and compares.
inline void check_records(const BatchHeader& header, ByteView batch) {
  DecodeLimits limits;
  limits.decompressed_bytes_max = kDecompressedMax;
  RecordViews records;
  SharedBytes decompressed;
  const Status decoded = decode_records(header, batch, limits, records, decompressed);
  WEIR_ASSERT(decompressed.size() <= kDecompressedMax);
  if (!decoded.ok()) {
    WEIR_ASSERT(records.empty());
    WEIR_ASSERT(!decoded.error().message().empty());
    return;
  }
  WEIR_ASSERT(records.size() == static_cast<std::size_t>(header.records_count));
  BatchBuilder builder(kDecompressedMax);
  for (const RecordView& record : records) {
    check_record(header, record);
    RecordRef copy;
    copy.key = record.key;
    copy.value = record.value;
    copy.timestamp = record.timestamp;
    copy.headers = record.headers;
    if (!builder.append(copy)) {
      return;  // grew over the builder's size: numbers may be shorter in the original
    }
  }
  if (builder.empty()) {
    return;
  }
  const SharedBytes again = builder.seal();
  const Result<BatchHeader> again_header = verify_batch(again.view());
  WEIR_ASSERT(again_header.ok());
  RecordViews copies;
  SharedBytes none;
  WEIR_ASSERT(decode_records(*again_header, again.view(), limits, copies, none).ok());
  WEIR_ASSERT(copies.size() == records.size());
  for (std::size_t i = 0; i < copies.size(); ++i) {
    WEIR_ASSERT(copies[i].key == records[i].key && copies[i].value == records[i].value);
    WEIR_ASSERT(copies[i].timestamp == records[i].timestamp);
    WEIR_ASSERT(copies[i].headers.encoded() == records[i].headers.encoded());
  }
}

inline void check_append(const BatchHeader& header, ByteView batch) {
  AppendRules rules;
  rules.limits.decompressed_bytes_max = kDecompressedMax;
  AppendFix fix;
  if (!validate_for_append(header, batch, rules, &fix).ok()) {
    return;
  }
  // What is accepted can be read, with offsets 0, 1, 2, ...
  RecordViews records;
  SharedBytes decompressed;
  WEIR_ASSERT(decode_records(header, batch, rules.limits, records, decompressed).ok());
  for (std::size_t i = 0; i < records.size(); ++i) {
    WEIR_ASSERT(records[i].offset == Offset(static_cast<std::int64_t>(i)));
  }
  std::string stored(batch);
  stamp_create_time(stored.data(), stored.size(), fix.max_timestamp);
  WEIR_ASSERT(verify_batch(stored).ok());
}

inline void check_batch(const BatchHeader& header, ByteView batch) {
  WEIR_ASSERT(!batch_json(header).dump().empty());
  check_records(header, batch);
  check_append(header, batch);
}

// Any bytes: as they are, and once more with length and CRC put right, since a fuzzer rarely
// guesses a CRC.
inline void check_batch_bytes(ByteView bytes) {
  if (bytes.size() < kBatchHeaderBytes) {
    WEIR_ASSERT(!verify_batch(bytes).ok());
    return;
  }
  if (const Result<BatchHeader> header = verify_batch(bytes); header.ok()) {
    check_batch(*header, bytes);
  }
  std::string repaired(bytes);
  BatchHeader header;
  header.batch_length = static_cast<std::int32_t>(bytes.size() - kBatchLengthEnd);
  std::string front(kBatchHeaderBytes, '\0');
  write_batch_header(front.data(), header);
  repaired.replace(8, 4, front, 8, 4);
  repaired[16] = 2;
  stamp_crc(repaired.data(), repaired.size());
  if (const Result<BatchHeader> verified = verify_batch(repaired); verified.ok()) {
    check_batch(*verified, repaired);
  }
}

}  // namespace weir::log::fuzz
