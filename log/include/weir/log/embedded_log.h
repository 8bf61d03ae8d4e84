#pragma once

#include <weir/runtime/backend.h>
#include <weir/runtime/clock.h>
#include <weir/runtime/executor.h>
#include <weir/runtime/file_system.h>
#include <weir/runtime/result.h>
#include <weir/runtime/types.h>

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <vector>

namespace weir::log {

struct EmbeddedLogOptions {
  // Beside a running holder, or of a directory at rest: writes nothing and sees what is below the
  // high watermark.
  bool read_only = false;
  FileSystem* files = nullptr;   // null: the machine's disk
  const Clock* clock = nullptr;  // null: the machine's clock; stamps records and appends
  // Runs the checkpoints that flush files behind the write-ahead log; null: a private thread.
  // Outlives the log.
  Executor* executor = nullptr;
  // false: no periodic work at all, for simulations; a checkpoint is made when the write-ahead log
  // is full, by the thread that finds it so.
  bool background = true;
  std::uint64_t seed = 0;  // of topic ids; 0: the machine's entropy
  // Memory for the newest batches of each partition, so that readers at the tail touch no file.
  std::size_t tail_cache_bytes = 4U << 20U;
  std::int32_t offsets_partitions = 50;  // offsets.topic.num.partitions, at the first commit
  // transaction.state.log.num.partitions, at the first transaction
  std::int32_t transaction_partitions = 50;
  // transaction.max.timeout.ms: no producer may ask for a longer transaction.timeout.ms.
  std::int64_t transaction_max_timeout_ms = 900'000;
  // transactional.id.expiration.ms: a transactional id that is not used for so long is forgotten.
  std::int64_t transactional_id_expiration_ms = 7LL * 24 * 3600 * 1000;
  // transaction.abort.timed.out.transaction.cleanup.interval.ms: how often transactions that are
  // open for longer than their timeout are looked for. It is a part of `background`.
  std::int64_t transaction_abort_interval_ms = 10'000;
  // The write-ahead log's files, bytes: the smallest, the largest, all together. Multiples of 4096;
  // the smallest at least 16,384.
  std::size_t wal_file_bytes_min = 4U << 20U;
  std::size_t wal_file_bytes_max = 64U << 20U;
  std::size_t wal_bytes_max = 256U << 20U;
  // Segment files that are open at once; 0: half of what the system allows this process.
  std::size_t open_files_max = 0;
  // Taken from the disk at the start and given up when it is full, so that committed offsets,
  // deletions and checkpoints still find room; 0: none.
  std::uint64_t disk_reserve_bytes = 4U << 20U;
  // producer.id.expiration.ms: a partition forgets a producer whose last batch, by its timestamps,
  // is older and that has no open transaction.
  std::int64_t producer_id_expiration_ms = 86'400'000;
  // Everything durable is read again in the background, and compared with its checksums, at this
  // rate: weir.scrub.bytes.per.second; 0: never. It is a part of `background`.
  std::int64_t scrub_bytes_per_second = 2 << 20;
  // weir.scrub.interval.ms: from the start of one pass to that of the next, unless it takes longer.
  std::int64_t scrub_interval_ms = 7LL * 24 * 3600 * 1000;
  std::int64_t group_initial_rebalance_delay_ms = 0;      // group.initial.rebalance.delay.ms
  std::int64_t group_max_size = 10'000;                   // group.max.size
  std::int64_t group_min_session_timeout_ms = 6'000;      // group.min.session.timeout.ms
  std::int64_t group_max_session_timeout_ms = 1'800'000;  // group.max.session.timeout.ms
  // offsets.retention.minutes: how long offsets are kept that nobody uses.
  std::int64_t offsets_retention_minutes = 10'080;
  std::int64_t offsets_check_interval_ms = 600'000;  // offsets.retention.check.interval.ms

  // metadata.log.max.record.bytes.between.snapshots: the log of topics is summed up when it grew by
  // as much, and what lies before the last sum but one is given up.
  std::int64_t metadata_snapshot_bytes = 20 << 20;

  // Old records are given up and compacted in the background, by their topics' settings: a part of
  // `background`, too. Names and defaults are Kafka's.
  std::int64_t retention_check_interval_ms = 300'000;  // log.retention.check.interval.ms
  // log.initial.task.delay.ms: from a start to the first look of these and of the scrub.
  std::int64_t initial_task_delay_ms = 30'000;
  bool cleaner_enable = true;                // log.cleaner.enable
  std::int64_t cleaner_backoff_ms = 15'000;  // log.cleaner.backoff.ms
  // log.cleaner.io.max.bytes.per.second, read and written together.
  std::int64_t cleaner_io_bytes_per_second = INT64_MAX;
  // log.cleaner.dedupe.buffer.size: memory of a pass for the keys that it compacts.
  std::int64_t cleaner_dedupe_buffer_bytes = 128 << 20;

  // Sets what has a name above. Errors: kInvalidConfig with every mistake.
  Status set(const std::map<std::string, std::string>& settings);
};

// What a start found and did in one partition.
struct PartitionRecovery {
  TopicPartition name;
  std::uint64_t scanned_bytes = 0;
  std::uint64_t cut_bytes = 0;       // behind the last whole batch: what was not durable
  std::uint64_t replayed_bytes = 0;  // written again from the write-ahead log
  Offset cut_from = kNoOffset;       // first offset that is gone; kNoOffset when nothing was cut
  std::uint64_t segments_removed = 0;
  std::uint64_t indexes_rebuilt = 0;
  std::string reason;  // why the tail was cut; empty when it was not
  // Damage to bytes that were durable, one text each with file, position and offsets. They are
  // kept.
  std::vector<std::string> damaged;
  Status failure;  // why it is not served
};

// Durable bytes that are damaged. Reading there answers kCorrupt and says where it can go on;
// everything else of the partition is served and takes appends.
struct QuarantinedRange {
  TopicPartition name;
  std::string file;  // path; bytes [position, end_position) of it
  std::uint64_t position = 0;
  std::uint64_t end_position = 0;
  Offset first_offset;  // offsets [first_offset, next_offset)
  Offset next_offset;
  std::string what;
};

// What the scrub did since the start.
struct ScrubProgress {
  std::uint64_t bytes = 0;
  std::uint64_t passes = 0;          // over all partitions, to their end
  std::uint64_t damaged_ranges = 0;  // that were not known before
};

// What retention and compaction did since the start.
struct CleanerProgress {
  std::uint64_t passes = 0;  // of compaction, each over one partition
  std::uint64_t bytes_read = 0;
  std::uint64_t bytes_written = 0;
  std::uint64_t records_compacted = 0;  // replaced, or deleted by their key
  std::uint64_t records_expired = 0;    // offsets given up by retention
  std::uint64_t partitions_failed = 0;  // not compacted until the next start; the log says why
};

struct RecoveryResult {
  // The directory was closed cleanly: nothing was scanned.
  bool was_clean = false;
  // After an unclean end every partition with a folder, by name, the metadata log first.
  std::vector<PartitionRecovery> partitions;
};

// The log in this process: a directory of Kafka-format partitions behind the Backend port.
//
//   auto log = weir::log::EmbeddedLog::open("weir-data").value();
//
// Threading:  thread-safe.
// Ownership:  outlives every source, sink and group it made.
// Durability: topics with weir.durability=fsync (default) acknowledge what is on disk; see
//             docs/architecture.md. A crash at any moment loses nothing that was acknowledged.
class EmbeddedLog : public Backend {
 public:
  // Makes the directory if it is absent or empty. After a crash it recovers, and says on the log
  // what it cut. Errors: kLocked (names the holder), kInvalidArgument (a folder of another
  // program), kNotFound
  //         (read_only and nothing there), kCorrupt, kIo, kNoSpace.
  static Result<std::unique_ptr<EmbeddedLog>> open(const std::string& path,
                                                   EmbeddedLogOptions options = {});
  ~EmbeddedLog() override;

  Admin& admin() override;
  Result<std::unique_ptr<RecordSource>> make_source(const SourceOptions& options) override;
  Result<std::unique_ptr<RecordSink>> make_sink(const SinkOptions& options) override;
  // With the settings' defaults.
  Result<std::unique_ptr<Group>> make_group(const std::string& group_id) override;
  // Groups share their topics' partitions among the members of this process. Errors:
  // kInvalidArgument, kInvalidConfig.
  Result<std::unique_ptr<Group>> make_group_member(const std::string& group_id,
                                                   const GroupOptions& options) override;
  // Deletes committed offsets that are older than offsets.retention.minutes, with a line on the
  // diagnostics for each group; returns how many. The background does it, too.
  Result<std::size_t> expire_offsets();

  // What open() had to do. Threading: as the class; the answer does not change.
  const RecoveryResult& recovery() const;

  // What is known to be damaged now, by partition and offset: found by a scrub of this or an
  // earlier process, by a start or by a reader. Threading: as the class.
  std::vector<QuarantinedRange> quarantined_ranges() const;
  ScrubProgress scrub_progress() const;
  CleanerProgress cleaner_progress() const;
  // Compacts what is durable of a topic now, whether it is due or not; blocks. Errors:
  // kUnknownTopic, kInvalidConfig (its cleanup.policy is delete), kReadOnly, kClosed, kNoSpace,
  // kCorrupt, kIo.
  Status compact_topic(const std::string& name);

  // `state/` of the directory, where applications keep theirs.
  const std::string& state_directory() const;

  // Syncs everything and marks the directory clean, so that the next start scans nothing. Sources
  // and sinks answer kClosed afterwards. Idempotent. Without it the next start recovers as after a
  // crash.
  Status close();

 private:
  struct State;
  friend class Producer;
  explicit EmbeddedLog(std::unique_ptr<State> state);
  std::unique_ptr<State> state_;
};

}  // namespace weir::log
