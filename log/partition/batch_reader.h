#pragma once

#include "log/partition/partition.h"
#include "log/segment/segment_scan.h"

namespace weir::log {

// What to read from one segment file.
struct ReadRange {
  std::uint64_t position = 0;      // of a batch
  std::uint64_t end_position = 0;  // behind the last batch that was published
  Offset from;                     // batches that end before it are left out
  Offset limit;                    // no batch at or behind it
  Offset offset_end = kOffsetMax;  // base of the next segment
  std::size_t bytes_max = 0;
};

struct ReadBatches {
  std::vector<FetchedBatch> batches;  // slices of one pooled buffer
  std::uint64_t end_position = 0;     // behind the last batch
};

// Whole batches, at least one if there is any, then up to `bytes_max`. CRCs are the caller's
// business; headers and the order of offsets are checked. Damage behind the first batch ends the
// read, so that the next one meets it.
// Errors: kCorrupt when the first batch is damaged (names file, position and offset), kIo,
// kUnsupported.
Result<ReadBatches> read_batches(File& file, const ReadRange& range);

}  // namespace weir::log
