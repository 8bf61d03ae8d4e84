#pragma once

#include "log/broker/cleaner.h"
#include "log/broker/scrubber.h"
#include "log/coordinator/group_offsets.h"
#include "log/coordinator/group_service.h"
#include "log/coordinator/transactions.h"
#include "log/durability/unserved_batches.h"
#include "log/durability/write_ahead_log.h"
#include "log/metadata/metadata_image.h"
#include "log/partition/checkpoint_file.h"
#include "log/partition/disk_reserve.h"
#include "log/partition/partition.h"
#include "log/partition/producers_file.h"
#include "log/partition/watermarks.h"

#include <weir/log/embedded_log.h>
#include <weir/runtime/backend.h>
#include <weir/runtime/file_system.h>
#include <weir/runtime/rng.h>
#include <weir/runtime/thread_annotations.h>

#include <atomic>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <vector>

namespace weir::log {

// Names inside a data directory (DESIGN D2): `log/` is a valid Kafka log.dirs, `wal/` and `state/`
// are ours.
struct DirectoryLayout {
  explicit DirectoryLayout(const std::string& path);
  std::string root, log, wal, state;
  std::string lock, meta_properties, clean_shutdown, watermarks, reserve;
  std::string recovery_points, high_watermarks, log_starts;
  std::string checksums, scrub_memory, producers, unserved;
  std::string clean_ends, tombstone_horizons;
  // Of a partition's side-cars.
  std::string checksum_folder(const Uuid& topic_id, PartitionId partition) const;
};

inline constexpr std::string_view kMetadataTopic = "__cluster_metadata";
inline constexpr std::string_view kDeletedFolderSuffix = "-delete";
inline constexpr std::int32_t kNodeId = 1;  // of this directory's one node
bool is_internal_topic(const std::string& topic);

struct RecoveredPartition;  // log/broker/recover_partitions.h

struct LogDirectoryOptions {
  FileSystem* files = nullptr;
  const Clock* clock = nullptr;
  std::uint64_t seed = 0;  // of ids, with how far the metadata log has come
  bool read_only = false;
  std::size_t tail_cache_bytes = 4U << 20U;         // of a partition
  std::size_t tail_caches_bytes_max = 256U << 20U;  // of all together
  // Segment files that are open at once; 0: half of what the system allows this process.
  std::size_t open_files_max = 0;
  std::uint64_t disk_reserve_bytes = 4U << 20U;  // see DiskReserve; 0: none
  std::int32_t offsets_partitions = 50;          // offsets.topic.num.partitions
  std::int32_t transaction_partitions = 50;      // transaction.state.log.num.partitions
  TransactionCoordinatorOptions transactions;
  ProducerState::Limits producers;  // of a partition
  GroupServiceOptions groups;
  WalOptions wal;
  ScrubOptions scrub;
  CleanerOptions cleaner;
  // How long a change of topics waits to be durable. Behind it the outcome is unknown, and the
  // change takes effect when it is durable after all.
  Duration metadata_timeout = std::chrono::seconds(30);
  // metadata.log.max.record.bytes.between.snapshots
  std::uint64_t metadata_snapshot_bytes = 20U << 20U;
  // Told, on any thread, when checkpoint() is due; null: it is run when there is no other way.
  std::function<void()> checkpoint_due;
};

// One data directory: its topics (from the metadata log), their partitions, committed offsets.
//
// Threading: thread-safe. Changes of topics are serialised and do I/O under their own lock;
// look-ups
//            never wait for them.
// Files:     one process holds the directory for writing (log/.lock names it); any number read it
//            beside the holder, up to the high watermarks that the holder publishes.
class LogDirectory : private OffsetsTopic, private TransactionTopics {
 public:
  // Makes the directory if it is absent or empty (not when read_only). After an unclean end every
  // partition is recovered and the result is logged, a line a partition that lost something.
  // Errors: kLocked (names the holder), kInvalidArgument (a folder of another program), kNotFound
  // (read only, nothing there), kCorrupt, kIo, kNoSpace.
  static Result<std::unique_ptr<LogDirectory>> open(const std::string& path,
                                                    const LogDirectoryOptions& options);
  // Without close() before: as after a crash, but files are closed.
  ~LogDirectory() override;

  Result<TopicDescription> create_topic(const TopicSpec& spec);
  std::vector<TopicDescription> list_topics();
  Result<TopicDescription> describe_topic(const std::string& name);
  Status delete_topic(const std::string& name);
  Status grow_topic(const std::string& name, std::int32_t partitions, OrderedGrowth ordered);
  Status alter_topic(const std::string& name, const TopicConfig& set,
                     const std::vector<std::string>& remove);
  Result<std::vector<TopicSetting>> topic_settings(const std::string& name) const;

  // Opens on demand. Errors: kUnknownTopic; what recovery said about this partition.
  Result<std::shared_ptr<Partition>> partition(const TopicPartition& name);
  // The same for a writer: after an unclean start the first call for a partition with records
  // raises its leader epoch, first in the metadata log, then in the partition.
  Result<std::shared_ptr<Partition>> partition_for_append(const TopicPartition& name);

  // As Admin::delete_records. Errors also: kIo, kNoSpace.
  Status delete_records(const TopicPartition& name, Offset before);

  // An id that no producer of this directory had before, whatever happened since. They are taken
  // from the metadata log in blocks of 1,000. Errors: kReadOnly, kClosed; kIo, kNoSpace, kTimedOut
  // when a block had to be taken.
  Result<ProducerId> next_producer_id() override;

  // What the start found; of partitions that were opened since, nothing more.
  RecoveryResult recovery() const;

  GroupOffsets& offsets() { return offsets_; }
  // Requires: not read only.
  Transactions& transactions() { return transactions_; }
  GroupService& groups() { return groups_; }
  const DirectoryLayout& layout() const { return layout_; }
  // Requires: not read only.
  WriteAheadLog::Metrics wal_metrics() const { return durability_->metrics(); }
  bool read_only() const { return options_.read_only; }
  const Clock& clock() const { return *options_.clock; }

  // Moves whenever a topic is made, grown, altered or deleted; the waiter is notified too.
  std::uint64_t topic_generation() const {
    return topic_generation_.load(std::memory_order_acquire);
  }
  void add_topic_waiter(std::shared_ptr<Notifier> waiter);
  void remove_topic_waiter(const std::shared_ptr<Notifier>& waiter);

  // Read-only processes: catches up with the holder's metadata and with one partition. No-ops
  // otherwise.
  Status refresh();
  Status refresh_partition(Partition& partition);

  // Flushes the files behind the write-ahead log and writes recovery points, high watermarks and
  // log starts, so that a start after a crash has less to do. Errors: kNoSpace (try again), kIo
  // (the directory takes no more appends).
  Status checkpoint();
  // Reads a little of what is durable again and compares it with its checksums; the driver calls it
  // again after the time that it returns.
  Duration scrub_step();
  ScrubProgress scrub_progress() const;
  std::vector<QuarantinedRange> quarantined_ranges() const;
  // Gives up old records and compacts, a little; the driver calls it again after the time that it
  // returns.
  Duration cleaner_step();
  // All that is due, of what is durable now; for tools and tests. Errors: of the first partition
  // that failed; kReadOnly, kClosed.
  Status clean_now();
  // Compacts what is durable of a topic, whether it is due or not. Errors also: kUnknownTopic,
  // kInvalidConfig (it is not compacted).
  Status compact_topic(const std::string& name);
  CleanerProgress cleaner_progress() const;
  // Below it tombstones may be gone; nullopt: unknown.
  std::optional<Offset> tombstone_horizon(const Partition& partition) const;
  // Syncs, writes checkpoints and the clean-shutdown marker, releases the lock. Idempotent.
  Status close();

 private:
  struct Opened {
    std::shared_ptr<Partition> partition;  // null when opening failed
    Status failure;
    WatermarkSlot* slot = nullptr;
    bool raise_epoch = false;
  };

  LogDirectory(const std::string& path, const LogDirectoryOptions& options);
  void abandon_all();
  Status close_all() WEIR_REQUIRES(change_mutex_);
  Status start();
  Status check_root();
  Status read_meta_properties();
  Status read_checkpoints();
  WalOptions wal_options() const;
  Status open_wal();
  void add_wal_tail(Partition::OpenOptions& options);
  Status open_metadata();
  Status load_metadata_snapshot() WEIR_EXCLUDES(change_mutex_);
  Status replay_metadata();
  Offset next_metadata_offset();
  void snapshot_metadata_if_due() WEIR_REQUIRES(change_mutex_);
  Status snapshot_metadata() WEIR_REQUIRES(change_mutex_);
  Status give_up_old_metadata(const std::string& folder);
  Status write_first_metadata();
  Status append_metadata(std::vector<MetadataRecord> records) WEIR_REQUIRES(change_mutex_);
  // Not ok while an earlier change is undecided.
  Status begin_change(std::string_view action) WEIR_REQUIRES(change_mutex_);
  Status settle_metadata() WEIR_REQUIRES(change_mutex_);
  // The folders of a removed topic get names of their own, so that none is taken for that of a
  // topic that is made again. Returns these names.
  Result<std::vector<std::string>> set_folders_aside(const TopicDescription& removed)
      WEIR_REQUIRES(change_mutex_);
  void abandon_partitions(const TopicDescription& topic);
  void remove_garbage(const TopicDescription& removed, const std::vector<std::string>& folders);
  Status apply_metadata(const std::vector<MetadataRecord>& records);
  Status sweep_folders();
  Result<bool> sweep_folder(const std::string& folder);
  Status recover_all();
  Status keep_unserved(const std::vector<RecoveredPartition>& recovered)
      WEIR_EXCLUDES(checkpoint_mutex_);
  void open_scrubber();
  void sweep_checksums();
  std::vector<TopicPartition> all_partitions() const;
  std::shared_ptr<Partition> partition_to_scrub(const TopicPartition& name);
  DamageByPartition damage_by_partition() const;
  void open_cleaner();
  std::map<PartitionKey, Offset> read_clean_ends() const;
  TombstoneHorizons read_horizons();
  std::vector<CleanupTarget> cleanup_targets() const;
  std::shared_ptr<Partition> partition_to_clean(const TopicPartition& name);
  Status give_up_records(Partition& partition, Offset before);
  Status write_clean_ends() WEIR_EXCLUDES(checkpoint_mutex_);
  void report_recovery(const Partition& partition) const;

  // Before segments below `before` go: what is known of producers must not need their batches.
  Status keep_producers(Partition& partition, Offset before);
  Status write_producers() WEIR_EXCLUDES(checkpoint_mutex_);
  Status write_recovery_points() WEIR_EXCLUDES(checkpoint_mutex_);
  Status write_checkpoints() WEIR_EXCLUDES(checkpoint_mutex_);
  Status write_log_starts() WEIR_EXCLUDES(checkpoint_mutex_);
  Status write_log_starts_locked() WEIR_REQUIRES(checkpoint_mutex_);
  // `select` gives what is written of a partition; `known` what the last start read. A file that
  // says so already is left alone.
  Status write_offsets(const std::string& path, const OffsetCheckpoint& known,
                       Offset (*select)(const Partition&)) WEIR_REQUIRES(checkpoint_mutex_);
  Partition::Environment environment() const;
  // Raises the leader epoch of every partition that was recovered with records and has not had an
  // append since: one record each, one batch.
  Status raise_epochs();
  bool must_wait_for_epoch(const TopicPartition& name);
  Partition::OpenOptions open_options(const TopicPartition& name, const TopicImage& topic) const;
  PartitionSettings settings_of(const TopicImage& topic) const;
  Result<std::shared_ptr<Partition>> open_partition(const TopicPartition& name);
  Status check_may_open(const TopicImage& topic) const WEIR_REQUIRES(state_mutex_);
  Result<TopicImage> image_of(const std::string& name) const;
  Result<TopicImage> image_of(const TopicPartition& name) const;
  // Errors: kClosed, kUnknownTopic.
  Result<TopicImage> image_to_change(const std::string& name, std::string_view action)
      WEIR_REQUIRES(change_mutex_);
  std::vector<std::shared_ptr<Partition>> opened_partitions(const TopicImage& topic) const;
  Status check_policy_deletes(const std::string& name) const;
  Status remove_partition_folder(const std::string& folder, const Uuid& topic_id);
  void topics_changed();
  Status check_writable(std::string_view action) const;
  Status check_name_is_free(const std::string& name) const;
  Uuid new_topic_id() WEIR_REQUIRES(change_mutex_);
  bool must_raise_epoch(const Partition& partition) const;
  bool was_deleted(const std::string& name) const;

  // OffsetsTopic
  std::int32_t partition_count() override;
  Status ensure_exists() override;
  Result<std::shared_ptr<Partition>> open(PartitionId index) override;
  Uuid topic_id(const std::string& topic) override;
  // TransactionTopics
  std::int32_t state_partitions() override;
  Status ensure_state_topic() override;
  Result<std::shared_ptr<Partition>> open_to_append(const TopicPartition& name) override;

  std::int32_t partitions_of(std::string_view name) const;
  // Makes one of the log's own topics if it does not exist.
  Status ensure_topic(std::string_view name, std::int32_t partitions, TopicConfig config);

  const DirectoryLayout layout_;
  const LogDirectoryOptions options_;
  FileSystem& files_;
  std::unique_ptr<FileLock> lock_;
  WalContents wal_contents_;  // of an unclean end, until its partitions are recovered
  bool has_wal_contents_ = false;
  std::shared_ptr<SegmentResources> resources_;
  mutable DiskReserve reserve_;
  std::unique_ptr<WriteAheadLog> durability_;
  std::unique_ptr<Watermarks> watermarks_;
  ScrubMemory scrub_memory_;            // what the last process knew
  std::unique_ptr<Scrubber> scrubber_;  // null: read only
  Mutex upkeep_mutex_;  // a step of the scrub, or of a compaction; before the partitions' own
  std::unique_ptr<Cleaner> cleaner_;  // null: read only
  Uuid directory_id_;
  bool clean_ = false;
  bool first_start_ = false;
  // As the files said at the start. They know topics by name alone: they hold for the topics that
  // were there then, not for one that was made since under a name of them.
  OffsetCheckpoint recovery_points_, high_watermarks_, log_starts_;
  bool recovery_points_known_ = false;
  std::set<Uuid> topics_at_start_;
  ProducersOfPartitions known_producers_;  // as the last process left them
  GroupOffsets offsets_;
  Transactions transactions_;
  GroupService groups_;

  Mutex checkpoint_mutex_;  // serialises the writing of checkpoint files; held across their I/O
  UnservedBatches unserved_ WEIR_GUARDED_BY(checkpoint_mutex_);
  // What each of these files says, once it was written by this process.
  std::map<std::string, OffsetCheckpoint> written_checkpoints_ WEIR_GUARDED_BY(checkpoint_mutex_);
  ProducersOfPartitions written_producers_ WEIR_GUARDED_BY(checkpoint_mutex_);
  Mutex producer_ids_mutex_;  // taken before change_mutex_; held while a block is taken
  ProducerId next_producer_id_ WEIR_GUARDED_BY(producer_ids_mutex_);
  ProducerId producer_ids_end_ WEIR_GUARDED_BY(producer_ids_mutex_);
  Mutex maintenance_mutex_;  // a checkpoint or the close; taken before all others
  Mutex change_mutex_;  // serialises changes of topics; held across their I/O; taken before the
                        // others
  std::shared_ptr<Partition> metadata_;
  Offset metadata_next_ WEIR_GUARDED_BY(change_mutex_);
  struct MetadataTail {  // what stands behind the newest snapshot
    std::uint64_t bytes = 0;
    Timestamp last_timestamp = 0;
    void add(std::size_t record_bytes, Timestamp timestamp) {
      bytes += record_bytes;
      last_timestamp = timestamp;
    }
  };
  MetadataTail metadata_since_snapshot_ WEIR_GUARDED_BY(change_mutex_);
  // A removed topic's folder may have kept its name: only the metadata log knows whose it is.
  bool folders_remain_ WEIR_GUARDED_BY(change_mutex_) = false;
  Rng rng_ WEIR_GUARDED_BY(change_mutex_);
  bool closed_ WEIR_GUARDED_BY(change_mutex_) = false;
  Status close_status_ WEIR_GUARDED_BY(change_mutex_);
  // A change whose time ran out before it was durable.
  struct Undecided {
    std::vector<MetadataRecord> records;
    Offset end;
  };
  std::optional<Undecided> undecided_ WEIR_GUARDED_BY(change_mutex_);

  // Serialises opening of partitions and changes of settings; held across their I/O.
  Mutex open_mutex_;
  mutable Mutex state_mutex_;  // never held across I/O
  MetadataImage image_ WEIR_GUARDED_BY(state_mutex_);
  std::map<TopicPartition, Opened> opened_ WEIR_GUARDED_BY(state_mutex_);
  bool closing_ WEIR_GUARDED_BY(state_mutex_) = false;  // no partition is opened any more
  // Removed, but for an answer: nothing may be acknowledged that goes with it.
  std::optional<TopicDescription> maybe_removed_ WEIR_GUARDED_BY(state_mutex_);
  std::set<std::shared_ptr<Notifier>> topic_waiters_ WEIR_GUARDED_BY(state_mutex_);
  std::atomic<std::uint64_t> topic_generation_{1};
};

}  // namespace weir::log
