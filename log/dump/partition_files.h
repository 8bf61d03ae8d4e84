#pragma once

#include "log/partition/producer_snapshot.h"
#include "log/segment/aborted_transactions.h"
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

// Calls `entry` for each entry of `entry_bytes` in the first `size` bytes of a file; not for the
// zeroes behind the last one, which are the rest of a preallocated file, nor for a part of an
// entry at the end. Bounds: one buffer of 64 KiB.
// Errors: kIo.
Status for_each_entry(File& file, std::uint64_t size, std::size_t entry_bytes,
                      const std::function<void(const char*)>& entry);

// What is wrong with an index of `size` bytes whose end is a part of an entry.
Error odd_size(std::uint64_t size, std::size_t entry_bytes);

}  // namespace weir::log
