#include "log/partition/partition_loading.h"
#include "log/segment/segment_names.h"

#include <fmt/format.h>

#include <algorithm>

namespace weir::log {

// A batch above the recovery point that the write-ahead log knows otherwise is what an earlier
// life wrote and a power cut brought back: the files end before it. So they do before a batch of
// a transaction behind its end: the record that says that the partition is in it, or what is in
// one group with a marker, is not there.
Status PartitionLoading::cut_at_difference(std::size_t& keep) {
  auto known = options_.wal_tail->batches.begin();
  const auto end = options_.wal_tail->batches.end();
  for (std::size_t i = 0; i <= keep; ++i) {
    for (const ScannedBatch& batch : candidates_[i].result.batches) {
      while (known != end && known->header.next_offset() <= batch.base) {
        ++known;
      }
      if (known == end) {
        if (!cuts_unlogged()) {
          return Status();
        }
        if (batch.base < recovery_point_ || (!batch.is_transactional && !options_.internal)) {
          continue;
        }
        return cut_at(keep, i, batch.base,
                      fmt::format("the batch at offset {} is of a transaction whose end, or "
                                  "whose beginning, was not written",
                                  batch.base.value()));
      }
      const BatchHeader& header = known->header;
      const bool same = header.base_offset == batch.base && header.crc == batch.crc &&
                        header.leader_epoch == batch.epoch;
      if (header.base_offset > batch.base || same) {
        continue;
      }
      return cut_at(keep, i, batch.base,
                    fmt::format("the batch at offset {} is not the one that the write-ahead log "
                                "has",
                                batch.base.value()));
    }
  }
  return Status();
}

// The files end before `base`, which stands in the candidate `at`.
Status PartitionLoading::cut_at(std::size_t& keep, std::size_t at, Offset base,
                                const std::string& why) {
  keep = at;
  WEIR_TRY(walk_again(candidates_[at], base));
  log_.report.truncated_bytes = 0;
  note_cut(candidates_[at], why);
  return Status();
}

Status PartitionLoading::walk_again(Candidate& candidate, Offset stop_at) {
  ScanRange range = range_of(candidate);
  range.durable_to = recovery_point_;
  range.stop_at = stop_at;
  candidate.indexes = SegmentIndexes(candidate.base);
  WEIR_TRY_ASSIGN(const std::shared_ptr<File> file, candidate.segment->file());
  WEIR_TRY_ASSIGN(candidate.result, scan_segment(*file, range, candidate.indexes));
  return Status();
}

// Appends what the write-ahead log has behind the end of the files.
Status PartitionLoading::replay() {
  Offset known_end;
  const Offset kept_end = log_.log_end;
  for (const WalBatch& batch : options_.wal_tail->batches) {
    const BatchHeader& header = batch.header;
    known_end = std::max(known_end, header.next_offset());
    // The end of the files, which may lie below a log start inside a batch.
    const bool empty = log_.segments.empty();
    const Offset end = empty ? log_.log_end : log_.segments.back()->next_offset();
    if (empty ? header.next_offset() <= end : header.base_offset < end) {
      continue;
    }
    if (header.base_offset > end) {
      damaged(fmt::format("{}: offsets {} to {} were durable and are gone", options_.path,
                          end.value(), header.base_offset.value() - 1));
    }
    WEIR_TRY(append(batch));
  }
  if (kept_end > recovery_point_ && !memory_log() &&
      (kept_end > known_end || !options_.wal_tail->intact)) {
    // Appended and never acknowledged, or durable in its file alone.
    return sync_what_is_left();
  }
  // Acknowledged as durable before it became a memory log: no checkpoint will flush it before the
  // write-ahead log forgets it.
  return memory_log() && !options_.wal_tail->batches.empty() ? sync_segments() : Status();
}

Status PartitionLoading::sync_segments() {
  for (const std::shared_ptr<Segment>& segment : log_.segments) {
    if (segment->next_offset() > recovery_point_) {
      WEIR_TRY(segment->sync());
    }
  }
  WEIR_TRY(files_.sync_directory(options_.path));
  return files_.sync_directory(parent_path(options_.path));
}

Status PartitionLoading::append(const WalBatch& batch) {
  const BatchHeader& header = batch.header;
  replayed_producers_ |= header.producer_id.value() >= 0;
  const SegmentSettings settings = segment_settings(options_.settings);
  if (!log_.folder_exists) {
    WEIR_TRY(files_.create_directories(options_.path));
    log_.folder_exists = true;
  }
  if (log_.segments.empty() ||
      log_.segments.back()->must_roll(header, settings, header.max_timestamp)) {
    if (!log_.segments.empty()) {
      Segment& full = *log_.segments.back();
      WEIR_TRY(full.trim());
      full.write_indexes(false).ignore("they are made anew from the log when they are missing");
      full.seal(header.base_offset);
      full.release();
    }
    auto next =
        std::make_shared<Segment>(files_, options_.path, header.base_offset, true, resources_);
    next->keep_checksums(options_.checksum_folder);
    WEIR_TRY(next->create(settings, header.max_timestamp));
    log_.segments.push_back(std::move(next));
  }
  WEIR_TRY(log_.segments.back()->append(batch.bytes.bytes, header, settings));
  if (header.leader_epoch >= LeaderEpoch(0) &&
      log_.epochs.assign(header.leader_epoch, header.base_offset)) {
    log_.epochs_changed = true;
  }
  if (log_.segments.size() == 1) {
    log_.log_start = std::max(options_.log_start, log_.segments.front()->base_offset());
  }
  log_.log_end = std::max(log_.log_end, header.next_offset());
  log_.report.replayed_bytes += batch.bytes.bytes.size();
  return Status();
}

}  // namespace weir::log
