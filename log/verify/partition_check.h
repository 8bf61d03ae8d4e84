#pragma once

#include <weir/log/log_verify.h>
#include <weir/runtime/file_system.h>

#include <string>
#include <vector>

namespace weir::log {

// What is known about a partition from outside its folder.
struct PartitionCheckOptions {
  // It was closed cleanly: whatever stands in its files was durable.
  bool clean = false;
  // Offsets below it were durable.
  Offset recovery_point;
  // Not closed cleanly, and a write-ahead log beside it decides what stands from there on.
  bool has_write_ahead_log = false;
  // Records below it were deleted, and may be gone from the files.
  Offset log_start;
  // cleanup.policy, where it is known: holes are normal. Else the batches tell: a hole inside a
  // segment, a batch with fewer records than offsets.
  bool compacted = false;
  // Of the segments' side-cars (docs/formats/checksums.md); empty: there are none. What they say is
  // true below the recovery point, and after a clean close of everything.
  std::string checksum_folder;
  // Findings behind this number are counted only, and the last one says so.
  std::size_t findings_max = 1000;
};

struct PartitionCheck {
  std::vector<VerifyFinding> findings;  // roughly in the order of the files
  VerifyTotals totals;
  Offset log_start;  // base of the first segment; 0 without one
  Offset log_end;    // behind the last whole batch; log_start without one
};

// Checks one partition folder, or one .log file without what stands beside it. See verify_log().
//
// The folder is read through `files` alone, so that a caller who wants a limit on bandwidth gives a
// FileSystem that has one.
//
// Threading: any thread; blocks. Bounds and errors as verify_log().
Result<PartitionCheck> check_partition(FileSystem& files, const std::string& path,
                                       const PartitionCheckOptions& options);

}  // namespace weir::log
