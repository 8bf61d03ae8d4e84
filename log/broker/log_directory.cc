#include "log/broker/log_directory.h"

#include "log/broker/kafka_files.h"
#include "log/segment/segment_resources.h"

#include <fmt/core.h>

#include <algorithm>
#include <chrono>
#include <sys/resource.h>

namespace weir::log {

namespace {

// Half: the other half is for stores, sockets and whatever else the process does.
std::size_t open_files_of_process() {
  rlimit limit{};
  const bool known = ::getrlimit(RLIMIT_NOFILE, &limit) == 0 && limit.rlim_cur != RLIM_INFINITY;
  return std::clamp<std::size_t>(known ? limit.rlim_cur / 2 : 1024, 64, 1U << 16U);
}

SegmentResources::Limits limits_of(const LogDirectoryOptions& options, FileSystem& files,
                                   const DirectoryLayout& layout) {
  constexpr std::uint64_t kUnusedShare = 100;  // at most a hundredth of the disk
  SegmentResources::Limits limits;
  limits.open_files_max =
      options.open_files_max != 0 ? options.open_files_max : open_files_of_process();
  limits.tail_bytes_max = options.tail_caches_bytes_max;
  if (const Result<DiskSpace> space = files.disk_space(layout.root); space.ok()) {
    limits.unused_bytes_max = space->capacity_bytes / kUnusedShare;
  }
  return limits;
}

}  // namespace

DirectoryLayout::DirectoryLayout(const std::string& path)
    : root(path),
      log(join_path(path, "log")),
      wal(join_path(path, "wal")),
      state(join_path(path, "state")),
      lock(join_path(log, ".lock")),
      meta_properties(join_path(log, "meta.properties")),
      clean_shutdown(join_path(log, ".kafka_cleanshutdown")),
      watermarks(join_path(wal, "watermarks")),
      reserve(join_path(wal, "reserve")),
      recovery_points(join_path(log, "recovery-point-offset-checkpoint")),
      high_watermarks(join_path(log, "replication-offset-checkpoint")),
      log_starts(join_path(log, "log-start-offset-checkpoint")),
      checksums(join_path(wal, "checksums")),
      scrub_memory(join_path(wal, "scrub-checkpoint")),
      producers(join_path(wal, "producers")),
      unserved(join_path(wal, "unserved")),
      clean_ends(join_path(log, "cleaner-offset-checkpoint")),
      tombstone_horizons(join_path(wal, "tombstone-horizons")) {}

std::string DirectoryLayout::checksum_folder(const Uuid& topic_id, PartitionId partition) const {
  return join_path(checksums, fmt::format("{}-{}", topic_id.to_string(), partition.value()));
}

bool is_internal_topic(const std::string& topic) {
  return topic == kMetadataTopic || topic == kOffsetsTopic || topic == kTransactionTopic;
}

LogDirectory::LogDirectory(const std::string& path, const LogDirectoryOptions& options)
    : layout_(path),
      options_(options),
      files_(*options.files),
      resources_(std::make_shared<SegmentResources>(limits_of(options, *options.files, layout_))),
      reserve_(*options.files, layout_.reserve, options.read_only ? 0 : options.disk_reserve_bytes),
      offsets_(*this, *options.clock),
      transactions_(*this, offsets_, *options.clock, options.transactions),
      groups_(*this, offsets_, *options.clock, options.groups),
      unserved_(*options.files, layout_.unserved),
      rng_(options.seed) {}

Partition::Environment LogDirectory::environment() const {
  Partition::Environment result{files_, *options_.clock, durability_.get(),
                                options_.tail_cache_bytes};
  result.resources = resources_;
  result.reserve = &reserve_;
  result.producers = options_.producers;
  return result;
}

LogDirectory::~LogDirectory() {
  if (scrubber_) {
    scrubber_->stop();
  }
  if (cleaner_) {
    cleaner_->stop();
  }
  abandon_all();
  durability_.reset();  // it may ask for a checkpoint up to now
}

void LogDirectory::abandon_all() {
  const MutexLock change(change_mutex_);
  if (closed_) {
    return;
  }
  const MutexLock state(state_mutex_);
  for (auto& [name, opened] : opened_) {
    if (opened.partition) {
      opened.partition->abandon();
    }
  }
  if (metadata_) {
    metadata_->abandon();
  }
}

Result<std::unique_ptr<LogDirectory>> LogDirectory::open(const std::string& path,
                                                         const LogDirectoryOptions& options) {
  WEIR_ASSERT(options.files != nullptr && options.clock != nullptr);
  std::unique_ptr<LogDirectory> directory(new LogDirectory(path, options));
  if (Status started = directory->start(); !started.ok()) {
    return std::move(started).error();
  }
  return directory;
}

Partition::OpenOptions LogDirectory::open_options(const TopicPartition& name,
                                                  const TopicImage& topic) const {
  Partition::OpenOptions options;
  options.name = name;
  options.topic_id = topic.id;
  options.path = join_path(layout_.log, name.to_string());
  const bool is_old =
      options_.read_only || topic.name == kMetadataTopic || topics_at_start_.contains(topic.id);
  const auto value = [&name, is_old](const OffsetCheckpoint& offsets) {
    const auto found = offsets.find(name);
    return !is_old || found == offsets.end() ? Offset(0) : found->second;
  };
  options.log_start = value(log_starts_);
  options.recovery_point = value(recovery_points_);
  options.recovery_point_known = recovery_points_known_;
  options.clean = clean_;
  options.read_only = options_.read_only;
  options.internal = is_internal_topic(name.topic);
  const auto index = static_cast<std::size_t>(name.partition.value());
  options.leader_epoch =
      index < topic.leader_epochs.size() ? topic.leader_epochs[index] : LeaderEpoch(0);
  options.settings = settings_of(topic);
  if (!options_.read_only) {
    options.checksum_folder = layout_.checksum_folder(topic.id, name.partition);
  }
  if (const auto known = known_producers_.find({topic.id, name.partition});
      known != known_producers_.end()) {
    options.producers = known->second;
  }
  if (const auto known = scrub_memory_.damage.find({topic.id, name.partition});
      known != scrub_memory_.damage.end()) {
    options.damage = known->second;
  }
  return options;
}

Result<TopicImage> LogDirectory::image_of(const TopicPartition& name) const {
  WEIR_TRY_ASSIGN(TopicImage topic, image_of(name.topic));
  const auto count = static_cast<std::int64_t>(topic.leader_epochs.size());
  if (name.partition.value() < 0 || name.partition.value() >= count) {
    return Error(Errc::kUnknownTopic, fmt::format("topic {} has partitions 0 to {}, not {}",
                                                  name.topic, count - 1, name.partition.value()));
  }
  return topic;
}

Result<std::shared_ptr<Partition>> LogDirectory::partition(const TopicPartition& name) {
  if (name.topic == kMetadataTopic) {
    return metadata_;
  }
  {
    const MutexLock lock(state_mutex_);
    const auto found = opened_.find(name);
    if (found != opened_.end()) {
      if (!found->second.partition) {
        return found->second.failure.error();
      }
      return found->second.partition;
    }
  }
  return open_partition(name);
}

Status LogDirectory::check_may_open(const TopicImage& topic) const {
  if (closing_) {
    return Error(Errc::kClosed, fmt::format("cannot open a partition of {}: {} is closed",
                                            topic.name, layout_.root));
  }
  if (maybe_removed_ && maybe_removed_->id == topic.id) {
    return Error(
        Errc::kTimedOut,
        fmt::format("topic {} is being deleted, and the disk has not answered yet", topic.name));
  }
  return {};
}

Result<std::shared_ptr<Partition>> LogDirectory::open_partition(const TopicPartition& name) {
  const MutexLock opening(open_mutex_);
  // Under the lock: no change of its settings is under way.
  WEIR_TRY_ASSIGN(const TopicImage topic, image_of(name));
  {
    const MutexLock lock(state_mutex_);
    if (const auto found = opened_.find(name); found != opened_.end() && found->second.partition) {
      return found->second.partition;
    }
    WEIR_TRY(check_may_open(topic));
  }
  Opened opened;
  Partition::OpenOptions options = open_options(name, topic);
  if (!options_.read_only) {
    opened.slot = watermarks_->claim(topic.id, name.partition);
    options.watermark = opened.slot;
  }
  Result<std::shared_ptr<Partition>> partition = Partition::open(environment(), std::move(options));
  if (!partition.ok()) {
    watermarks_->release(opened.slot);
    return std::move(partition).error().with_context(
        fmt::format("open partition {}", name.to_string()));
  }
  Watermarks::activate(opened.slot);
  report_recovery(**partition);
  if (options_.read_only) {
    WEIR_TRY(refresh_partition(**partition));
  }
  opened.partition = *partition;
  // A power cut may have taken its folder.
  opened.raise_epoch =
      !clean_ && topics_at_start_.contains(topic.id) && must_raise_epoch(**partition);
  Status may_open;
  {
    const MutexLock lock(state_mutex_);
    // Deleted while it was opened: the caller must not write into a folder that goes away.
    const TopicImage* now = image_.find(name.topic);
    may_open =
        now == nullptr || now->id != topic.id
            ? Status(Error(Errc::kUnknownTopic, fmt::format("topic {} was deleted", name.topic)))
            : check_may_open(topic);
    if (may_open.ok()) {
      opened_[name] = std::move(opened);
      return partition;
    }
  }
  opened.partition->abandon();
  if (watermarks_) {
    watermarks_->release(opened.slot);
  }
  return std::move(may_open).error();
}

Result<std::shared_ptr<Partition>> LogDirectory::partition_for_append(const TopicPartition& name) {
  WEIR_TRY(check_writable(fmt::format("write to {}", name.to_string())));
  WEIR_TRY_ASSIGN(std::shared_ptr<Partition> result, partition(name));
  while (must_wait_for_epoch(name)) {
    WEIR_TRY(raise_epochs());
  }
  return result;
}

bool LogDirectory::must_wait_for_epoch(const TopicPartition& name) {
  const MutexLock lock(state_mutex_);
  const auto found = opened_.find(name);
  return found != opened_.end() && found->second.raise_epoch;
}

Status LogDirectory::raise_epochs() {
  constexpr std::size_t kBatchMax = 50'000;
  const MutexLock change(change_mutex_);
  WEIR_TRY(begin_change("raise leader epochs"));
  std::vector<MetadataRecord> records;
  std::vector<std::pair<std::shared_ptr<Partition>, LeaderEpoch>> raised;
  {
    const MutexLock lock(state_mutex_);
    for (const auto& [name, opened] : opened_) {
      if (records.size() == kBatchMax) {
        break;
      }
      const TopicImage* topic = opened.raise_epoch ? image_.find(name.topic) : nullptr;
      if (topic == nullptr) {
        continue;
      }
      records.emplace_back(PartitionChangeMetadataRecord{
          name.partition, opened.partition->options().topic_id, kNodeId});
      raised.emplace_back(
          opened.partition,
          topic->leader_epochs[static_cast<std::size_t>(name.partition.value())].next());
    }
  }
  if (records.empty()) {
    return {};
  }
  WEIR_TRY(append_metadata(records));
  Status first;
  for (const auto& [partition, epoch] : raised) {
    Status set = partition->set_leader_epoch(epoch);
    if (set.ok()) {
      const MutexLock lock(state_mutex_);
      if (const auto found = opened_.find(partition->options().name); found != opened_.end()) {
        found->second.raise_epoch = false;
      }
    } else if (first.ok()) {
      first = std::move(set);
    }
  }
  return first;
}

Status LogDirectory::check_writable(std::string_view action) const {
  if (options_.read_only) {
    return Error(Errc::kReadOnly,
                 fmt::format("cannot {}: {} was opened for reading", action, layout_.root));
  }
  return {};
}

Status LogDirectory::refresh() {
  if (!options_.read_only) {
    return {};
  }
  if (!watermarks_) {
    Result<std::unique_ptr<Watermarks>> published = Watermarks::open(files_, layout_.watermarks);
    if (published.ok()) {
      watermarks_ = std::move(published).value();
    }
  }
  const Offset before = metadata_->offsets().high_watermark;
  WEIR_TRY(refresh_partition(*metadata_));
  if (metadata_->offsets().high_watermark == before) {
    return {};
  }
  WEIR_TRY(replay_metadata());
  {
    const MutexLock lock(state_mutex_);
    std::erase_if(opened_, [this](const auto& entry) WEIR_NO_THREAD_SAFETY_ANALYSIS {
      const TopicImage* topic = image_.find(entry.first.topic);
      return topic == nullptr ||
             (entry.second.partition && entry.second.partition->options().topic_id != topic->id);
    });
  }
  topics_changed();
  return {};
}

Status LogDirectory::refresh_partition(Partition& partition) {
  if (!options_.read_only) {
    return {};
  }
  const Partition::OpenOptions& options = partition.options();
  if (watermarks_) {
    if (const auto published = watermarks_->find(options.topic_id, options.name.partition)) {
      return partition.refresh(published->log_start, published->high_watermark,
                               published->last_stable);
    }
  }
  // Not opened by the holder since its start: what its last close or checkpoint said, else, without
  // a holder, all that is whole.
  const PartitionOffsets at = partition.offsets();
  const auto checkpointed = high_watermarks_.find(options.name);
  const Offset high =
      clean_ && checkpointed != high_watermarks_.end() ? checkpointed->second : at.log_end;
  return partition.refresh(at.log_start, std::max(high, at.high_watermark));
}

Status LogDirectory::write_offsets(const std::string& path, const OffsetCheckpoint& known,
                                   Offset (*select)(const Partition&)) {
  OffsetCheckpoint offsets = known;
  {
    const MutexLock lock(state_mutex_);
    std::erase_if(offsets, [this](const auto& entry) WEIR_NO_THREAD_SAFETY_ANALYSIS {
      const TopicImage* topic = image_.find(entry.first.topic);
      return entry.first.topic != kMetadataTopic &&
             (topic == nullptr || !topics_at_start_.contains(topic->id));
    });
    for (const auto& [name, opened] : opened_) {
      if (opened.partition) {
        offsets[name] = select(*opened.partition);
      }
    }
  }
  if (metadata_) {
    offsets[metadata_->options().name] = select(*metadata_);
  }
  const auto written = written_checkpoints_.find(path);
  if (written != written_checkpoints_.end() && written->second == offsets) {
    return {};
  }
  WEIR_TRY(write_offset_checkpoint(files_, path, offsets));
  written_checkpoints_[path] = std::move(offsets);
  return {};
}

Status LogDirectory::write_recovery_points() {
  const MutexLock writing(checkpoint_mutex_);
  return write_offsets(layout_.recovery_points, recovery_points_,
                       [](const Partition& partition) { return partition.recovery_point(); });
}

Status LogDirectory::write_checkpoints() {
  WEIR_TRY(write_recovery_points());
  const MutexLock writing(checkpoint_mutex_);
  WEIR_TRY(write_offsets(layout_.high_watermarks, high_watermarks_, [](const Partition& partition) {
    return partition.offsets().high_watermark;
  }));
  WEIR_TRY(write_log_starts_locked());
  return unserved_.forget_served();
}

Status LogDirectory::write_log_starts() {
  const MutexLock writing(checkpoint_mutex_);
  return write_log_starts_locked();
}

Status LogDirectory::write_log_starts_locked() {
  return write_offsets(layout_.log_starts, log_starts_,
                       [](const Partition& partition) { return partition.offsets().log_start; });
}

// An older one holds as well, as long as the log has every batch behind it.
Status LogDirectory::write_producers() {
  const MutexLock writing(checkpoint_mutex_);
  ProducersOfPartitions all = known_producers_;
  std::vector<std::shared_ptr<Partition>> partitions;
  {
    const MutexLock lock(state_mutex_);
    std::erase_if(all, [this](const auto& entry) WEIR_NO_THREAD_SAFETY_ANALYSIS {
      return image_.find(entry.first.first) == nullptr;
    });
    for (const auto& [name, opened] : opened_) {
      if (opened.partition) {
        partitions.push_back(opened.partition);
      }
    }
  }
  for (const std::shared_ptr<Partition>& partition : partitions) {
    const Partition::OpenOptions& options = partition->options();
    if (std::optional<ProducersAt> producers = partition->flushed_producers()) {
      all[{options.topic_id, options.name.partition}] = *std::move(producers);
    } else {
      all.erase({options.topic_id, options.name.partition});
    }
  }
  if (all == written_producers_) {
    return {};
  }
  WEIR_TRY(replace_file(files_, layout_.producers, encode_producers_file(all)));
  written_producers_ = std::move(all);
  return {};
}

Result<ProducerId> LogDirectory::next_producer_id() {
  constexpr std::int64_t kBlock = 1000;
  WEIR_TRY(check_writable("give a producer id"));
  const MutexLock ids(producer_ids_mutex_);
  if (next_producer_id_ == producer_ids_end_) {
    const MutexLock change(change_mutex_);
    if (closed_) {
      return Error(Errc::kClosed, fmt::format("{} is closed", layout_.root));
    }
    ProducerIdsMetadataRecord block;
    block.broker_id = kNodeId;
    ProducerId begin;
    {
      const MutexLock lock(state_mutex_);
      block.broker_epoch = image_.broker_epoch(kNodeId);
      begin = image_.next_producer_id();
    }
    block.next_producer_id = begin.plus(kBlock);
    WEIR_TRY(append_metadata({block}));
    next_producer_id_ = begin;
    producer_ids_end_ = block.next_producer_id;
  }
  return std::exchange(next_producer_id_, next_producer_id_.next());
}

Status LogDirectory::checkpoint() {
  if (options_.read_only) {
    return {};
  }
  const MutexLock maintenance(maintenance_mutex_);
  {
    const MutexLock lock(state_mutex_);
    if (closing_) {
      return {};
    }
  }
  WEIR_TRY(durability_->checkpoint());
  std::vector<std::shared_ptr<Partition>> partitions;
  {
    const MutexLock lock(state_mutex_);
    for (const auto& [name, opened] : opened_) {
      if (opened.partition) {
        partitions.push_back(opened.partition);
      }
    }
  }
  for (const std::shared_ptr<Partition>& partition : partitions) {
    partition->release_idle();
  }
  WEIR_TRY(write_checkpoints());
  WEIR_TRY(write_producers());
  const MutexLock change(change_mutex_);
  settle_metadata().ignore("the next change says what is wrong");
  return {};
}

Status LogDirectory::close() {
  if (scrubber_) {
    scrubber_->stop();
  }
  if (cleaner_) {
    cleaner_->stop();
  }
  const MutexLock maintenance(maintenance_mutex_);
  const MutexLock change(change_mutex_);
  if (!closed_) {
    closed_ = true;
    close_status_ = close_all();
  }
  return close_status_;
}

Status LogDirectory::close_all() {
  std::vector<std::shared_ptr<Partition>> partitions;
  bool failed = false;
  std::int64_t broker_epoch = -1;
  {
    const MutexLock lock(state_mutex_);
    closing_ = true;
    broker_epoch = image_.broker_epoch(kNodeId);
    for (const auto& [name, opened] : opened_) {
      if (opened.partition) {
        partitions.push_back(opened.partition);
      } else {
        failed = true;
      }
    }
  }
  partitions.push_back(metadata_);
  // Few are synced file by file, many by one sync of the disk.
  constexpr std::size_t kByFileMax = 16;
  const FlushMode mode = partitions.size() > kByFileMax ? FlushMode::kByDisk : FlushMode::kByFile;
  if (!options_.read_only) {
    durability_->drain();
  }
  Status first;
  for (const auto& partition : partitions) {
    Status closed = partition->close(mode);
    if (!closed.ok() && first.ok()) {
      first = std::move(closed);
    }
  }
  if (options_.read_only) {
    return first;
  }
  WEIR_TRY(first);
  if (mode == FlushMode::kByDisk) {
    WEIR_TRY(files_.sync_disk(layout_.log));
    for (const auto& partition : partitions) {
      partition->on_flushed(partition->offsets().log_end);
    }
  }
  WEIR_TRY(write_checkpoints());
  WEIR_TRY(write_producers());
  WEIR_TRY(write_kafka_files(files_, layout_.log, kNodeId, options_.clock->now()));
  if (!failed) {  // an unreadable partition must be scanned when it is readable again
    WEIR_TRY(replace_file(files_, layout_.clean_shutdown, clean_shutdown_marker(broker_epoch)));
  }
  lock_.reset();
  return {};
}

}  // namespace weir::log
