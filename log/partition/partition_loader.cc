#include "log/partition/partition_loading.h"
#include "log/partition/partition_metadata.h"
#include "log/partition/segment_swap.h"
#include "log/segment/segment_names.h"

#include <weir/runtime/logger.h>

#include <fmt/format.h>

#include <algorithm>

namespace weir::log {

PartitionLoading::PartitionLoading(const Partition::Environment& environment,
                                   const Partition::OpenOptions& options)
    : environment_(environment),
      files_(environment.files),
      resources_(environment.resources),
      options_(options),
      recovery_point_(options.recovery_point) {
  // What is durable in its file needs no frame: below the first one everything is, unless frames
  // are missing.
  if (replays() && options.wal_tail->intact && !options.wal_tail->batches.empty()) {
    recovery_point_ =
        std::max(recovery_point_, options.wal_tail->batches.front().header.base_offset);
  }
}

Result<LoadedLog> PartitionLoading::run() {
  WEIR_TRY(list_folder());
  if (log_.folder_exists) {
    WEIR_TRY(check_metadata());
  }
  if (!candidates_.empty()) {
    WEIR_TRY(load_segments());
  }
  finish_offsets();
  WEIR_TRY(load_epochs());
  if (replays()) {
    WEIR_TRY(replay());
  }
  if (!options_.read_only) {
    WEIR_TRY(load_producers());
  }
  log_.recovery_point = replays() ? std::min(recovery_point_, log_.log_end) : log_.log_end;
  return std::move(log_);
}

// Whether a batch of the files that the write-ahead log does not have may be judged by that.
bool PartitionLoading::cuts_unlogged() const {
  return replays() && options_.wal_tail->intact && options_.recovery_point_known && !memory_log();
}

Status PartitionLoading::list_folder() {
  Result<std::vector<DirectoryEntry>> entries = files_.list(options_.path);
  if (!entries.ok()) {
    return entries.error().code() == Errc::kNotFound ? Status() : entries.status();
  }
  log_.folder_exists = true;
  if (!options_.read_only) {
    WEIR_TRY_ASSIGN(const bool is_changed,
                    finish_swaps(files_, options_.path, *entries, options_.checksum_folder));
    if (is_changed) {
      WEIR_TRY_ASSIGN(entries, files_.list(options_.path));
    }
  }
  for (const DirectoryEntry& entry : *entries) {
    names_.insert(entry.name);
    const std::optional<Offset> base = parse_log_file_name(entry.name);
    if (!base) {
      continue;
    }
    if (entry.kind != FileKind::kFile) {
      return Error(Errc::kCorrupt, fmt::format("{} is no file; move it away", path_of(entry.name)));
    }
    WEIR_TRY_ASSIGN(const FileInfo info, files_.info(path_of(entry.name)));
    Candidate candidate;
    candidate.base = *base;
    candidate.file_bytes = info.size;
    candidates_.push_back(std::move(candidate));
  }
  // Names have 20 digits, so the folder's order is that of the offsets.
  for (std::size_t i = 0; i + 1 < candidates_.size(); ++i) {
    candidates_[i].next_base = candidates_[i + 1].base;
  }
  return Status();
}

Status PartitionLoading::check_metadata() {
  if (!names_.contains(std::string(kPartitionMetadataName))) {
    return Status();
  }
  WEIR_TRY_ASSIGN(const std::string text, read_file(files_, path_of(kPartitionMetadataName)));
  const Result<Uuid> id = parse_partition_metadata(text);
  if (!id.ok()) {
    if (!replays()) {  // with a write-ahead log a power cut may take it, and it is made anew
      WEIR_WARN("partition metadata ignored folder={} error={}", options_.path,
                id.error().message());
    }
    return Status();
  }
  if (!options_.topic_id.is_zero() && *id != options_.topic_id) {
    return Error(Errc::kCorrupt,
                 fmt::format("{} belongs to topic id {}, not to {} of topic {}; move the folder "
                             "away",
                             options_.path, id->to_string(), options_.topic_id.to_string(),
                             options_.name.topic));
  }
  log_.metadata_exists = true;
  return Status();
}

Status PartitionLoading::load_segments() {
  for (Candidate& candidate : candidates_) {
    candidate.segment = std::make_shared<Segment>(files_, options_.path, candidate.base,
                                                  !options_.read_only, resources_);
    candidate.segment->keep_checksums(options_.checksum_folder);
    candidate.segment->set_damage(known_damage(candidate));
    if (recovering()) {
      candidate.segment->distrust_checksums(recovery_point_);
    }
    candidate.scan = recovering() &&
                     (&candidate == &candidates_.back() || candidate.next_base > recovery_point_);
  }
  log_.report.scanned = recovering();
  scan_all();
  for (Candidate& candidate : candidates_) {
    WEIR_TRY(std::move(candidate.status));
  }
  std::size_t keep = find_end();
  if (replays()) {
    WEIR_TRY(cut_at_difference(keep));
  }
  WEIR_TRY(remove_behind(keep));
  for (std::size_t i = 0; i <= keep; ++i) {
    WEIR_TRY(adopt(candidates_[i], i == keep));
    log_.segments.push_back(candidates_[i].segment);
  }
  if (recovering() && !replays()) {
    WEIR_TRY(sync_what_is_left());
    for (const std::shared_ptr<Segment>& segment : log_.segments) {
      WEIR_TRY(segment->write_checksums(recovery_point_));  // all of the log is durable now
    }
  }
  for (const std::shared_ptr<Segment>& segment : log_.segments) {
    log_.report.indexes_rebuilt += segment->indexes_rebuilt();
    segment->release();
  }
  return Status();
}

// From the last one on, so that a crash on the way leaves a log without a hole.
Status PartitionLoading::remove_behind(std::size_t keep) {
  if (keep + 1 == candidates_.size()) {
    return Status();
  }
  while (candidates_.size() > keep + 1) {
    const Segment& segment = *candidates_.back().segment;
    for (const std::string_view suffix : {kLogSuffix, kOffsetIndexSuffix, kTimeIndexSuffix,
                                          kTransactionIndexSuffix, kSnapshotSuffix}) {
      if (names_.contains(segment_file_name(segment.base_offset(), suffix))) {
        WEIR_TRY(files_.remove_file(segment.path(suffix)));
        names_.erase(segment_file_name(segment.base_offset(), suffix));
      }
    }
    ++log_.report.segments_removed;
    candidates_.pop_back();
  }
  candidates_.back().next_base = kOffsetMax;
  return files_.sync_directory(options_.path);
}

Status PartitionLoading::adopt(Candidate& candidate, bool last) {
  const std::int64_t interval = options_.settings.index_interval_bytes;
  if (!last && (!candidate.scan || !candidate.result.stop_reason.empty())) {
    candidate.segment->adopt_sealed(candidate.file_bytes, candidate.next_base, interval);
    // At or above the checkpointed recovery point it may have been flushed before it was sealed,
    // and so before it had indexes.
    const bool indexed = has(candidate, kOffsetIndexSuffix) && has(candidate, kTimeIndexSuffix) &&
                         (!recovering() || candidate.next_base < options_.recovery_point);
    return options_.read_only || indexed ? Status() : candidate.segment->load_indexes();
  }
  if (last && !options_.read_only && candidate.result.valid_bytes < candidate.file_bytes) {
    WEIR_TRY_ASSIGN(const std::shared_ptr<File> file, candidate.segment->file());
    WEIR_TRY(file->truncate(candidate.result.valid_bytes));
    // Else the next power cut brings back what was cut, behind what is written here since.
    WEIR_TRY(file->sync());
  }
  if (last) {
    if (!options_.read_only && candidate.result.next_offset < recovery_point_) {
      candidate.segment->distrust_checksums(candidate.result.next_offset);  // of what is gone
    }
    candidate.segment->adopt(candidate.result, std::move(candidate.indexes), interval);
    return Status();
  }
  return adopt_walked(candidate);
}

bool PartitionLoading::has(const Candidate& candidate, std::string_view suffix) const {
  return names_.contains(segment_file_name(candidate.base, suffix));
}

// A sealed segment that was walked: its index files are compared with what the log says.
Status PartitionLoading::adopt_walked(Candidate& candidate) {
  candidate.indexes.finish();
  const Result<SegmentIndexes> files = candidate.segment->read_index_files(candidate.file_bytes);
  const bool same = files.ok() &&
                    files->offsets().encode() == candidate.indexes.offsets().encode() &&
                    files->times().encode() == candidate.indexes.times().encode();
  candidate.segment->adopt(candidate.result, std::move(candidate.indexes),
                           options_.settings.index_interval_bytes);
  candidate.segment->seal(candidate.next_base);
  if (same) {
    return Status();
  }
  ++log_.report.indexes_rebuilt;
  if (Status written = candidate.segment->write_indexes(false); !written.ok()) {
    WEIR_WARN("index not written file={} error={}", candidate.segment->path(kLogSuffix),
              written.error().message());
  }
  return Status();
}

Status PartitionLoading::sync_what_is_left() {
  for (const Candidate& candidate : candidates_) {
    if (candidate.scan) {
      WEIR_TRY(candidate.segment->sync());
    }
  }
  WEIR_TRY(files_.sync_directory(options_.path));
  return files_.sync_directory(parent_path(options_.path));
}

void PartitionLoading::finish_offsets() {
  const Offset first = log_.segments.empty() ? Offset(0) : log_.segments.front()->base_offset();
  log_.log_start = std::max(options_.log_start, first);
  log_.log_end = log_.segments.empty() ? log_.log_start : log_.segments.back()->next_offset();
  log_.log_end = std::max(log_.log_end, log_.log_start);
  if (recovering() && log_.segments.empty() && log_.log_end < recovery_point_) {
    damaged(fmt::format("{}: offsets {} to {} were durable and are gone", options_.path,
                        log_.log_end.value(), recovery_point_.value() - 1));
    log_.log_end = recovery_point_;
  }
}

Status PartitionLoading::load_producers() {
  ProducerLoad load{files_,        options_.path,  options_.name, names_,
                    log_.segments, log_.log_start, log_.log_end};
  load.clean = options_.clean;
  load.trusted = options_.clean ? kOffsetMax : options_.recovery_point;
  load.known = options_.producers;
  load.limits = environment_.producers;
  load.now = environment_.clock.now();
  if (!replayed_producers_) {
    for (const Candidate& candidate : candidates_) {
      if (candidate.scan && !candidate.result.has_producers) {
        load.plain.insert(candidate.base);
      }
    }
  }
  if (log_.folder_exists || load.known) {
    WEIR_TRY_ASSIGN(log_.producers, log::load_producers(load));
  }
  return Status();
}

SegmentSettings segment_settings(const PartitionSettings& settings) {
  return {std::min<std::int64_t>(settings.segment_bytes, INT32_MAX), settings.segment_ms,
          settings.segment_index_bytes, settings.index_interval_bytes,
          settings.durability == DurabilityMode::kFsync};
}

Result<LoadedLog> load_partition(const Partition::Environment& environment,
                                 const Partition::OpenOptions& options) {
  return PartitionLoading(environment, options).run();
}

}  // namespace weir::log
