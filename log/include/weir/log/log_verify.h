#pragma once

#include <weir/runtime/file_system.h>
#include <weir/runtime/result.h>
#include <weir/runtime/types.h>

#include <cstdint>
#include <functional>
#include <optional>
#include <string>

namespace weir::log {

enum class VerifySeverity {
  kNote,    // normal: a torn tail, a gap of compaction, a missing index
  kDamage,  // what was durable is lost or wrong
};

struct VerifyFinding {
  VerifySeverity severity = VerifySeverity::kNote;
  std::string file;  // path
  // Bytes [position, end_position) of the file.
  std::optional<std::uint64_t> position;
  std::optional<std::uint64_t> end_position;
  // Offsets [first_offset, next_offset); next_offset is none when nobody knows where they end.
  std::optional<Offset> first_offset;
  std::optional<Offset> next_offset;
  std::string what;
};

struct VerifyTotals {
  std::uint64_t partitions = 0;
  std::uint64_t segments = 0;
  std::uint64_t batches = 0;  // whole ones
  std::uint64_t records = 0;
  std::uint64_t bytes = 0;  // of .log files
  std::uint64_t damage = 0;
  std::uint64_t notes = 0;

  bool sound() const { return damage == 0; }
  VerifyTotals& operator+=(const VerifyTotals& other);
};

// Checks all that can be checked without another copy of the data, and calls `report` for each
// finding, partition by partition in the order of their names.
//
// `path` is a partition folder, a .log file (alone, without its indexes), a log directory (Kafka's
// log.dirs) or a data directory. Whether it was closed cleanly, up to where it was durable and
// where its logs start is taken from the log directory, also for one of its partition folders; a
// folder that is in none counts as one that a crash left behind, with nothing known to be durable.
//
//   - every batch: header, CRC, codec, as many records as the header says, their offsets; offsets
//     and leader epochs from batch to batch and from segment to segment, holes;
//   - .index, .timeindex and .txnindex against the batches;
//   - CRC of .snapshot files; leader-epoch-checkpoint against the batches; partition.metadata;
//   - the offset checkpoints, against the folders and the ends of their logs; snapshots of the
//     metadata log.
//
// Damage is what a clean close or a recovery point had promised and is not there; what stands in
// front of whole batches and cannot be read; an index or a checkpoint that misleads. Notes are a
// torn or zero tail above the recovery point, indexes and snapshots above it (a crash may have left
// half of them, a start makes them anew), what compaction leaves, missing indexes, files of a
// rename that a crash cut short, message sets of magic 0 and 1.
//
// Threading: any thread. Reads only, beside a running writer too, whose newest batches may be left
//            out. Ownership: borrows everything. Only this call calls `report`.
// Bounds:    one batch (at most 256 MiB, and as much decompressed), the three index files of a
//            segment, 1,000 findings a partition: more are counted, and said so in one finding.
// Errors:    kNotFound, kInvalidArgument (neither a log nor a directory of logs), kIo. Those that
//            concern one of several partitions are findings.
Result<VerifyTotals> verify_log(FileSystem& files, const std::string& path,
                                const std::function<void(const VerifyFinding&)>& report);

}  // namespace weir::log
