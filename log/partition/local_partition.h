#pragma once

#include "log/partition/leader_epoch_cache.h"
#include "log/partition/partition.h"
#include "log/partition/partition_loader.h"
#include "log/partition/tail_cache.h"
#include "log/partition/unstable_transactions.h"
#include "log/record/append_validation.h"

#include <weir/runtime/thread_annotations.h>

#include <array>
#include <deque>

namespace weir::log {

// Partition over segments in a folder.
//
// Locks: names_mutex_ serialises what removes or renames files of sealed segments; append_mutex_
//        appends, rolls, epochs and close; both are held while they write. mutex_ guards what
//        readers and the flusher see and is never held during I/O. Order: names_mutex_,
//        append_mutex_, checksum_mutex_, mutex_, then a Segment's own. Callbacks (Durability,
//        waiters) run outside both.
class LocalPartition final : public Partition {
 public:
  LocalPartition(const Environment& environment, OpenOptions options, LoadedLog log);

  Result<Appended> append(SharedBytes batch, AppendOptions options = {}) override;
  Result<std::optional<std::uint64_t>> start_verification(ProducerId id, ProducerEpoch epoch,
                                                          std::int32_t base_sequence) override;
  bool has_open_transaction(ProducerId id, ProducerEpoch epoch) const override;
  ProducerState producers() const override;
  std::optional<ProducersAt> flushed_producers() const override;
  Result<FetchResult> read(Offset from, std::size_t bytes_max,
                           FetchIsolation isolation = FetchIsolation::kHighWatermark) override;
  Result<std::optional<Offset>> offset_for_time(Timestamp time) override;
  std::optional<Offset> epoch_end_offset(LeaderEpoch epoch) const override;
  PartitionOffsets offsets() const override;
  void add_waiter(std::shared_ptr<Notifier> waiter) override;
  void remove_waiter(const std::shared_ptr<Notifier>& waiter) override;
  Status health() const override;
  const RecoveryReport& recovery() const override { return report_; }
  const OpenOptions& options() const override { return options_; }
  Status set_leader_epoch(LeaderEpoch epoch) override;
  PartitionSettings settings() const override;
  Status set_settings(const PartitionSettings& settings) override;
  Status refresh(Offset log_start, Offset high_watermark,
                 std::optional<Offset> last_stable = std::nullopt) override;
  Status advance_log_start(Offset before) override;
  Status remove_old_segments() override;
  Status roll_active() override;
  Status replace_segments(const std::vector<std::shared_ptr<Segment>>& old,
                          const CleanedSegment& cleaned) override;
  Status flush() override;
  Offset recovery_point() const override;
  void release_idle() override;
  using Partition::close;
  Status close(FlushMode mode) override;
  std::vector<SegmentDamage> damage() const override;
  std::vector<std::shared_ptr<Segment>> segments() const override;
  void abandon() override;

  Identity identity() const override { return {options_.topic_id, options_.name.partition}; }
  std::size_t unflushed_count() const override;
  Result<Unflushed> prepare_flush(FlushMode mode) override;
  void on_flushed(Offset end) override;
  void on_durable(Offset end) override;
  void wake_waiters() override { notify_waiters(); }
  void on_durability_lost(const Error& error) override;

 private:
  friend class GroupAppender;  // log/partition/append_group.h
  using Segments = std::vector<std::shared_ptr<Segment>>;

  // --- Appending; local_partition.cc. Flushing and closing; local_partition_flush.cc
  struct Pending {
    bool added = false;  // to what makes it durable
    bool moved = false;  // the high watermark
    // Takes what would be added; null: it is added at once.
    std::vector<Durability::Entry>* group = nullptr;
  };
  Status admit() const;
  Result<Appended> append_or_use_reserve(SharedBytes& batch, const AppendOptions& options,
                                         Pending& pending) WEIR_REQUIRES(append_mutex_);
  Result<Appended> append_locked(SharedBytes& batch, const AppendOptions& options, Pending& pending)
      WEIR_REQUIRES(append_mutex_);
  Status check_open() const WEIR_EXCLUDES(mutex_);
  // Validates `batch` and puts it into the form in which it is stored, save offset and epoch.
  // Returns the time that was stamped; kNoTimestamp with CreateTime.
  Result<Timestamp> prepare_batch(SharedBytes& batch, AppendOrigin origin,
                                  const PartitionSettings& settings) const;
  Status check_size(const SharedBytes& batch, const PartitionSettings& settings) const;
  Result<BatchHeader> check_header(const SharedBytes& batch, AppendOrigin origin) const;
  AppendRules append_rules(AppendOrigin origin, const PartitionSettings& settings) const;
  Status prepare_folder() WEIR_REQUIRES(append_mutex_);
  Status make_folder() WEIR_REQUIRES(append_mutex_);
  Status write_metadata(bool durable) WEIR_REQUIRES(append_mutex_);
  Status write_epochs(bool durable) WEIR_REQUIRES(append_mutex_);
  // A file's name or a side file changed without a sync: the next flush has it to do.
  void note_side_change() WEIR_EXCLUDES(mutex_);
  bool writes_ahead() const { return environment_.durability->writes_ahead(); }
  Status end_active(const PartitionSettings& settings, Offset base) WEIR_REQUIRES(append_mutex_);
  Status roll(const PartitionSettings& settings) WEIR_REQUIRES(append_mutex_);
  SegmentSettings segment_rules(const PartitionSettings& settings) const;
  void publish(SharedBytes batch, const BatchHeader& header, const PartitionSettings& settings,
               Pending& pending) WEIR_REQUIRES(append_mutex_);
  // Refuses appends from now on. Returns `error`.
  Error poison(const Error& error) WEIR_EXCLUDES(mutex_);
  // The segments that hold unflushed bytes, and their end.
  Segments unflushed_segments(bool with_active, Offset* end) const WEIR_REQUIRES(mutex_);
  Result<Unflushed> prepare(FlushMode mode, bool with_active) WEIR_REQUIRES(append_mutex_);
  // Brings the side-cars up to `end`, below which everything is durable.
  Status write_checksums(Offset end) WEIR_EXCLUDES(mutex_);
  Status add_index_files(const Segments& segments, Unflushed& result) const;
  Status add_transaction_indexes(const Segments& segments, Unflushed& result) const;
  // Makes durable whatever was appended so far, in its files (kByDisk: as soon as the caller has
  // synced the disk).
  // --- Producers; local_partition_producers.cc
  static bool has_producer(const SharedBytes& batch);
  // The answer to a batch that is not to be appended; nullopt: it is.
  Result<std::optional<Appended>> check_producer(const SharedBytes& batch,
                                                 const AppendOptions& options)
      WEIR_REQUIRES(append_mutex_);
  // The batch stands in the active segment and is not published.
  void note_producer(const BatchHeader& header, ByteView batch) WEIR_REQUIRES(append_mutex_);
  void write_snapshot(Offset at, bool durable) WEIR_REQUIRES(append_mutex_);
  // For wal/producers, once everything below `at`, the log's end, is flushed.
  void capture_producers(Offset at) WEIR_REQUIRES(append_mutex_);
  Offset last_stable() const WEIR_REQUIRES(mutex_);
  Status collect_aborted(FetchResult& result) const WEIR_EXCLUDES(mutex_);
  Status find_last_stable(Offset high_watermark, const Segments& segments, Offset* last_stable)
      WEIR_REQUIRES(append_mutex_);

  Status sync_all(FlushMode mode) WEIR_REQUIRES(append_mutex_);
  Status close_files(FlushMode mode) WEIR_REQUIRES(append_mutex_);
  Status check_disk() const;
  // The sum of all tail caches knows of the change of this one.
  void count_tail() WEIR_REQUIRES(mutex_);
  void notify_waiters() WEIR_EXCLUDES(mutex_);
  void publish_watermark() WEIR_REQUIRES(mutex_);
  void mark_flushed(Offset end) WEIR_REQUIRES(mutex_);
  // What may be taken for flushed: of a transaction nothing before the write-ahead log has it.
  Offset flushed_end(Offset end) const WEIR_REQUIRES(mutex_);
  // Whether the high watermark moved.
  bool mark_durable(Offset end) WEIR_REQUIRES(mutex_);

  // --- Compaction; local_partition_clean.cc
  Status check_replaceable(const Segments& old) const WEIR_REQUIRES(names_mutex_);
  void take_place(const Segments& old, const CleanedSegment& cleaned) WEIR_REQUIRES(names_mutex_);
  // Nobody is sent to these any more.
  void forget(const Segments& segments) WEIR_REQUIRES(mutex_);

  // --- Reading; local_partition_read.cc
  Result<std::optional<Offset>> find_time(Timestamp time, std::uint64_t& seen);
  // After a look-up failed: whether its segments were replaced meanwhile, so that it may be tried
  // again.
  bool segments_changed(const Error& error, std::uint64_t seen) WEIR_EXCLUDES(mutex_);
  bool has_changed(std::uint64_t seen) const WEIR_EXCLUDES(mutex_);
  Error out_of_range(Offset from) const WEIR_REQUIRES(mutex_);
  struct Place {
    std::shared_ptr<Segment> segment;
    std::optional<std::uint64_t> position;  // known without a look-up
    Offset offset_end = kOffsetMax;         // base of the next segment
  };
  // The segment that holds `offset`, or the first behind it.
  std::optional<Place> place_of(Offset offset) const WEIR_REQUIRES(mutex_);
  std::optional<Place> place_behind(const Segment& segment) const WEIR_EXCLUDES(mutex_);
  // `seen`: counts removals and replacements of segments up to the look.
  Result<FetchResult> read_batches_from(Offset from, std::size_t bytes_max,
                                        FetchIsolation isolation, std::uint64_t& seen);
  Result<FetchResult> read_files(FetchResult result, Place place, Offset limit,
                                 std::size_t bytes_max);
  void remember(const std::shared_ptr<Segment>& segment, Offset next, std::uint64_t position);
  void touch(const std::shared_ptr<Segment>& segment);
  // `anew`: what is known of them does not count.
  Result<Segments> list_segments(Offset high_watermark, bool anew) WEIR_REQUIRES(append_mutex_);

  const Environment environment_;
  const OpenOptions options_;
  const RecoveryReport report_;

  Mutex checksum_mutex_;  // one writer of side-cars; behind append_mutex_, held during I/O
  Mutex names_mutex_;
  mutable Mutex append_mutex_;
  std::shared_ptr<Segment> active_ WEIR_GUARDED_BY(append_mutex_);
  bool folder_exists_ WEIR_GUARDED_BY(append_mutex_);
  bool metadata_exists_ WEIR_GUARDED_BY(append_mutex_);
  bool metadata_synced_ WEIR_GUARDED_BY(append_mutex_);
  bool epochs_dirty_ WEIR_GUARDED_BY(append_mutex_);
  // The files are not as a clean close leaves them.
  bool unclean_ WEIR_GUARDED_BY(append_mutex_);
  ProducerState producers_ WEIR_GUARDED_BY(append_mutex_);
  bool has_snapshots_ WEIR_GUARDED_BY(append_mutex_);
  Timestamp producers_expired_ WEIR_GUARDED_BY(append_mutex_) = 0;  // when that was looked for last

  mutable Mutex mutex_;
  PartitionSettings settings_ WEIR_GUARDED_BY(mutex_);
  Segments segments_ WEIR_GUARDED_BY(mutex_);
  std::uint64_t segment_changes_ WEIR_GUARDED_BY(mutex_) = 0;  // removals and replacements
  LeaderEpochCache epochs_ WEIR_GUARDED_BY(mutex_);
  LeaderEpoch leader_epoch_ WEIR_GUARDED_BY(mutex_);
  Offset log_start_ WEIR_GUARDED_BY(mutex_);
  Offset log_end_ WEIR_GUARDED_BY(mutex_);
  Offset high_watermark_ WEIR_GUARDED_BY(mutex_);
  Offset recovery_point_ WEIR_GUARDED_BY(mutex_);
  UnstableTransactions unstable_ WEIR_GUARDED_BY(mutex_);
  // A read-only log is told its last stable offset.
  Offset told_last_stable_ WEIR_GUARDED_BY(mutex_);
  Offset newest_abort_ WEIR_GUARDED_BY(mutex_);  // marker of the last aborted transaction
  std::optional<ProducersAt> captured_producers_ WEIR_GUARDED_BY(mutex_);
  std::optional<ProducersAt> flushed_producers_ WEIR_GUARDED_BY(mutex_);
  TailCache tail_ WEIR_GUARDED_BY(mutex_);
  std::size_t tail_counted_ WEIR_GUARDED_BY(mutex_) = 0;
  Offset end_when_released_ WEIR_GUARDED_BY(mutex_);
  // Counts changes of names and side files: all, those that the running flush covers, those that
  // were flushed.
  std::uint64_t side_changes_ WEIR_GUARDED_BY(mutex_);
  std::uint64_t side_prepared_ WEIR_GUARDED_BY(mutex_) = 0;
  std::uint64_t side_flushed_ WEIR_GUARDED_BY(mutex_) = 0;
  // Sealed segments whose index files no flush has covered; the first of them by the running one.
  Segments unsynced_indexes_ WEIR_GUARDED_BY(mutex_);
  std::size_t indexes_prepared_ WEIR_GUARDED_BY(mutex_) = 0;
  std::optional<Error> failure_ WEIR_GUARDED_BY(mutex_);
  bool durability_lost_ WEIR_GUARDED_BY(mutex_) = false;
  // Behind the last batch of a transaction or of an atomic group.
  Offset transactional_end_ WEIR_GUARDED_BY(mutex_);
  bool closed_ WEIR_GUARDED_BY(mutex_) = false;
  bool abandoned_ WEIR_GUARDED_BY(mutex_) = false;
  WatermarkSlot* watermark_ WEIR_GUARDED_BY(mutex_);
  // Where the last disk reads ended: a reader that goes on from there needs no look-up.
  struct Hint {
    Offset next;
    std::uint64_t position = 0;
    std::shared_ptr<Segment> segment;
  };
  std::array<Hint, 8> hints_ WEIR_GUARDED_BY(mutex_);
  std::size_t next_hint_ WEIR_GUARDED_BY(mutex_) = 0;
  // Sealed segments with an open file or loaded indexes, least recently used first.
  std::vector<std::shared_ptr<Segment>> recent_ WEIR_GUARDED_BY(mutex_);

  Mutex waiters_mutex_;
  std::vector<std::shared_ptr<Notifier>> waiters_ WEIR_GUARDED_BY(waiters_mutex_);
};

}  // namespace weir::log
