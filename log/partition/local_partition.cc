#include "log/partition/local_partition.h"

#include "log/partition/disk_reserve.h"
#include "log/partition/partition_metadata.h"
#include "log/partition/watermarks.h"
#include "log/record/compression.h"
#include "log/segment/segment_names.h"

#include <weir/runtime/logger.h>

#include <fmt/format.h>

#include <algorithm>
#include <functional>
#include <utility>

namespace weir::log {
namespace {

// now + delta without overflow: settings may say "any".
Timestamp shifted(Timestamp now, std::int64_t delta) {
  Timestamp sum = 0;
  if (__builtin_add_overflow(now, delta, &sum)) {
    return delta < 0 ? INT64_MIN : INT64_MAX;
  }
  return sum;
}

}  // namespace

Result<std::shared_ptr<Partition>> Partition::open(const Environment& environment,
                                                   OpenOptions options) {
  WEIR_ASSERT(options.read_only || environment.durability != nullptr);
  WEIR_TRY_ASSIGN(LoadedLog log, load_partition(environment, options));
  options.wal_tail.reset();
  auto partition =
      std::make_shared<LocalPartition>(environment, std::move(options), std::move(log));
  if (partition->recovery_point() < partition->offsets().log_end &&
      environment.durability != nullptr) {
    environment.durability->note_unflushed(partition);
  }
  return std::shared_ptr<Partition>(std::move(partition));
}

LocalPartition::LocalPartition(const Environment& environment, OpenOptions options, LoadedLog log)
    : environment_(environment),
      options_(std::move(options)),
      report_(std::move(log.report)),
      active_(log.segments.empty() ? nullptr : log.segments.back()),
      folder_exists_(log.folder_exists),
      metadata_exists_(log.metadata_exists),
      metadata_synced_(options_.clean),
      epochs_dirty_(log.epochs_changed),
      unclean_(!options_.clean || log.epochs_changed || report_.truncated_bytes > 0 ||
               report_.indexes_rebuilt > 0),
      producers_(std::move(log.producers.state)),
      has_snapshots_(log.producers.has_snapshots),
      settings_(options_.settings),
      segments_(std::move(log.segments)),
      epochs_(std::move(log.epochs)),
      leader_epoch_(std::max(options_.leader_epoch, epochs_.latest())),
      log_start_(log.log_start),
      log_end_(log.log_end),
      // What is here was synced by the recovery or by the last close; a read-only log is told.
      high_watermark_(options_.read_only ? log.log_start : log.log_end),
      recovery_point_(options_.read_only ? high_watermark_ : log.recovery_point),
      told_last_stable_(high_watermark_),
      newest_abort_(log.producers.newest_abort),
      flushed_producers_(options_.producers),
      tail_(environment.tail_cache_bytes),
      // Names and side files that an earlier life made and perhaps did not flush.
      side_changes_(options_.clean ? 0 : 1),
      watermark_(options_.watermark) {
  // A new leader's epoch starts at the log's end, with or without data (KAFKA-7415).
  if (!options_.read_only && leader_epoch_ > epochs_.latest()) {
    epochs_dirty_ |= epochs_.assign(leader_epoch_, log_end_);
  }
  const MutexLock lock(mutex_);
  if (flushed_producers_ && flushed_producers_->offset > log_end_) {
    flushed_producers_.reset();  // of a log that has lost what it was about
  }
  if (!producers_.empty()) {
    captured_producers_ = std::move(log.producers.at_last_segment);
  }
  for (const auto& [first, producer] : producers_.open_transactions()) {
    unstable_.begin(first);
  }
  for (const std::shared_ptr<Segment>& segment : segments_) {
    if (segment != active_ &&
        (segment->next_offset() >= recovery_point_ || segment->indexes_rebuilt() > 0)) {
      unsynced_indexes_.push_back(segment);
    }
  }
  publish_watermark();
}

// --- Appending

Result<Partition::Appended> LocalPartition::append(SharedBytes batch, AppendOptions options) {
  Pending pending;
  WEIR_TRY(admit());
  Result<Appended> appended = [&]() -> Result<Appended> {
    const MutexLock lock(append_mutex_);
    return append_or_use_reserve(batch, options, pending);
  }();
  if (!appended.ok()) {
    if (appended.error().code() == Errc::kIo) {
      notify_waiters();
    }
    return appended;
  }
  if (pending.moved) {
    notify_waiters();
  }
  if (pending.added) {
    environment_.durability->start();
  }
  return appended;
}

Status LocalPartition::admit() const {
  WEIR_TRY(check_open());
  WEIR_TRY(environment_.durability->admit());
  return check_disk();
}

Result<Partition::Appended> LocalPartition::append_or_use_reserve(SharedBytes& batch,
                                                                  const AppendOptions& options,
                                                                  Pending& pending) {
  Result<Appended> first = append_locked(batch, options, pending);
  const bool may_use_reserve = !first.ok() && first.error().code() == Errc::kNoSpace &&
                               options_.internal && environment_.reserve != nullptr;
  if (!may_use_reserve || !environment_.reserve->give_up()) {
    return first;
  }
  stamp_offset(batch.data(), Offset(0), kNoLeaderEpoch);  // as it came
  return append_locked(batch, options, pending);
}

// While the reserve is given up, room that appears is not for users' appends.
Status LocalPartition::check_disk() const {
  if (options_.internal || environment_.reserve == nullptr || environment_.reserve->stands()) {
    return Status();
  }
  return Error(Errc::kNoSpace,
               fmt::format("disk full: append to {} refused while the log's reserve is used up; "
                           "free space and try again",
                           options_.name.to_string()));
}

void LocalPartition::count_tail() {
  SegmentResources* const resources = environment_.resources.get();
  if (resources == nullptr) {
    return;
  }
  if (!resources->count_tail(tail_counted_, tail_.size_bytes())) {
    const std::size_t before = tail_.size_bytes();
    tail_.clear();
    resources->count_tail(before, 0);
  }
  tail_counted_ = tail_.size_bytes();
}

Result<Partition::Appended> LocalPartition::append_locked(SharedBytes& batch,
                                                          const AppendOptions& options,
                                                          Pending& pending) {
  WEIR_TRY(check_open());
  PartitionSettings settings;
  Offset base;
  LeaderEpoch epoch;
  {
    const MutexLock lock(mutex_);
    settings = settings_;
    base = log_end_;
    epoch = leader_epoch_;
  }
  Appended result;
  WEIR_TRY_ASSIGN(result.log_append_time, prepare_batch(batch, options.origin, settings));
  const bool with_producer = has_producer(batch);
  if (with_producer) [[unlikely]] {
    WEIR_TRY_ASSIGN(const std::optional<Appended> answer, check_producer(batch, options));
    if (answer) {
      return *answer;
    }
  }
  if (Status prepared = prepare_folder(); !prepared.ok()) {
    return is_shortage(prepared.error().code()) ? std::move(prepared).error()
                                                : poison(prepared.error());
  }
  unclean_ = true;
  stamp_offset(batch.data(), base, epoch);
  WEIR_TRY_ASSIGN(const BatchHeader header, read_batch_header(batch.view()));
  if (active_ == nullptr ||
      active_->must_roll(header, segment_rules(settings), environment_.clock.now())) {
    WEIR_TRY(roll(settings));
  }
  Status written = active_->append(batch.view(), header, segment_settings(settings));
  if (!written.ok()) {
    Error error = std::move(written).error().with_context(
        fmt::format("append to {}", options_.name.to_string()));
    return is_shortage(error.code()) ? std::move(error) : poison(error);
  }
  if (with_producer) [[unlikely]] {
    note_producer(header, batch.view());
  }
  if (settings.durability == DurabilityMode::kFsync) {
    pending.added = true;
    publish(batch, header, settings, pending);
    if (pending.group != nullptr || header.is_transactional()) {
      const MutexLock lock(mutex_);
      transactional_end_ = header.next_offset();
    }
    if (pending.group != nullptr) {
      pending.group->push_back({shared_from_this(), std::move(batch), header.next_offset()});
    } else {
      environment_.durability->add(shared_from_this(), std::move(batch), header.next_offset());
    }
  } else {
    publish(std::move(batch), header, settings, pending);
  }
  result.base_offset = base;
  result.next_offset = header.next_offset();
  result.leader_epoch = epoch;
  return result;
}

// A part of segment.ms that differs from partition to partition, so that they do not all roll at
// once.
SegmentSettings LocalPartition::segment_rules(const PartitionSettings& settings) const {
  SegmentSettings rules = segment_settings(settings);
  const std::int64_t most = std::min(settings.segment_jitter_ms, rules.segment_ms);
  if (most > 0) {
    rules.segment_ms -= static_cast<std::int64_t>(std::hash<TopicPartition>{}(options_.name) %
                                                  static_cast<std::uint64_t>(most));
  }
  return rules;
}

Status LocalPartition::check_open() const {
  if (options_.read_only) {
    return Error(Errc::kReadOnly,
                 fmt::format("{} was opened for reading", options_.name.to_string()));
  }
  return health();
}

Result<Timestamp> LocalPartition::prepare_batch(SharedBytes& batch, AppendOrigin origin,
                                                const PartitionSettings& settings) const {
  WEIR_TRY(check_size(batch, settings));
  WEIR_TRY_ASSIGN(BatchHeader header, check_header(batch, origin));
  const auto named = [this](Error error) {
    return std::move(error).with_context(options_.name.to_string());
  };
  const AppendRules rules = append_rules(origin, settings);
  const bool converts = settings.must_convert(header);
  // Unpacked once, for validation and for the new codec.
  if (converts && header.codec_bits() != 0) {
    Result<SharedBytes> plain =
        convert_batch(header, batch.view(), {}, rules.limits.decompressed_bytes_max);
    if (!plain.ok()) {
      return named(std::move(plain).error());
    }
    batch = *std::move(plain);
    WEIR_TRY_ASSIGN(header, read_batch_header(batch.view(), SIZE_MAX));
  }
  AppendFix fix;
  if (Status valid = validate_for_append(header, batch.view(), rules, &fix); !valid.ok()) {
    return named(std::move(valid).error());
  }
  if (converts) {
    if (settings.compression->codec != Codec::kNone) {
      WEIR_TRY_ASSIGN(batch, convert_batch(header, batch.view(), *settings.compression,
                                           rules.limits.decompressed_bytes_max));
    }
    WEIR_TRY(check_size(batch, settings));
  }
  Timestamp append_time = kNoTimestamp;
  if (settings.timestamp_type == TimestampType::kLogAppendTime) {
    append_time = environment_.clock.now();
    stamp_append_time(batch.data(), batch.size(), append_time);
  } else if (fix.needed) {
    stamp_create_time(batch.data(), batch.size(), fix.max_timestamp);
  } else if (converts) {
    stamp_crc(batch.data(), batch.size());
  }
  return append_time;
}

Status LocalPartition::check_size(const SharedBytes& batch,
                                  const PartitionSettings& settings) const {
  const std::int64_t largest = settings.batch_bytes_max();
  if (batch.size() > static_cast<std::size_t>(largest)) {
    return Error(Errc::kRecordTooLarge,
                 fmt::format("batch of {} bytes for {} is over {} (max.message.bytes {}, "
                             "segment.bytes {})",
                             batch.size(), options_.name.to_string(), largest,
                             settings.max_message_bytes, settings.segment_bytes));
  }
  return Status();
}

Result<BatchHeader> LocalPartition::check_header(const SharedBytes& batch,
                                                 AppendOrigin origin) const {
  if (!batch.is_unique()) {
    return Error(Errc::kInvalidArgument,
                 "the batch is shared: it is stamped in place, hand over the only reference");
  }
  if (batch.size() < kBatchHeaderBytes) {
    return Error(Errc::kCorrupt, fmt::format("batch of {} bytes for {} is shorter than a header",
                                             batch.size(), options_.name.to_string()));
  }
  Result<BatchHeader> header = origin == AppendOrigin::kClient ? verify_batch(batch.view())
                                                               : read_batch_header(batch.view());
  if (!header.ok()) {
    return std::move(header).error().with_context(options_.name.to_string());
  }
  if (header->size_bytes() != batch.size()) {
    return Error(Errc::kCorrupt,
                 fmt::format("batch for {} has {} bytes by its header, {} are here",
                             options_.name.to_string(), header->size_bytes(), batch.size()));
  }
  return header;
}

AppendRules LocalPartition::append_rules(AppendOrigin origin,
                                         const PartitionSettings& settings) const {
  AppendRules rules;
  rules.trust_records = origin != AppendOrigin::kClient;
  rules.allow_control = origin == AppendOrigin::kCoordinator;
  rules.require_keys = settings.cleanup.compacts && origin == AppendOrigin::kClient;
  rules.timestamp_type = settings.timestamp_type;
  if (settings.timestamp_type == TimestampType::kCreateTime &&
      origin != AppendOrigin::kCoordinator) {
    const Timestamp now = environment_.clock.now();
    rules.timestamp_min = shifted(now, -settings.timestamp_before_max_ms);
    rules.timestamp_max = shifted(now, settings.timestamp_after_max_ms);
  }
  return rules;
}

void LocalPartition::publish(SharedBytes batch, const BatchHeader& header,
                             const PartitionSettings& settings, Pending& pending) {
  const bool memory = settings.durability == DurabilityMode::kMemory;
  const MutexLock lock(mutex_);
  log_end_ = header.next_offset();
  tail_.push(std::move(batch), header);
  count_tail();
  if (memory) {
    high_watermark_ = log_end_;
    unstable_.advance(high_watermark_);
    publish_watermark();
    pending.moved = true;
  }
}

// The folder and all that must be durable before the first batch in it.
Status LocalPartition::prepare_folder() {
  if (!folder_exists_) {
    WEIR_TRY(make_folder());
    folder_exists_ = true;
  }
  WEIR_TRY(write_metadata(!writes_ahead()));
  if (!epochs_dirty_) {
    return Status();
  }
  if (!writes_ahead()) {
    return write_epochs(true);
  }
  note_side_change();  // every flush of side files writes it
  epochs_dirty_ = false;
  return Status();
}

Status LocalPartition::write_metadata(bool durable) {
  if (options_.topic_id.is_zero() || (metadata_exists_ && (metadata_synced_ || !durable))) {
    return Status();
  }
  const std::string path = join_path(options_.path, kPartitionMetadataName);
  const std::string text = encode_partition_metadata(options_.topic_id);
  WEIR_TRY(durable ? replace_file(environment_.files, path, text)
                   : replace_file_unsynced(environment_.files, path, text));
  metadata_exists_ = true;
  metadata_synced_ = durable;
  note_side_change();
  return Status();
}

void LocalPartition::note_side_change() {
  if (writes_ahead()) {
    const MutexLock lock(mutex_);
    ++side_changes_;
  }
}

Status LocalPartition::make_folder() {
  // The folders that are made now: the name of each is durable when its parent is synced.
  std::vector<std::string> parents;
  std::string folder = options_.path;
  while (!path_exists(environment_.files, folder)) {
    const std::string parent = parent_path(folder);
    parents.push_back(parent);
    if (parent.empty() || parent == folder) {
      break;
    }
    folder = parent;
  }
  WEIR_TRY(environment_.files.create_directories(options_.path));
  if (writes_ahead()) {
    note_side_change();
    return Status();
  }
  while (!parents.empty()) {
    WEIR_TRY(environment_.files.sync_directory(parents.back()));
    parents.pop_back();
  }
  return Status();
}

Status LocalPartition::write_epochs(bool durable) {
  std::string text;
  {
    const MutexLock lock(mutex_);
    text = epochs_.encode();
  }
  const std::string path = join_path(options_.path, LeaderEpochCache::kFileName);
  WEIR_TRY(durable ? replace_file(environment_.files, path, text)
                   : replace_file_unsynced(environment_.files, path, text));
  epochs_dirty_ = false;
  note_side_change();
  return Status();
}

// The active segment takes no more batches: the next one begins at `base`.
Status LocalPartition::end_active(const PartitionSettings& settings, Offset base) {
  if (Status trimmed = active_->trim(); !trimmed.ok()) {
    return is_shortage(trimmed.error().code()) ? std::move(trimmed)
                                               : Status(poison(trimmed.error()));
  }
  // Before the next segment exists, so that a hole between two segments of an fsync log is never
  // the work of a power cut. A write-ahead log fills such a hole.
  if (settings.durability == DurabilityMode::kFsync && !writes_ahead()) {
    if (Status synced = active_->sync(); !synced.ok()) {
      on_durability_lost(synced.error());
      return health();
    }
  }
  write_snapshot(base, !writes_ahead());
  capture_producers(base);
  return Status();
}

Status LocalPartition::roll(const PartitionSettings& settings) {
  Offset base;
  {
    const MutexLock lock(mutex_);
    base = log_end_;
  }
  if (active_ != nullptr) {
    WEIR_TRY(end_active(settings, base));
  }
  auto next = std::make_shared<Segment>(environment_.files, options_.path, base, true,
                                        environment_.resources);
  next->keep_checksums(options_.checksum_folder);
  Status made = next->create(segment_settings(settings), environment_.clock.now());
  if (made.ok() && !writes_ahead()) {
    made = environment_.files.sync_directory(options_.path);
  }
  if (!made.ok()) {
    return is_shortage(made.error().code()) ? std::move(made) : Status(poison(made.error()));
  }
  if (active_ != nullptr) {
    if (Status indexed = active_->write_indexes(false); !indexed.ok()) {
      WEIR_WARN("index not written file={} error=\"{}\"", active_->path(kLogSuffix),
                indexed.error().message());
    }
    active_->write_aborted(false).ignore("the next flush writes it");
    active_->seal(base);
    touch(active_);
    environment_.durability->note_unflushed(shared_from_this());
  }
  note_side_change();
  const MutexLock lock(mutex_);
  if (active_ != nullptr) {
    unsynced_indexes_.push_back(active_);
  }
  active_ = next;
  segments_.push_back(std::move(next));
  return Status();
}

Error LocalPartition::poison(const Error& error) {
  const MutexLock lock(mutex_);
  if (!failure_) {
    failure_.emplace(Errc::kIo, fmt::format("{} takes no more appends, restart to recover: {}",
                                            options_.name.to_string(), error.message()));
    WEIR_ERROR("partition failed partition={} log_end={} high_watermark={} error=\"{}\"",
               options_.name.to_string(), log_end_.value(), high_watermark_.value(),
               error.message());
  }
  return *failure_;
}

// --- Waiters

void LocalPartition::add_waiter(std::shared_ptr<Notifier> waiter) {
  const MutexLock lock(waiters_mutex_);
  waiters_.push_back(std::move(waiter));
}

void LocalPartition::remove_waiter(const std::shared_ptr<Notifier>& waiter) {
  const MutexLock lock(waiters_mutex_);
  const auto found = std::find(waiters_.begin(), waiters_.end(), waiter);
  if (found != waiters_.end()) {
    waiters_.erase(found);
  }
}

void LocalPartition::notify_waiters() {
  const MutexLock lock(waiters_mutex_);
  for (const std::shared_ptr<Notifier>& waiter : waiters_) {
    waiter->notify();
  }
}

// --- State

Status LocalPartition::health() const {
  const MutexLock lock(mutex_);
  if (failure_) {
    return *failure_;
  }
  if (closed_) {
    return Error(Errc::kClosed, fmt::format("{} is closed", options_.name.to_string()));
  }
  return Status();
}

Status LocalPartition::set_leader_epoch(LeaderEpoch epoch) {
  const MutexLock appending(append_mutex_);
  WEIR_TRY(check_open());
  {
    const MutexLock lock(mutex_);
    if (epoch < leader_epoch_ || epoch < LeaderEpoch(0)) {
      return Error(Errc::kInvalidArgument,
                   fmt::format("leader epoch {} of {} is below the present {}", epoch.value(),
                               options_.name.to_string(), leader_epoch_.value()));
    }
    leader_epoch_ = epoch;
    epochs_dirty_ |= epochs_.assign(epoch, log_end_);
  }
  // A folder that does not exist yet gets the file with its first batch.
  if (!epochs_dirty_ || !folder_exists_) {
    return Status();
  }
  if (writes_ahead()) {  // with the next flush; until then the metadata log and the batches have it
    unclean_ = true;
    note_side_change();
    environment_.durability->note_unflushed(shared_from_this());
    return Status();
  }
  Status written = write_epochs(!writes_ahead());
  return written.ok() || written.error().code() == Errc::kNoSpace ? std::move(written)
                                                                  : Status(poison(written.error()));
}

PartitionSettings LocalPartition::settings() const {
  const MutexLock lock(mutex_);
  return settings_;
}

Status LocalPartition::set_settings(const PartitionSettings& settings) {
  Status set;
  {
    const MutexLock appending(append_mutex_);
    if (settings.durability != this->settings().durability) {
      set = check_open();
      if (set.ok()) {
        set = sync_all(FlushMode::kByFile);
      }
    }
    if (set.ok()) {
      const MutexLock lock(mutex_);
      settings_ = settings;
    }
  }
  notify_waiters();
  return set;
}

void LocalPartition::abandon() {
  {
    const MutexLock names(names_mutex_);
    const MutexLock appending(append_mutex_);
    const MutexLock lock(mutex_);
    closed_ = true;
    abandoned_ = true;
    durability_lost_ = true;  // a sync that is on its way proves nothing any more
    watermark_ = nullptr;
    tail_.clear();
    count_tail();
  }
  notify_waiters();
}

std::vector<std::shared_ptr<Segment>> LocalPartition::segments() const {
  const MutexLock lock(mutex_);
  return segments_;
}

}  // namespace weir::log
