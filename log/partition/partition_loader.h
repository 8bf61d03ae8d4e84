#pragma once

#include "log/partition/leader_epoch_cache.h"
#include "log/partition/partition.h"
#include "log/partition/producer_loader.h"
#include "log/segment/segment.h"

#include <memory>
#include <vector>

namespace weir::log {

// What stands in a partition folder.
struct LoadedLog {
  std::vector<std::shared_ptr<Segment>> segments;  // rising; the last one is active
  LeaderEpochCache epochs;
  bool epochs_changed = false;  // the file says something else
  bool folder_exists = false;
  bool metadata_exists = false;  // partition.metadata
  Offset log_start;
  Offset log_end;
  Offset recovery_point;  // what the files hold durably
  RecoveryReport report;
  LoadedProducers producers;  // of a read-only log none
};

// segment.bytes is held below 2 GiB: an index entry has 31 bits for a position.
SegmentSettings segment_settings(const PartitionSettings& settings);

// Reads the folder; an unclean start recovers it (reference R 2.9 for one node):
//   - segments with offsets at or above the recovery point are walked with CRC, their indexes and
//     epochs made anew;
//   - the first bad batch of the last segment ends the log. In a `memory` log that holds for every
//     segment, and for a hole between two; later segments are removed. In an `fsync` log a sealed
//     segment was synced before the next was made: damage there is no torn tail, it is reported and
//     kept;
//   - what is left is synced, file and folder, before this returns;
//   - with a write-ahead log its batches above the recovery point are compared with what is left
//     and replace it from the first difference on; only what it does not have is synced;
//   - its producers are found as load_producers() says.
// Files that are no part of a log are left alone. Read-only: nothing is written or cut.
// Errors: kIo, kNoSpace, kUnsupported (magic 0 and 1), kCorrupt (another topic's folder).
Result<LoadedLog> load_partition(const Partition::Environment& environment,
                                 const Partition::OpenOptions& options);

}  // namespace weir::log
