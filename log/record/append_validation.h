#pragma once

#include "log/record/batch_decoder.h"

#include <cstdint>

namespace weir::log {

// What a log asks of a batch before it stores it.
struct AppendRules {
  // The batch was made by BatchBuilder or build_control_batch in this process: its records are not
  // read, so a check costs a few instructions a batch. require_keys and timestamp_min are then the
  // sender's duty: of timestamps only the first and the largest are looked at.
  bool trust_records = false;
  // Control batches: only what coordinators and the metadata log append.
  bool allow_control = false;
  // Topics with cleanup.policy=compact: a record without a key could never be replaced.
  bool require_keys = false;
  TimestampType timestamp_type = TimestampType::kCreateTime;
  // Earliest and latest record timestamp (now - message.timestamp.before.max.ms, now +
  // message.timestamp.after.max.ms); kNoTimestamp passes. Looked at for CreateTime only.
  Timestamp timestamp_min = INT64_MIN;
  Timestamp timestamp_max = INT64_MAX;
  DecodeLimits limits;
};

// Header fields that a log puts right rather than refuses, as Kafka's LogValidator does: clients
// exist that write a wrong maxTimestamp, and readers look batches up by it.
struct AppendFix {
  bool needed = false;
  Timestamp max_timestamp = kNoTimestamp;  // hand both to stamp_create_time()
};

// Refuses what Kafka's broker refuses, and beyond that what would hurt a reader: offset deltas that
// are not 0, 1, 2, ...; lengths below -1; the delete-horizon bit; a producer without an epoch; a
// transactional batch without a producer. Table of differences: docs/formats/record_batch.md.
//
// Requires: `header` is what verify_batch(batch) returned.
// `fix`:   what must be stamped before the batch is stored. Null: such a batch is refused.
// Errors:  kInvalidRecord, kInvalidTimestamp, kCorrupt (the compressed stream), kUnsupported
// (codec). Bounds:  no allocation but the decompressed records, at most
// limits.decompressed_bytes_max.
Status validate_for_append(const BatchHeader& header, ByteView batch, const AppendRules& rules,
                           AppendFix* fix);

// Sets CreateTime and maxTimestamp, and recomputes the CRC; records are not re-encoded.
// Requires: batch_size >= kBatchHeaderBytes.
void stamp_create_time(char* batch, std::size_t batch_size, Timestamp max_timestamp);

}  // namespace weir::log
