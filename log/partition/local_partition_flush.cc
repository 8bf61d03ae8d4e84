#include "log/partition/disk_reserve.h"
#include "log/partition/local_partition.h"
#include "log/partition/watermarks.h"
#include "log/segment/segment_names.h"

#include <weir/runtime/logger.h>

#include <fmt/format.h>

#include <algorithm>
#include <utility>

// The half of LocalPartition that makes files durable: flushes, checkpoints, the close.

namespace weir::log {

LocalPartition::Segments LocalPartition::unflushed_segments(bool with_active, Offset* end) const {
  Segments unflushed;
  *end = recovery_point_;
  for (auto segment = segments_.rbegin(); segment != segments_.rend(); ++segment) {
    const Offset next = std::min((*segment)->next_offset(), log_end_);
    if (next <= recovery_point_) {
      break;
    }
    if (with_active || segment != segments_.rbegin()) {
      unflushed.push_back(*segment);
      *end = std::max(*end, next);
    }
  }
  return unflushed;
}

std::size_t LocalPartition::unflushed_count() const {
  const MutexLock lock(mutex_);
  Offset end;
  return unflushed_segments(settings_.durability == DurabilityMode::kFsync, &end).size() +
         4 * unsynced_indexes_.size() + (side_changes_ != side_flushed_ ? 2U : 0U);
}

// What a `memory` log still appends to is left to the operating system.
Result<DurableLog::Unflushed> LocalPartition::prepare_flush(FlushMode mode) {
  const MutexLock appending(append_mutex_);
  {
    const MutexLock lock(mutex_);
    if (abandoned_) {
      return Unflushed();  // it is to be deleted
    }
  }
  return prepare(mode, settings().durability == DurabilityMode::kFsync);
}

Result<DurableLog::Unflushed> LocalPartition::prepare(FlushMode mode, bool with_active) {
  Unflushed result;
  Segments segments;
  Segments indexed;
  bool side = false;
  {
    const MutexLock lock(mutex_);
    if (durability_lost_) {
      // Nobody may take it for flushed and forget what the write-ahead log has of it.
      return failure_.value_or(
          Error(Errc::kIo, fmt::format("{} has lost unknown bytes", options_.name.to_string())));
    }
    segments = unflushed_segments(with_active, &result.end);
    indexed = unsynced_indexes_;
    side = side_changes_ != side_flushed_;
  }
  for (const std::shared_ptr<Segment>& segment : indexed) {
    WEIR_TRY(segment->write_aborted(false));
  }
  for (const std::shared_ptr<Segment>& segment : segments) {
    WEIR_TRY(segment->write_aborted(false));
  }
  if (with_active && writes_ahead()) {
    capture_producers(result.end);
  }
  if (mode == FlushMode::kByFile) {
    for (const std::shared_ptr<Segment>& segment : segments) {
      WEIR_TRY_ASSIGN(std::shared_ptr<File> file, segment->file());
      result.files.push_back(std::move(file));
    }
    WEIR_TRY(add_index_files(indexed, result));
    WEIR_TRY(add_transaction_indexes(segments, result));
  }
  if (side && folder_exists_) {
    WEIR_TRY(write_metadata(mode == FlushMode::kByFile));
    WEIR_TRY(write_epochs(mode == FlushMode::kByFile));
    if (mode == FlushMode::kByFile) {
      result.folders = {parent_path(options_.path), options_.path};
    }
  }
  const MutexLock lock(mutex_);
  side_prepared_ = side_changes_;
  indexes_prepared_ = unsynced_indexes_.size();
  return result;
}

// A start after a crash trusts the index of a segment below the recovery point until a look-up
// finds it out.
Status LocalPartition::add_index_files(const Segments& segments, Unflushed& result) const {
  for (const std::shared_ptr<Segment>& segment : segments) {
    std::vector<std::string> paths = {segment->path(kOffsetIndexSuffix),
                                      segment->path(kTimeIndexSuffix),
                                      snapshot_path(options_.path, segment->next_offset())};
    if (segment->has_aborted()) {
      paths.push_back(segment->path(kTransactionIndexSuffix));
    }
    for (const std::string& path : paths) {
      Result<std::shared_ptr<File>> file = environment_.files.open(path, OpenMode::kReadWrite);
      if (file.ok()) {
        result.files.push_back(*std::move(file));
      } else if (file.error().code() != Errc::kNotFound) {  // it went with its segment
        return std::move(file).error();
      }
    }
  }
  return Status();
}

Status LocalPartition::add_transaction_indexes(const Segments& segments, Unflushed& result) const {
  bool any = false;
  for (const std::shared_ptr<Segment>& segment : segments) {
    if (!segment->has_aborted()) {
      continue;
    }
    WEIR_TRY_ASSIGN(
        std::shared_ptr<File> file,
        environment_.files.open(segment->path(kTransactionIndexSuffix), OpenMode::kReadWrite));
    result.files.push_back(std::move(file));
    any = true;
  }
  // Without a write-ahead log nobody else sees to names.
  return any && !writes_ahead() ? environment_.files.sync_directory(options_.path) : Status();
}

void LocalPartition::on_flushed(Offset end) {
  Status written = write_checksums(end);
  if (!written.ok()) {
    // The recovery point stays: what a side-car says above it is not believed after a crash.
    WEIR_WARN("checksums not written, the next flush tries again partition={} error=\"{}\"",
              options_.name.to_string(), written.error().message());
    return;
  }
  const MutexLock lock(mutex_);
  mark_flushed(end);
}

// Files alone do not make a group durable, nor what follows a record of another log: the other
// files may not have it.
Offset LocalPartition::flushed_end(Offset end) const {
  return writes_ahead() && transactional_end_ > high_watermark_ ? std::min(end, high_watermark_)
                                                                : end;
}

void LocalPartition::mark_flushed(Offset end) {
  end = flushed_end(end);
  if (!durability_lost_) {
    recovery_point_ = std::max(recovery_point_, end);
    if (captured_producers_ && captured_producers_->offset <= recovery_point_) {
      flushed_producers_ = std::exchange(captured_producers_, std::nullopt);
    }
    side_flushed_ = side_prepared_;
    unsynced_indexes_.erase(unsynced_indexes_.begin(),
                            unsynced_indexes_.begin() +
                                static_cast<std::ptrdiff_t>(std::exchange(indexes_prepared_, 0)));
  }
}

void LocalPartition::on_durable(Offset end) {
  const MutexLock lock(mutex_);
  (void)mark_durable(end);
}

bool LocalPartition::mark_durable(Offset end) {
  if (durability_lost_) {
    return false;
  }
  if (end <= high_watermark_) {
    return false;
  }
  high_watermark_ = end;
  unstable_.advance(end);
  publish_watermark();
  return true;
}

void LocalPartition::on_durability_lost(const Error& error) {
  {
    const MutexLock lock(mutex_);
    durability_lost_ = true;
  }
  (void)poison(
      Error(Errc::kIo, fmt::format("sync failed, unknown bytes are lost: {}", error.message())));
  notify_waiters();
}

void LocalPartition::publish_watermark() {
  if (watermark_ != nullptr) {
    watermark_->publish(log_start_, high_watermark_, last_stable());
  }
}

Offset LocalPartition::recovery_point() const {
  const MutexLock lock(mutex_);
  return recovery_point_;
}

// Not by way of the flusher: a round of it may be under way and not be done.
Status LocalPartition::sync_all(FlushMode mode) {
  const Result<Unflushed> prepared = prepare(mode, true);
  if (!prepared.ok() && is_shortage(prepared.error().code())) {
    return prepared.error();
  }
  Status synced = prepared.status();
  const Unflushed unflushed = prepared.ok() ? *prepared : Unflushed();
  for (const std::shared_ptr<File>& file : unflushed.files) {
    if (synced.ok()) {
      synced = file->sync();
    }
  }
  for (const std::string& folder : unflushed.folders) {
    if (synced.ok()) {
      synced = environment_.files.sync_directory(folder);
    }
  }
  if (synced.ok()) {
    synced = write_checksums(unflushed.end);
  }
  if (!synced.ok()) {
    on_durability_lost(synced.error());
    return health();
  }
  if (mode == FlushMode::kByDisk) {
    return Status();  // nothing is durable yet: the caller syncs the disk and tells on_flushed()
  }
  const MutexLock lock(mutex_);
  mark_flushed(unflushed.end);
  mark_durable(flushed_end(unflushed.end));
  return Status();
}

Status LocalPartition::flush() {
  Status flushed;
  {
    const MutexLock appending(append_mutex_);
    flushed = check_open();
    if (flushed.ok()) {
      flushed = sync_all(FlushMode::kByFile);
    }
  }
  notify_waiters();
  return flushed;
}

void LocalPartition::release_idle() {
  std::shared_ptr<Segment> active;
  {
    const MutexLock lock(mutex_);
    if (std::exchange(end_when_released_, log_end_) != log_end_ || closed_) {
      return;
    }
    tail_.clear();
    count_tail();
    active = segments_.empty() ? nullptr : segments_.back();
  }
  if (active != nullptr) {
    active->close_file();
    if (environment_.resources != nullptr) {
      environment_.resources->closed(*active);
    }
  }
}

Status LocalPartition::close(FlushMode mode) {
  Status closed;
  {
    const MutexLock names(names_mutex_);
    const MutexLock appending(append_mutex_);
    {
      const MutexLock lock(mutex_);
      if (closed_) {
        return failure_ ? Status(*failure_) : Status();
      }
      closed_ = true;
    }
    closed = options_.read_only ? Status() : close_files(mode);
    Segments segments;
    {
      const MutexLock lock(mutex_);
      watermark_ = nullptr;
      recent_.clear();
      hints_ = {};
      tail_.clear();
      count_tail();
      segments = segments_;
    }
    if (!segments.empty()) {
      segments.back()->seal(offsets().log_end);
    }
    for (const std::shared_ptr<Segment>& segment : segments) {
      segment->release();
    }
  }
  notify_waiters();
  return closed;
}

Status LocalPartition::close_files(FlushMode mode) {
  {
    const MutexLock lock(mutex_);
    if (failure_) {
      return *failure_;
    }
  }
  if (!unclean_) {
    return Status();
  }
  const bool durable = mode == FlushMode::kByFile;
  if (epochs_dirty_ && folder_exists_) {
    if (Status written = write_epochs(durable); !written.ok()) {
      WEIR_WARN("leader epochs not written partition={} error=\"{}\"", options_.name.to_string(),
                written.error().message());
    }
  }
  WEIR_TRY(sync_all(mode));
  if (active_ == nullptr) {
    return Status();
  }
  WEIR_TRY(active_->trim());
  if (Status synced = durable ? active_->sync() : Status(); !synced.ok()) {
    on_durability_lost(synced.error());
    return synced;
  }
  if (has_snapshots_ || !producers_.empty()) {
    write_snapshot(offsets().log_end, durable);
  }
  // Without index files the next start makes them from the log.
  if (Status indexed = active_->write_indexes(durable); !indexed.ok()) {
    WEIR_WARN("index not written file={} error=\"{}\"", active_->path(kLogSuffix),
              indexed.error().message());
  }
  return durable ? environment_.files.sync_directory(options_.path) : Status();
}

}  // namespace weir::log
