#pragma once

#include "log/partition/segment_swap.h"
#include "log/segment/aborted_transactions.h"
#include "log/segment/checksum_file.h"
#include "log/segment/segment_indexes.h"

#include <weir/runtime/file_system.h>

#include <memory>
#include <string>
#include <vector>

namespace weir::log {

// Writes the files ".cleaned" of one segment: log, indexes, aborted transactions; and, once it is
// in force, its side-car.
//
// Threading: confined to its owner. Ownership: borrows `files`.
// Bounds:    a buffer of 256 KiB or one batch; 20 bytes an index entry; checksums of 65,536 batches
//            (2 MiB), for more the scrub makes the side-car.
class CleanedWriter {
 public:
  struct Target {
    std::string folder;
    Offset base;
    std::int64_t index_interval_bytes = 4096;
    std::string side_car;  // path; empty: none
  };
  // Files of that name that a failed attempt left are overwritten.
  static Result<CleanedWriter> create(FileSystem& files, Target target);

  // Errors of all: kNoSpace, kIo.
  Status add(const BatchHeader& header, ByteView batch);
  std::uint64_t size_bytes() const { return position_; }
  // Makes all durable, names too, save the side-car.
  Status finish(const AbortedTransactions& aborted);
  // The segment is in force. No scrub may be in a step.
  void write_side_car();
  // Takes back whatever was written.
  void abandon();

 private:
  CleanedWriter(FileSystem& files, Target target, std::shared_ptr<File> log)
      : files_(&files), target_(std::move(target)), log_(std::move(log)), indexes_(target_.base) {}
  Status flush();
  Status write_file(std::string_view suffix, ByteView bytes);

  FileSystem* files_;
  Target target_;
  std::shared_ptr<File> log_;
  SegmentIndexes indexes_;
  std::string buffer_;
  std::uint64_t position_ = 0;  // behind the last batch
  std::uint64_t synced_ = 0;
  std::vector<BatchChecksum> checksums_;
  bool has_all_checksums_ = true;
};

}  // namespace weir::log
