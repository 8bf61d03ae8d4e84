// Retention and compaction of a directory's partitions, and what it knows of them.
#include "log/broker/log_directory.h"
#include "log/partition/topic_settings.h"

#include <weir/runtime/logger.h>

#include <fmt/core.h>

#include <chrono>

namespace weir::log {

void LogDirectory::open_cleaner() {
  cleaner_ = std::make_unique<Cleaner>(
      files_, *options_.clock, layout_.tombstone_horizons, options_.cleaner, read_clean_ends(),
      read_horizons(),
      Cleaner::Host{
          [this] { return cleanup_targets(); },
          [this](const TopicPartition& name) { return partition_to_clean(name); },
          [this](Partition& partition) -> Result<Offset> {
            const Offset flushed = partition.recovery_point();
            WEIR_TRY(write_recovery_points());
            return flushed;
          },
          [this](Partition& partition, Offset before) {
            return give_up_records(partition, before);
          },
          [this] { return write_clean_ends(); },
          upkeep_mutex_,
      });
}

// Of topics that were there when the file was written: it knows them by name alone.
std::map<PartitionKey, Offset> LogDirectory::read_clean_ends() const {
  std::map<PartitionKey, Offset> ends;
  const Result<OffsetCheckpoint> read = read_offset_checkpoint(files_, layout_.clean_ends);
  if (!read.ok()) {
    // Without it the next pass begins at the log's start.
    WEIR_WARN("checkpoint file ignored error=\"{}\"", read.error().message());
    return ends;
  }
  const MutexLock lock(state_mutex_);
  for (const auto& [name, offset] : *read) {
    if (const TopicImage* topic = image_.find(name.topic)) {
      ends[{topic->id, name.partition}] = offset;
    }
  }
  return ends;
}

// When the file is damaged, all tombstones that are durable now may be gone.
TombstoneHorizons LogDirectory::read_horizons() {
  Result<TombstoneHorizons> read = read_tombstone_horizons(files_, layout_.tombstone_horizons);
  if (read.ok()) {
    const MutexLock lock(state_mutex_);
    std::erase_if(*read, [this](const auto& entry) WEIR_NO_THREAD_SAFETY_ANALYSIS {
      return image_.find(entry.first.first) == nullptr;
    });
    return *std::move(read);
  }
  WEIR_WARN("tombstone horizons are unknown, stores are restored from the log's start error=\"{}\"",
            read.error().message());
  TombstoneHorizons all;
  for (const CleanupTarget& target : cleanup_targets()) {
    if (const auto partition =
            target.settings.compacts ? partition_to_clean(target.name) : nullptr) {
      all[{target.topic_id, target.name.partition}] = partition->offsets().log_end;
    }
  }
  if (Status written = write_tombstone_horizons(files_, layout_.tombstone_horizons, all);
      !written.ok()) {
    WEIR_WARN("tombstone horizons not written error=\"{}\"", written.error().message());
  }
  return all;
}

std::vector<CleanupTarget> LogDirectory::cleanup_targets() const {
  std::vector<CleanupTarget> targets;
  const MutexLock lock(state_mutex_);
  for (const auto& [name, topic] : image_.topics()) {
    const CleanupSettings settings = settings_of(topic).cleanup;
    for (std::size_t i = 0; i < topic.leader_epochs.size(); ++i) {
      targets.push_back({{name, PartitionId(static_cast<std::int32_t>(i))}, topic.id, settings});
    }
  }
  return targets;
}

std::shared_ptr<Partition> LogDirectory::partition_to_clean(const TopicPartition& name) {
  if (!path_exists(files_, join_path(layout_.log, name.to_string()))) {
    return nullptr;
  }
  Result<std::shared_ptr<Partition>> opened = partition(name);
  return opened.ok() && (*opened)->health().ok() ? *std::move(opened) : nullptr;
}

Status LogDirectory::give_up_records(Partition& partition, Offset before) {
  WEIR_TRY(partition.advance_log_start(before));
  // The start first: segments must not be gone while an old start is what a crash would find.
  const auto keep_start = [&, this]() -> Status {
    WEIR_TRY(keep_producers(partition, before));
    return write_log_starts();
  };
  Status kept = keep_start();
  if (!kept.ok() && is_shortage(kept.error().code()) && reserve_.give_up()) {
    kept = keep_start();  // it makes room
  }
  WEIR_TRY(std::move(kept));
  return partition.remove_old_segments();
}

Status LogDirectory::write_clean_ends() {
  const MutexLock writing(checkpoint_mutex_);
  OffsetCheckpoint offsets;
  const std::map<PartitionKey, Offset> ends = cleaner_->clean_ends();
  {
    const MutexLock lock(state_mutex_);
    for (const auto& [name, topic] : image_.topics()) {
      for (auto end = ends.lower_bound({topic.id, PartitionId(0)});
           end != ends.end() && end->first.first == topic.id; ++end) {
        offsets[{name, end->first.second}] = end->second;
      }
    }
  }
  const auto written = written_checkpoints_.find(layout_.clean_ends);
  if (written != written_checkpoints_.end() && written->second == offsets) {
    return {};
  }
  WEIR_TRY(write_offset_checkpoint(files_, layout_.clean_ends, offsets));
  written_checkpoints_[layout_.clean_ends] = std::move(offsets);
  return {};
}

Duration LogDirectory::cleaner_step() {
  return cleaner_ ? cleaner_->step() : std::chrono::hours(1);
}

Status LogDirectory::clean_now() {
  WEIR_TRY(check_writable("clean the log"));
  WEIR_TRY(checkpoint());
  return cleaner_->clean_now();
}

Status LogDirectory::compact_topic(const std::string& name) {
  WEIR_TRY(check_writable(fmt::format("compact topic {}", name)));
  WEIR_TRY_ASSIGN(const TopicDescription topic, describe_topic(name));
  WEIR_TRY(checkpoint());
  for (std::int32_t i = 0; i < topic.partitions; ++i) {
    WEIR_TRY(cleaner_->compact_now({name, PartitionId(i)}));
  }
  return {};
}

CleanerProgress LogDirectory::cleaner_progress() const {
  return cleaner_ ? cleaner_->progress() : CleanerProgress();
}

std::optional<Offset> LogDirectory::tombstone_horizon(const Partition& partition) const {
  const PartitionKey key{partition.options().topic_id, partition.options().name.partition};
  const Offset log_start = partition.offsets().log_start;
  if (cleaner_) {
    return std::max(log_start, cleaner_->tombstone_horizon(key));
  }
  const Result<TombstoneHorizons> read =
      read_tombstone_horizons(files_, layout_.tombstone_horizons);
  if (!read.ok()) {
    return std::nullopt;
  }
  const auto known = read->find(key);
  return known == read->end() ? log_start : std::max(log_start, known->second);
}

}  // namespace weir::log
