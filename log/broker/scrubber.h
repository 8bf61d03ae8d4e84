#pragma once

#include "log/broker/partition_key.h"
#include "log/partition/partition_scrub.h"

#include <weir/log/embedded_log.h>
#include <weir/runtime/clock.h>
#include <weir/runtime/file_system.h>
#include <weir/runtime/thread_annotations.h>

#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace weir::log {

struct ScrubOptions {
  std::int64_t bytes_per_second = 2 << 20;  // 0: none
  std::int64_t interval_ms = 7LL * 24 * 3600 * 1000;
};

using DamageByPartition = std::map<PartitionKey, std::vector<SegmentDamage>>;

// What a scrub knows from one start to the next (docs/formats/checksums.md).
struct ScrubMemory {
  // When the last pass began; kNoTimestamp: never.
  Timestamp pass_began = kNoTimestamp;
  // The partition that the pass goes on with; none between two passes.
  std::optional<TopicPartition> cursor;
  DamageByPartition damage;
};
// An absent file is an empty memory. Errors: kCorrupt, kIo.
Result<ScrubMemory> read_scrub_memory(FileSystem& files, const std::string& path);
std::string encode_scrub_memory(const ScrubMemory& memory);

// Goes through all partitions of a directory, one after the other by name, at a bounded rate, one
// pass in each interval. The driver calls step() and waits as long as it says: no thread and no
// timer of its own.
//
// Threading: thread-safe; one step at a time.
// Restart:   goes on with the partition where it was. Damage is durable when it was told.
class Scrubber {
 public:
  // The directory around it.
  struct Host {
    std::function<std::vector<TopicPartition>()> partitions;  // with a folder, by name
    // Null: there is nothing to read.
    std::function<std::shared_ptr<Partition>(const TopicPartition&)> open;
    // What all partitions know of damage.
    std::function<DamageByPartition()> damage;
  };
  Scrubber(FileSystem& files, const Clock& clock, std::string memory_path, ScrubOptions options,
           ScrubMemory memory, Host host);

  // Reads a little. Returns how long to wait before the next step.
  Duration step() WEIR_EXCLUDES(step_mutex_, mutex_);
  // Waits for a step that is under way; no step does anything afterwards.
  void stop() WEIR_EXCLUDES(step_mutex_, mutex_);
  ScrubProgress progress() const WEIR_EXCLUDES(mutex_);

 private:
  Duration until_next_pass() WEIR_REQUIRES(step_mutex_);
  bool next_partition() WEIR_REQUIRES(step_mutex_);
  void count(const PartitionScrub::Progress& progress) WEIR_REQUIRES(step_mutex_);
  void remember() WEIR_REQUIRES(step_mutex_);
  Duration time_for(std::uint64_t bytes) const;

  FileSystem& files_;
  const Clock& clock_;
  const std::string memory_path_;
  const ScrubOptions options_;
  const Host host_;

  Mutex step_mutex_;  // held during a step's I/O; before mutex_
  bool stopped_ WEIR_GUARDED_BY(step_mutex_) = false;
  Timestamp pass_began_ WEIR_GUARDED_BY(step_mutex_);
  std::optional<TopicPartition> cursor_ WEIR_GUARDED_BY(step_mutex_);
  // Of this pass, from the cursor on, the last one first.
  std::vector<TopicPartition> todo_ WEIR_GUARDED_BY(step_mutex_);
  std::unique_ptr<PartitionScrub> scrub_ WEIR_GUARDED_BY(step_mutex_);
  Timestamp remembered_ WEIR_GUARDED_BY(step_mutex_) = kNoTimestamp;
  mutable Mutex mutex_;
  ScrubProgress progress_ WEIR_GUARDED_BY(mutex_);
};

}  // namespace weir::log
