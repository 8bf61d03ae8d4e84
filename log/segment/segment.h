#pragma once

#include "log/record/batch_header.h"
#include "log/segment/aborted_transactions.h"
#include "log/segment/checksum_file.h"
#include "log/segment/segment_indexes.h"
#include "log/segment/segment_resources.h"
#include "log/segment/segment_scan.h"

#include <weir/runtime/file_system.h>
#include <weir/runtime/thread_annotations.h>

#include <memory>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

namespace weir::log {

struct SegmentSettings {
  std::int64_t segment_bytes = 1LL << 30;
  std::int64_t segment_ms = 7LL * 24 * 3600 * 1000;
  std::int64_t segment_index_bytes = 10LL << 20;
  std::int64_t index_interval_bytes = 4096;
  // Appended batches are remembered for the side-car, which keep_checksums() named.
  bool collects_checksums = false;
};

// One file of batches and its two indexes (docs/formats/segment.md). The last segment of a log is
// active: its indexes live in memory and its files are written when it is rolled or closed. The
// others are sealed: their indexes are read when first needed, compared with the log at every use,
// and made anew from the log when they lie.
//
// Threading: thread-safe; create(), append(), trim() and the like are called by one appender at a
//            time. No lock is held during I/O.
// Ownership: borrows `files`. An open file outlives the removal of its name.
// Bounds:    at most one descriptor; indexes 8 + 16 bytes an entry until release(); checksums of up
//            to 65,536 batches (2 MiB) between two flushes, of more none; 40 bytes an aborted
//            transaction until release().
class Segment {
 public:
  Segment(FileSystem& files, std::string folder, Offset base, bool writable,
          std::shared_ptr<SegmentResources> resources = nullptr)
      : files_(files),
        folder_(std::move(folder)),
        base_(base),
        writable_(writable),
        resources_(std::move(resources)) {}
  ~Segment();
  Segment(const Segment&) = delete;
  Segment& operator=(const Segment&) = delete;

  Offset base_offset() const { return base_; }
  std::string path(std::string_view suffix) const;  // of ".log", ".index", ...

  // --- Set-up, before the segment is shared.
  // A walked segment: indexes as they stand in memory.
  void adopt(const ScanResult& scan, SegmentIndexes indexes, std::int64_t index_interval_bytes);
  // A sealed segment that is trusted until it is read.
  void adopt_sealed(std::uint64_t size_bytes, Offset end_offset, std::int64_t index_interval_bytes);
  // Its side-car is in `folder`, made when it is needed. Without it there is none.
  void keep_checksums(const std::string& folder);
  // After an unclean end: what the side-car says of offsets from `end` on need not be true.
  void distrust_checksums(Offset end);

  // What .txnindex is to say, and how many of these entries stand in the file already. The file is
  // brought in line by write_aborted().
  void set_aborted(AbortedTransactions entries, std::size_t written);

  // --- The appender's side.
  // Makes the empty file. Its name is durable only after sync_directory().
  Status create(const SegmentSettings& settings, Timestamp now);
  // Whether Kafka would start a new segment before this batch: size, segment.ms by the timestamps
  // of the batches, full index, offset out of an index entry's reach.
  bool must_roll(const BatchHeader& header, const SegmentSettings& settings, Timestamp now) const;
  // Writes a whole batch behind the last and publishes it to readers of this segment.
  // Errors: kNoSpace: the file is as before; kIo: unknown bytes stand behind the last batch.
  Status append(ByteView batch, const BatchHeader& header, const SegmentSettings& settings);
  // A transaction was aborted by a marker of this segment. In the file when this returns, or, when
  // it cannot be written, with the next write_aborted(). Before the marker is published.
  void add_aborted(const AbortedTransaction& aborted);
  // Completes .txnindex. `durable` syncs it too. Errors: kNoSpace, kIo.
  Status write_aborted(bool durable);
  // Cuts what was reserved and not used.
  Status trim();
  Status sync();
  // Completes the indexes and writes their files. `durable` syncs them too.
  Status write_indexes(bool durable);
  // No appends from now on; all batches are below `end`.
  void seal(Offset end);
  // Everything below `end` is durable now: brings the side-car up to there. What was not to be
  // trusted is gone from it, durably, when this returns ok, so call it before `end` becomes the
  // recovery point. That it cannot be made longer is no error: it says less then. One call at a
  // time. Errors: kIo.
  Status write_checksums(Offset end);
  // Its names are about to go, or to be another segment's: a file that is open stays so for those
  // who have it, none is opened by name any more.
  void retire();
  bool is_retired() const;
  // Read-only logs: walks what the holder appended since, up to `limit`; all below is durable.
  Status extend(Offset limit, Offset end_offset);

  // --- Readers.
  std::uint64_t size_bytes() const;
  Offset next_offset() const;  // behind the last batch; for a sealed one the base of the next
  bool sealed() const;
  // Opens the file if it is not. Errors: kNotFound also for a segment that was retired, and for a
  // sealed one of a read-only log that another one has taken the place of.
  Result<std::shared_ptr<File>> file();
  // Position of the batch that holds `target`, or of the first behind it; nullopt when there is
  // none in this segment. Errors: kCorrupt when `target` lies in damaged bytes (names file,
  // position, offsets and where reading can go on), kIo, kUnsupported.
  Result<std::optional<std::uint64_t>> locate(Offset target);
  // Largest timestamp of any batch; kNoTimestamp when there is none.
  Result<Timestamp> largest_timestamp();
  // Of the first batch; kNoTimestamp when there is none. Errors: kCorrupt, kIo.
  Result<Timestamp> first_timestamp();
  // First record in offset order in [from, limit) at or after `time`, of those that can be read.
  // Errors: kCorrupt, kIo, kUnsupported.
  Result<std::optional<Offset>> find_time(Timestamp time, Offset from, Offset limit);
  // The entry that Kafka's OffsetIndex.lookup gives; for tests and tools.
  Result<std::optional<OffsetIndex::Entry>> index_entry(Offset target);
  Result<SegmentIndexes> indexes_copy();
  // The transactions that markers of this segment aborted.
  bool has_aborted() const;
  // As the function of that name. Errors: kNotFound (the segment was removed since), kCorrupt, kIo.
  Result<bool> collect_aborted(Offset from, Offset to, AbortedTransactions& out);
  Result<AbortedTransactions> aborted_transactions();
  // Read-only logs: the file is asked again.
  void forget_aborted();
  // Drops the descriptor and loaded indexes of a sealed segment until they are needed again.
  void release();
  // Drops the descriptor until it is needed again.
  void close_file();
  // Index files that were missing or wrong and made anew since construction.
  std::uint32_t indexes_rebuilt() const;
  // The side-car as far as it is to be trusted. Errors: kIo.
  Result<ChecksumReader> checksums(Offset limit) const;
  std::string checksum_path() const;  // empty when there is none
  // What the side-car shows to be wrong below `limit` in the first `bytes` of the file, which end
  // at `end` (kOffsetMax: unknown). Reads the heads of the batches alone.
  Result<std::vector<Damage>> compare_heads(Offset limit, std::uint64_t bytes, Offset end);
  // Ranges that are known to be damaged: readers meet kCorrupt there and nowhere else. Rising.
  void set_damage(std::vector<Damage> damage);
  std::vector<Damage> damage() const;
  // How far one can read from `position` on before a damaged range begins; `position` inside of
  // one.
  std::uint64_t readable_end(std::uint64_t position) const;
  // A consistent pair: bytes that were published, and the offset behind them.
  std::pair<std::uint64_t, Offset> published_end() const;

  // Reads the indexes now (sealed segments), rebuilding what is missing or broken.
  Status load_indexes();
  // What the index files say about a log of `log_bytes`. Errors: kNotFound, kCorrupt, kIo.
  Result<SegmentIndexes> read_index_files(std::uint64_t log_bytes);

 private:
  struct View {
    std::shared_ptr<File> file;
    std::uint64_t size_bytes = 0;
    Offset end_offset;
    bool sealed = false;
    std::shared_ptr<const std::vector<Damage>> damage;  // null: none

    // The damaged range that `position` lies in.
    const Damage* damage_at(std::uint64_t position) const;
  };
  Result<View> view();
  Status rebuild_indexes(std::string_view reason);
  ScanRange whole_range(const View& view) const;
  struct Located {
    std::optional<std::uint64_t> position;
    BatchHeader header;
    bool index_lies = false;
    bool look_again = false;  // it became known what is damaged
  };
  Result<bool> breaks_order(const View& view, const BatchHeader& header, std::uint64_t position,
                            Offset expected) const;
  Result<Located> walk_to(const View& view, std::optional<OffsetIndex::Entry> entry, Offset target);
  std::optional<OffsetIndex::Entry> entry_below(const View& view, Offset target) const;
  Result<bool> learn_damage();
  Result<Located> locate_batch(Offset target);
  Result<std::uint64_t> time_start(Timestamp time);
  Status write_index_file(std::string_view suffix, ByteView bytes, bool durable);
  Status write_index_files(ByteView offsets, ByteView times, bool durable);
  Error replaced() const;
  Status check_opened(File& opened) const;
  Status reserve_for(std::uint64_t needed, std::int64_t segment_bytes);
  void set_unused(std::uint64_t bytes);
  void collect_checksum(const BatchHeader& header, ByteView batch, std::uint64_t position)
      WEIR_REQUIRES(mutex_);
  std::pair<std::vector<BatchChecksum>, std::uint64_t> take_checksums(Offset end);
  Status append_checksums(const std::string& path, std::span<const BatchChecksum> batches,
                          std::uint64_t position);
  Error damaged(std::uint64_t position, Offset from, std::optional<Offset> readable,
                std::string_view what) const;

  FileSystem& files_;
  const std::string folder_;
  const Offset base_;
  const bool writable_;
  const std::shared_ptr<SegmentResources> resources_;

  mutable Mutex mutex_;
  std::shared_ptr<File> file_ WEIR_GUARDED_BY(mutex_);
  std::unique_ptr<SegmentIndexes> indexes_ WEIR_GUARDED_BY(mutex_);
  std::uint64_t size_bytes_ WEIR_GUARDED_BY(mutex_) = 0;
  Offset next_offset_ WEIR_GUARDED_BY(mutex_);
  bool sealed_ WEIR_GUARDED_BY(mutex_) = false;
  bool retired_ WEIR_GUARDED_BY(mutex_) = false;
  std::optional<Timestamp> largest_timestamp_ WEIR_GUARDED_BY(mutex_);  // sealed, once known
  std::int64_t index_interval_bytes_ WEIR_GUARDED_BY(mutex_) = 4096;
  std::uint32_t indexes_rebuilt_ WEIR_GUARDED_BY(mutex_) = 0;
  std::shared_ptr<const std::vector<Damage>> damage_ WEIR_GUARDED_BY(mutex_);
  std::optional<AbortedTransactions> aborted_
      WEIR_GUARDED_BY(mutex_);  // nullopt: in the file alone
  std::size_t aborted_count_ WEIR_GUARDED_BY(mutex_) = 0;
  std::size_t aborted_written_ WEIR_GUARDED_BY(mutex_) = 0;  // entries at the start of the file
  bool damage_learned_ WEIR_GUARDED_BY(mutex_) = false;
  // Batches that were appended since the last flush, neighbours, the first at checksums_from_.
  std::vector<BatchChecksum> checksums_ WEIR_GUARDED_BY(mutex_);
  std::uint64_t checksums_from_ WEIR_GUARDED_BY(mutex_) = 0;
  bool checksums_overflow_ WEIR_GUARDED_BY(mutex_) = false;  // none until the next flush
  Offset checksums_trusted_ WEIR_GUARDED_BY(mutex_) = kOffsetMax;
  std::string checksum_folder_;          // set before it is shared
  std::optional<ChecksumEnd> side_car_;  // write_checksums()'s: where it ends, once known
  // The appender's alone.
  std::uint64_t reserved_bytes_ = 0;
  std::uint64_t unused_bytes_ = 0;  // of them, as counted by resources_
  Timestamp created_ = kNoTimestamp;
};

}  // namespace weir::log
