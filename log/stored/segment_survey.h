#pragma once

#include "log/segment/segment_scan.h"
#include "log/stored/transaction_ends.h"

#include <weir/log/stored_log.h>
#include <weir/runtime/file_system.h>

#include <string>
#include <vector>

namespace weir::log {

// Whole, checked batches side by side in a file: no damage within. About 1 MiB, or one batch.
struct BatchRun {
  std::uint32_t file = 0;  // index of Survey::files
  std::uint64_t position = 0;
  std::uint64_t end_position = 0;
  Offset first;  // base offset of the first batch
  Offset next;   // behind the last one
  Timestamp max_timestamp = kNoTimestamp;
};

// What a pass over the segments of a partition folder found.
struct Survey {
  Offset first;  // of the first segment's name; 0 without segments
  Offset end;    // behind the last whole batch
  std::uint64_t bytes = 0;
  std::vector<std::string> files;
  std::vector<BatchRun> runs;      // in offset order
  std::vector<EpochStart> epochs;  // as the batches say; the field is outside their CRC
  std::vector<LostOffsets> lost;
  std::string tail;
  TransactionEnds transactions;
};

// Reads every .log file of `folder` through and checks each batch, segments side by side.
// `compacted`: holes between segments are no loss.
// Errors: kUnsupported (message sets of magic 0 or 1; names file and position), kNotFound, kIo.
Result<Survey> survey_folder(FileSystem& files, const std::string& folder, bool compacted);

}  // namespace weir::log
