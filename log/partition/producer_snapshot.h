#pragma once

#include <weir/runtime/bytes.h>
#include <weir/runtime/result.h>
#include <weir/runtime/types.h>

#include <cstdint>
#include <string>
#include <vector>

namespace weir::log {

// A .snapshot file: the producers' state before the offset in its name
// (org.apache.kafka.storage.internals.log.ProducerStateManager, ProducerSnapshot.json):
//
//   i16 version = 1 | u32 CRC-32C of byte 6 to the end | i32 count | count entries of 46 bytes:
//   i64 producerId | i16 epoch | i32 lastSequence | i64 lastOffset | i32 offsetDelta
//   | i64 timestamp | i32 coordinatorEpoch | i64 currentTxnFirstOffset
struct ProducerEntry {
  ProducerId id;
  ProducerEpoch epoch;
  // Of its last batch; without one (lastOffset < 0 in the file) -1, -1 and 0.
  std::int32_t last_sequence = -1;
  Offset last_offset = kNoOffset;
  std::int32_t offset_delta = 0;
  Timestamp timestamp = kNoTimestamp;
  std::int32_t coordinator_epoch = -1;
  Offset transaction_first_offset = kNoOffset;  // -1: no open transaction
  friend bool operator==(const ProducerEntry&, const ProducerEntry&) = default;
};

std::string encode_producer_snapshot(const std::vector<ProducerEntry>& entries);
// Errors: kCorrupt, kUnsupported (a later version).
Result<std::vector<ProducerEntry>> parse_producer_snapshot(ByteView file);

}  // namespace weir::log
