#include "log/partition/partition_loading.h"
#include "log/segment/segment_names.h"

#include <weir/runtime/logger.h>

#include <fmt/format.h>
#include <oneapi/tbb/parallel_for.h>

namespace weir::log {

namespace {

constexpr std::uint64_t kParallelBytesMin = 8U << 20U;

}  // namespace

// What an earlier scrub found in it.
std::vector<Damage> PartitionLoading::known_damage(const Candidate& candidate) const {
  std::vector<Damage> known;
  for (const SegmentDamage& damage : options_.damage) {
    if (damage.segment == candidate.base && damage.range.end_position <= candidate.file_bytes) {
      known.push_back(damage.range);
    }
  }
  return known;
}

void PartitionLoading::scan_all() {
  std::uint64_t bytes = 0;
  for (const Candidate& candidate : candidates_) {
    bytes += candidate.scan ? candidate.file_bytes : 0;
  }
  log_.report.scanned_bytes = bytes;
  if (bytes < kParallelBytesMin) {
    for (std::size_t i = 0; i < candidates_.size(); ++i) {
      scan(i);
    }
    return;
  }
  oneapi::tbb::parallel_for(std::size_t{0}, candidates_.size(), [this](std::size_t i) { scan(i); });
}

void PartitionLoading::scan(std::size_t i) {
  Candidate& candidate = candidates_[i];
  const bool last = i + 1 == candidates_.size();
  if (candidate.scan) {
    candidate.status = walk(candidate, last);
  } else if (last) {
    candidate.status = resume(candidate);
  }
}

ScanRange PartitionLoading::range_of(const Candidate& candidate) const {
  ScanRange range;
  range.end = candidate.file_bytes;
  range.expected = candidate.base;
  range.offset_end = segment_offset_end(candidate.base, candidate.next_base);
  range.index_interval_bytes = options_.settings.index_interval_bytes;
  if (std::vector<Damage> known = candidate.segment->damage(); !known.empty()) {
    range.known_damage = std::make_shared<const std::vector<Damage>>(std::move(known));
  }
  return range;
}

// A batch that lies makes its neighbours look wrong: the side-car knows which one it was.
Result<bool> PartitionLoading::learn_damage(Candidate& candidate) {
  const ScanResult& scan = candidate.result;
  const bool is_suspect = !scan.damage.empty() || scan.has_hole ||
                          scan.next_offset < recovery_point_ ||
                          (options_.clean && !scan.stop_reason.empty());
  if (!is_suspect || options_.checksum_folder.empty() || !candidate.segment->damage().empty()) {
    return false;
  }
  WEIR_TRY_ASSIGN(std::vector<Damage> found,
                  candidate.segment->compare_heads(options_.clean ? kOffsetMax : recovery_point_,
                                                   candidate.file_bytes, candidate.next_base));
  const bool learned = !found.empty();
  candidate.segment->set_damage(std::move(found));
  return learned;
}

Status PartitionLoading::walk(Candidate& candidate, bool last) {
  WEIR_TRY(walk_once(candidate, last));
  WEIR_TRY_ASSIGN(const bool learned, learn_damage(candidate));
  return learned ? walk_once(candidate, last) : Status();
}

Status PartitionLoading::walk_once(Candidate& candidate, bool last) {
  ScanRange range = range_of(candidate);
  range.verify_from = recovery_point_;
  range.durable_to = last || loose_tail() ? recovery_point_ : kOffsetMax;
  if (replays() && (!options_.wal_tail->batches.empty() || cuts_unlogged())) {
    range.collect_from = recovery_point_;
  }
  candidate.indexes = SegmentIndexes(candidate.base);
  WEIR_TRY_ASSIGN(const std::shared_ptr<File> file, candidate.segment->file());
  WEIR_TRY_ASSIGN(candidate.result, scan_segment(*file, range, candidate.indexes));
  return Status();
}

// The last segment after a clean close, or of a read-only log: its index files spare the walk.
Status PartitionLoading::resume(Candidate& candidate) {
  WEIR_TRY(resume_once(candidate));
  WEIR_TRY_ASSIGN(const bool learned, learn_damage(candidate));
  return learned ? resume_once(candidate) : Status();
}

Status PartitionLoading::resume_once(Candidate& candidate) {
  ScanRange range = range_of(candidate);
  range.durable_to = options_.clean ? kOffsetMax : Offset(0);
  WEIR_TRY_ASSIGN(const std::shared_ptr<File> file, candidate.segment->file());
  Result<SegmentIndexes> indexes = candidate.segment->read_index_files(candidate.file_bytes);
  if (indexes.ok()) {
    const Result<ScanResult> result = resume_scan(*file, range, *indexes);
    if (result.ok()) {
      candidate.result = *result;
      candidate.indexes = *std::move(indexes);
      return Status();
    }
    indexes = result.error();
  }
  if (indexes.error().code() != Errc::kCorrupt && indexes.error().code() != Errc::kNotFound) {
    return indexes.error();
  }
  if (options_.clean && candidate.file_bytes > 0) {
    WEIR_WARN("index rebuilt from the log file={} reason={}", candidate.segment->path(kLogSuffix),
              indexes.error().message());
    ++log_.report.indexes_rebuilt;
  }
  candidate.indexes = SegmentIndexes(candidate.base);
  WEIR_TRY_ASSIGN(candidate.result, scan_segment(*file, range, candidate.indexes));
  return Status();
}

// Index of the last segment that stays; notes what is cut.
std::size_t PartitionLoading::find_end() {
  for (std::size_t i = 0; i < candidates_.size(); ++i) {
    const Candidate& candidate = candidates_[i];
    const bool last = i + 1 == candidates_.size();
    if (!candidate.scan && !last) {
      continue;
    }
    note_damage(candidate);
    const ScanResult& result = candidate.result;
    if (options_.read_only) {
      continue;
    }
    if (last || (loose_tail() && !result.stop_reason.empty())) {
      note_cut(candidate, result.stop_reason);
      return i;
    }
    if (!result.stop_reason.empty()) {
      damaged(fmt::format("{}: {}; offsets {} to {} are not readable",
                          candidate.segment->path(kLogSuffix), result.stop_reason,
                          result.next_offset.value(), candidate.next_base.value() - 1));
    } else if (result.next_offset < candidate.next_base) {
      if (loose_tail() && candidate.next_base > recovery_point_) {
        note_cut(candidate,
                 fmt::format("offsets {} to {} are missing behind it", result.next_offset.value(),
                             candidate.next_base.value() - 1));
        return i;
      }
      damaged(
          fmt::format("{}: offsets {} to {} are missing behind it (a lost file, or "
                      "compaction)",
                      candidate.segment->path(kLogSuffix), result.next_offset.value(),
                      candidate.next_base.value() - 1));
    }
  }
  return candidates_.size() - 1;
}

void PartitionLoading::damaged(std::string text) {
  WEIR_WARN("durable bytes damaged partition={} what=\"{}\"", options_.name.to_string(), text);
  log_.report.damaged.push_back(std::move(text));
}

void PartitionLoading::note_damage(const Candidate& candidate) {
  for (const Damage& damage : candidate.result.damage) {
    damaged(fmt::format("{}: {} at position {}; offsets {} to {} are not readable",
                        candidate.segment->path(kLogSuffix), damage.what, damage.position,
                        damage.from.value(), damage.to.value() - 1));
  }
}

// The log ends with `candidate`, at the end of its last whole batch.
void PartitionLoading::note_cut(const Candidate& candidate, const std::string& why) {
  const ScanResult& result = candidate.result;
  RecoveryReport& report = log_.report;
  report.truncated_bytes += candidate.file_bytes - result.valid_bytes;
  for (const Candidate& other : candidates_) {
    if (other.base > candidate.base) {
      report.truncated_bytes += other.file_bytes;
    }
  }
  if (report.truncated_bytes > 0) {
    report.truncated_from = result.next_offset;
    report.reason = fmt::format("{}: {}", candidate.segment->path(kLogSuffix), why);
  }
  if (result.next_offset < recovery_point_ && candidate.file_bytes > 0) {
    damaged(fmt::format("{}: offsets {} to {} were durable and are gone",
                        candidate.segment->path(kLogSuffix), result.next_offset.value(),
                        recovery_point_.value() - 1));
  }
}

}  // namespace weir::log
