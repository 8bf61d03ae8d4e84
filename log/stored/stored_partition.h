#pragma once

#include "log/partition/leader_epoch_cache.h"
#include "log/partition/partition.h"
#include "log/stored/segment_survey.h"

#include <weir/log/stored_log.h>
#include <weir/runtime/file_system.h>
#include <weir/runtime/thread_annotations.h>

#include <array>
#include <memory>
#include <optional>
#include <string>

namespace weir::log {

// One partition folder that is only read. open() reads it through, so that what is lost, where the
// log ends and how each transaction ended is known before the first record is served. Index files
// are not looked at: the pass leaves positions of its own.
//
// Threading: thread-safe.
// Bounds:    48 bytes a MiB of log; one descriptor; see StoredLog for the rest.
class StoredPartition {
 public:
  struct Options {
    TopicPartition name;
    std::string path;                           // empty: a partition without records
    Offset log_start;                           // of log-start-offset-checkpoint; 0 if unknown
    LeaderEpoch leader_epoch = kNoLeaderEpoch;  // of the metadata; no batch has a later one
    bool compacted = false;                     // holes between segments are no loss
  };
  struct Fetched {
    std::vector<FetchedBatch> batches;
    Offset next_offset;  // behind the last batch, and behind what is lost at the end of the log
  };

  // `files` writes nothing and outlives the partition.
  // Errors: kUnsupported (magic 0 and 1; names the file), kIo.
  static Result<std::shared_ptr<StoredPartition>> open(FileSystem& files, Options options);

  // Whole batches at or behind `from` that are intact, at least one if there is any, then up to
  // `bytes_max`. Whoever reads them checks the CRC again: the files may have changed since.
  // Errors: kOffsetOutOfRange, kCorrupt (changed since), kIo, kNotFound (gone since).
  Result<Fetched> read(Offset from, std::size_t bytes_max);
  // First record in offset order at or after `time`.
  Result<std::optional<Offset>> offset_for_time(Timestamp time);
  std::optional<Offset> epoch_end_offset(LeaderEpoch epoch) const {
    return epochs_.end_offset(epoch, report_.offsets.log_end);
  }
  const TransactionEnds& transactions() const { return survey_.transactions; }
  // Offsets as they are: the high watermark is the log's end.
  const PartitionOffsets& offsets() const { return report_.offsets; }
  const StoredPartitionReport& report() const { return report_; }

 private:
  // Where reads ended: one that goes on from there needs no look-up.
  struct Hint {
    Offset next = kNoOffset;
    std::uint64_t position = 0;
  };

  explicit StoredPartition(FileSystem& files) : files_(files) {}
  Result<std::shared_ptr<File>> file_of(const BatchRun& run);
  Result<std::uint64_t> locate(File& file, const BatchRun& run, Offset from);
  void remember(Offset next, std::uint64_t position);

  FileSystem& files_;
  Survey survey_;
  LeaderEpochCache epochs_;
  StoredPartitionReport report_;

  Mutex mutex_;
  std::uint32_t open_index_ WEIR_GUARDED_BY(mutex_) = 0;  // of the file in open_file_
  std::shared_ptr<File> open_file_ WEIR_GUARDED_BY(mutex_);
  std::array<Hint, 4> hints_ WEIR_GUARDED_BY(mutex_);
  std::size_t next_hint_ WEIR_GUARDED_BY(mutex_) = 0;
};

}  // namespace weir::log
