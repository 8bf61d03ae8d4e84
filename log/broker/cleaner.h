#pragma once

#include "log/broker/cleaner_memory.h"
#include "log/compaction/compaction_pass.h"
#include "log/partition/cleanup_settings.h"

#include <weir/log/embedded_log.h>
#include <weir/runtime/clock.h>
#include <weir/runtime/file_system.h>
#include <weir/runtime/thread_annotations.h>

#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace weir::log {

struct CleanerOptions {
  bool compacts = true;                                // log.cleaner.enable
  std::int64_t retention_check_interval_ms = 300'000;  // log.retention.check.interval.ms
  std::int64_t backoff_ms = 15'000;                    // log.cleaner.backoff.ms
  // log.cleaner.io.max.bytes.per.second: read and written together.
  std::int64_t io_bytes_per_second = INT64_MAX;
  std::size_t dedupe_buffer_bytes = 128U << 20U;  // log.cleaner.dedupe.buffer.size
};

// A partition as its topic's settings see it.
struct CleanupTarget {
  TopicPartition name;
  Uuid topic_id;
  CleanupSettings settings;
};

// Gives up old records of all partitions of a directory (retention) and compacts them, the dirtiest
// first, at a bounded rate (Kafka's LogManager.cleanupLogs, LogCleaner). The driver calls step()
// and waits as long as it says: no thread and no timer of its own.
//
// Threading: thread-safe; one step at a time.
// Failures:  a partition that cannot be compacted, because it is damaged or the disk fails, is told
//            once and left alone until the next start; when the disk is full, or its segments went
//            meanwhile, it is tried again. Nothing of it is changed by a pass that fails.
// Restart:   `cleaner-offset-checkpoint` and `wal/tombstone-horizons` say what was done.
class Cleaner {
 public:
  // The directory around it.
  struct Host {
    std::function<std::vector<CleanupTarget>()> targets;  // by name
    // Null: it has no folder yet, is gone, or cannot be opened.
    std::function<std::shared_ptr<Partition>(const TopicPartition&)> open;
    // Moves the recovery point of a partition to what is flushed, and puts it on record: what a
    // start after a crash takes from its files and from nowhere else.
    std::function<Result<Offset>(Partition&)> record_flushed;
    // The log begins at `before`, durably; segments below it are removed.
    std::function<Status(Partition&, Offset before)> give_up;
    // What clean_ends() says now is written to the checkpoint file.
    std::function<Status()> write_checkpoint;
    // Held during a step of a pass: the scrub's steps keep out.
    Mutex& maintenance;
  };
  // `clean_ends`, `horizons`: what the last process knew.
  Cleaner(FileSystem& files, const Clock& clock, std::string horizons_path, CleanerOptions options,
          std::map<PartitionKey, Offset> clean_ends, TombstoneHorizons horizons, Host host);

  // Does a little. Returns how long to wait before the next step.
  Duration step() WEIR_EXCLUDES(step_mutex_, mutex_);
  // Retention of all partitions, and passes over those that are due, to their end. Returns the
  // first failure; goes on behind it.
  Status clean_now() WEIR_EXCLUDES(step_mutex_, mutex_);
  // One pass over this partition, whether it is due or not. Errors: kUnknownTopic; kInvalidConfig
  // when its topic is not compacted; as CompactionPass::step().
  Status compact_now(const TopicPartition& name) WEIR_EXCLUDES(step_mutex_, mutex_);
  // The topic was deleted: no step touches it any more when this returns.
  void forget(const Uuid& topic_id) WEIR_EXCLUDES(step_mutex_, mutex_);
  // Waits for a step that is under way; no step does anything afterwards.
  void stop() WEIR_EXCLUDES(step_mutex_, mutex_);

  // Up to where each partition was compacted.
  std::map<PartitionKey, Offset> clean_ends() const WEIR_EXCLUDES(mutex_);
  // Below it tombstones of the partition may be gone; 0: none is.
  Offset tombstone_horizon(const PartitionKey& key) const WEIR_EXCLUDES(mutex_);
  CleanerProgress progress() const WEIR_EXCLUDES(mutex_);

 private:
  struct Candidate {
    CleanupTarget target;
    std::shared_ptr<Partition> partition;
    CleanableRange range;
  };
  struct Running {
    CleanupTarget target;
    std::unique_ptr<CompactionPass> pass;
  };

  struct Failure {
    Error error;          // told already
    Timestamp tried = 0;  // when it was met last
  };

  // --- Retention
  bool retention_is_due() const WEIR_REQUIRES(step_mutex_);
  void begin_retention() WEIR_REQUIRES(step_mutex_);
  Status retain(const CleanupTarget& target) WEIR_REQUIRES(step_mutex_);
  // --- Compaction
  Result<std::optional<Candidate>> examine(const CleanupTarget& target) WEIR_REQUIRES(step_mutex_);
  std::optional<Candidate> dirtiest(Status* first) WEIR_REQUIRES(step_mutex_);
  Status begin_pass(Candidate candidate) WEIR_REQUIRES(step_mutex_);
  Result<std::uint64_t> step_alone(std::uint64_t budget) WEIR_REQUIRES(step_mutex_);
  // Whether it goes on.
  Result<bool> pass_step(std::uint64_t budget, std::uint64_t* bytes) WEIR_REQUIRES(step_mutex_);
  Status finish_pass() WEIR_REQUIRES(step_mutex_);
  // To its end; who waits for a turn has it between two steps.
  Status run_pass() WEIR_REQUIRES(step_mutex_);
  // Whether a partition is left alone for now.
  bool rests(const PartitionKey& key) const WEIR_REQUIRES(step_mutex_);
  void note_failure(const CleanupTarget& target, const Error& error) WEIR_REQUIRES(step_mutex_);
  Status raise_horizon(const PartitionKey& key, Offset horizon) WEIR_EXCLUDES(mutex_);
  std::optional<Offset> clean_end(const PartitionKey& key) const WEIR_EXCLUDES(mutex_);
  Duration time_for(std::uint64_t bytes) const;
  Duration until_work() const WEIR_REQUIRES(step_mutex_);

  FileSystem& files_;
  const Clock& clock_;
  const std::string horizons_path_;
  const CleanerOptions options_;
  const Host host_;

  Mutex step_mutex_;  // held during a step's I/O; before the host's and mutex_
  CondVar turn_;
  std::atomic<int> wait_for_turn_{0};  // forget(), stop()
  bool stopped_ WEIR_GUARDED_BY(step_mutex_) = false;
  Timestamp retained_ WEIR_GUARDED_BY(step_mutex_) = kNoTimestamp;  // the last round began
  Timestamp looked_ WEIR_GUARDED_BY(step_mutex_) = kNoTimestamp;    // nothing was due
  std::vector<CleanupTarget> todo_ WEIR_GUARDED_BY(step_mutex_);    // of the round, the last first
  std::optional<Running> running_ WEIR_GUARDED_BY(step_mutex_);
  std::uint64_t passes_begun_ WEIR_GUARDED_BY(step_mutex_) = 0;
  std::map<PartitionKey, Failure> failed_ WEIR_GUARDED_BY(step_mutex_);

  mutable Mutex mutex_;
  std::map<PartitionKey, Offset> clean_ends_ WEIR_GUARDED_BY(mutex_);
  TombstoneHorizons horizons_ WEIR_GUARDED_BY(mutex_);
  CleanerProgress progress_ WEIR_GUARDED_BY(mutex_);
};

}  // namespace weir::log
