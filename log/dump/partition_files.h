#pragma once

#include "log/segment/segment_scan.h"

#include <weir/runtime/bytes.h>
#include <weir/runtime/file_system.h>
#include <weir/runtime/types.h>

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

namespace weir::log {

// The small files of a partition folder, as Kafka writes them.
// Errors everywhere: kCorrupt (what is wrong), kUnsupported (a later version).

// leader-epoch-checkpoint: "0\n<count>\n<epoch> <start offset>\n..."; an empty file has no entries
// (org.apache.kafka.storage.internals.checkpoint.LeaderEpochCheckpointFile).
Result<std::vector<EpochStart>> parse_leader_epochs(std::string_view text);

// partition.metadata: "version: 0\ntopic_id: <22 characters>"
// (org.apache.kafka.storage.internals.checkpoint.PartitionMetadataFile).
struct PartitionMetadata {
  std::int32_t version = 0;
  Uuid topic_id;
};
Result<PartitionMetadata> parse_metadata_file(std::string_view text);

// .snapshot: the producers' state before the offset in its name
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
};
Result<std::vector<ProducerEntry>> parse_producer_snapshot(ByteView file);

// .txnindex entry of 34 bytes (org.apache.kafka.storage.internals.log.AbortedTxn):
//   i16 version = 0 | i64 producerId | i64 firstOffset | i64 lastOffset | i64 lastStableOffset
struct AbortedTransaction {
  static constexpr std::size_t kBytes = 34;
  std::int16_t version = 0;
  ProducerId producer_id;
  Offset first_offset;
  Offset last_offset;  // of the ABORT marker
  Offset last_stable_offset;
};
// Requires: kBytes at `in`.
AbortedTransaction read_aborted_transaction(const char* in);

// Calls `entry` for each entry of `entry_bytes` in the first `size` bytes of a file; not for the
// zeroes behind the last one, which are the rest of a preallocated file, nor for a part of an
// entry at the end. Bounds: one buffer of 64 KiB.
// Errors: kIo.
Status for_each_entry(File& file, std::uint64_t size, std::size_t entry_bytes,
                      const std::function<void(const char*)>& entry);

// What is wrong with an index of `size` bytes whose end is a part of an entry.
Error odd_size(std::uint64_t size, std::size_t entry_bytes);

}  // namespace weir::log
