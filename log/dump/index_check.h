#pragma once

#include "log/dump/partition_files.h"
#include "log/dump/segment_walk.h"
#include "log/segment/offset_index.h"
#include "log/segment/time_index.h"

#include <weir/runtime/record.h>

#include <map>
#include <optional>
#include <string>
#include <unordered_set>
#include <vector>

namespace weir::log {

// Something in an index file that the log contradicts.
struct IndexFault {
  std::string file;                       // path
  std::optional<std::uint64_t> position;  // of the entry
  std::optional<Offset> offset;           // that the entry names
  std::string what;
};

struct AbortMarker {
  ProducerId producer;
  Offset offset;
  bool ends_records = false;  // of this partition, seen before
};

// Follows transactions through the batches of a partition, from the first segment to the last.
// Bounds: an entry for each producer with an open transaction.
class AbortTracker {
 public:
  // When `batch` is a marker that aborts, or may be one: of an empty one compaction took the
  // record.
  std::optional<AbortMarker> add(const WalkedBatch& batch);

 private:
  std::unordered_set<ProducerId> open_;
  RecordViews records_;
  SharedBytes decompressed_;
};

// Compares the index files of one segment with its batches, which are given one by one as they
// stand in the file. An entry that leads a reader to the right place is right, so indexes of older
// Kafkas (one entry for several batches) are too. What stands in a damaged range is not looked at.
//
// An offset index entry must name the first byte of a batch that ends at or below its offset and
// begins behind the entry before; a time index entry the largest timestamp up to its offset; a
// transaction index entry an ABORT marker of its producer, and each marker that ends records must
// have one.
//
// Threading: confined to its owner. Ownership: borrows `files` in the constructor only.
// Bounds:    the three files (at most 64 MiB each; a larger one is a fault), and an entry for each
//            producer with an open transaction. One fault a file: its first.
class IndexCheck {
 public:
  // `suffix` is what a transition put behind the names (".swap"), or empty.
  IndexCheck(FileSystem& files, const std::string& folder, Offset base,
             std::string_view suffix = {});

  void add(const WalkedBatch& batch);
  void add(const DamagedRange& range);
  void add(const AbortMarker& marker);
  // Once, behind the last batch.
  std::vector<IndexFault> finish();

  bool has_offset_index() const { return has_offset_index_; }
  bool has_time_index() const { return has_time_index_; }

 private:
  struct TimeEntry {
    Timestamp timestamp;
    Offset offset;
  };
  struct IndexFile {
    std::string path;
    bool failed = false;
  };

  // Calls `entry` for each entry; false when the file is not there.
  bool read(FileSystem& files, IndexFile& file, std::size_t entry_bytes,
            const std::function<void(const char*)>& entry);
  void fault(IndexFile& file, std::optional<std::uint64_t> position, std::optional<Offset> offset,
             std::string what);
  void read_offset_entry(const char* in, Offset base);
  void read_time_entry(const char* in, Offset base);
  void no_batch_at(std::size_t i);
  void check_offset_entry(const WalkedBatch& batch);
  void check_time_entries(const BatchHeader& header);

  IndexFile offset_file_;
  IndexFile time_file_;
  IndexFile transaction_file_;
  bool has_offset_index_ = false;
  bool has_time_index_ = false;
  bool has_transaction_index_ = false;
  std::vector<OffsetIndex::Entry> offsets_;
  std::vector<TimeEntry> times_;
  std::map<Offset, AbortedTransaction> aborted_;  // by the marker; not found yet
  std::size_t next_offset_entry_ = 0;
  std::size_t next_time_entry_ = 0;
  Timestamp largest_ = kNoTimestamp;
  bool has_damage_ = false;
  std::vector<IndexFault> faults_;
};

// The same for a segment file that nobody walks; nothing when it cannot be opened. Transactions
// that began in an earlier segment are not known here. Errors: kIo.
Result<std::vector<IndexFault>> check_indexes(FileSystem& files, const std::string& folder,
                                              Offset base);

}  // namespace weir::log
