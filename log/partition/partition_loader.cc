#include "log/partition/partition_loader.h"

#include "log/partition/partition_metadata.h"
#include "log/partition/segment_swap.h"
#include "log/segment/segment_names.h"

#include <weir/runtime/logger.h>

#include <fmt/format.h>
#include <oneapi/tbb/parallel_for.h>

#include <algorithm>
#include <set>

namespace weir::log {
namespace {

constexpr std::uint64_t kParallelBytesMin = 8U << 20U;

// One segment on its way from a file name to a Segment.
struct Candidate {
  Offset base;
  Offset next_base = kOffsetMax;
  std::uint64_t file_bytes = 0;
  std::shared_ptr<Segment> segment;
  bool scan = false;
  ScanResult result;
  SegmentIndexes indexes{Offset(0)};
  Status status;
};

class Loader {
 public:
  Loader(const Partition::Environment& environment, const Partition::OpenOptions& options)
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

  Result<LoadedLog> run() {
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

 private:
  bool recovering() const { return !options_.clean && !options_.read_only; }
  bool memory_log() const { return options_.settings.durability == DurabilityMode::kMemory; }
  bool replays() const { return recovering() && options_.wal_tail.has_value(); }
  // Above the recovery point files were not synced in their order: the first bad batch, or a hole
  // between two files, is the end of what a power cut left.
  bool loose_tail() const { return memory_log() || (replays() && options_.wal_tail->intact); }
  // Whether a batch of the files that the write-ahead log does not have may be judged by that.
  bool cuts_unlogged() const {
    return replays() && options_.wal_tail->intact && options_.recovery_point_known && !memory_log();
  }
  std::string path_of(std::string_view name) const { return join_path(options_.path, name); }

  Status list_folder() {
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
        return Error(Errc::kCorrupt,
                     fmt::format("{} is no file; move it away", path_of(entry.name)));
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

  Status check_metadata() {
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

  // --- Segments

  Status load_segments() {
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

  // What an earlier scrub found in it.
  std::vector<Damage> known_damage(const Candidate& candidate) const {
    std::vector<Damage> known;
    for (const SegmentDamage& damage : options_.damage) {
      if (damage.segment == candidate.base && damage.range.end_position <= candidate.file_bytes) {
        known.push_back(damage.range);
      }
    }
    return known;
  }

  void scan_all() {
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
    oneapi::tbb::parallel_for(std::size_t{0}, candidates_.size(),
                              [this](std::size_t i) { scan(i); });
  }

  void scan(std::size_t i) {
    Candidate& candidate = candidates_[i];
    const bool last = i + 1 == candidates_.size();
    if (candidate.scan) {
      candidate.status = walk(candidate, last);
    } else if (last) {
      candidate.status = resume(candidate);
    }
  }

  ScanRange range_of(const Candidate& candidate) const {
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
  Result<bool> learn_damage(Candidate& candidate) {
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

  Status walk(Candidate& candidate, bool last) {
    WEIR_TRY(walk_once(candidate, last));
    WEIR_TRY_ASSIGN(const bool learned, learn_damage(candidate));
    return learned ? walk_once(candidate, last) : Status();
  }

  Status walk_once(Candidate& candidate, bool last) {
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
  Status resume(Candidate& candidate) {
    WEIR_TRY(resume_once(candidate));
    WEIR_TRY_ASSIGN(const bool learned, learn_damage(candidate));
    return learned ? resume_once(candidate) : Status();
  }

  Status resume_once(Candidate& candidate) {
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
  std::size_t find_end() {
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

  void damaged(std::string text) {
    WEIR_WARN("durable bytes damaged partition={} what=\"{}\"", options_.name.to_string(), text);
    log_.report.damaged.push_back(std::move(text));
  }

  void note_damage(const Candidate& candidate) {
    for (const Damage& damage : candidate.result.damage) {
      damaged(fmt::format("{}: {} at position {}; offsets {} to {} are not readable",
                          candidate.segment->path(kLogSuffix), damage.what, damage.position,
                          damage.from.value(), damage.to.value() - 1));
    }
  }

  // The log ends with `candidate`, at the end of its last whole batch.
  void note_cut(const Candidate& candidate, const std::string& why) {
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

  // From the last one on, so that a crash on the way leaves a log without a hole.
  Status remove_behind(std::size_t keep) {
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

  Status adopt(Candidate& candidate, bool last) {
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

  bool has(const Candidate& candidate, std::string_view suffix) const {
    return names_.contains(segment_file_name(candidate.base, suffix));
  }

  // A sealed segment that was walked: its index files are compared with what the log says.
  Status adopt_walked(Candidate& candidate) {
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

  Status sync_what_is_left() {
    for (const Candidate& candidate : candidates_) {
      if (candidate.scan) {
        WEIR_TRY(candidate.segment->sync());
      }
    }
    WEIR_TRY(files_.sync_directory(options_.path));
    return files_.sync_directory(parent_path(options_.path));
  }

  void finish_offsets() {
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

  // --- The write-ahead log

  // A batch above the recovery point that the write-ahead log knows otherwise is what an earlier
  // life wrote and a power cut brought back: the files end before it. So they do before a batch of
  // a transaction behind its end: the record that says that the partition is in it, or what is in
  // one group with a marker, is not there.
  Status cut_at_difference(std::size_t& keep) {
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
  Status cut_at(std::size_t& keep, std::size_t at, Offset base, const std::string& why) {
    keep = at;
    WEIR_TRY(walk_again(candidates_[at], base));
    log_.report.truncated_bytes = 0;
    note_cut(candidates_[at], why);
    return Status();
  }

  Status walk_again(Candidate& candidate, Offset stop_at) {
    ScanRange range = range_of(candidate);
    range.durable_to = recovery_point_;
    range.stop_at = stop_at;
    candidate.indexes = SegmentIndexes(candidate.base);
    WEIR_TRY_ASSIGN(const std::shared_ptr<File> file, candidate.segment->file());
    WEIR_TRY_ASSIGN(candidate.result, scan_segment(*file, range, candidate.indexes));
    return Status();
  }

  // Appends what the write-ahead log has behind the end of the files.
  Status replay() {
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

  Status sync_segments() {
    for (const std::shared_ptr<Segment>& segment : log_.segments) {
      if (segment->next_offset() > recovery_point_) {
        WEIR_TRY(segment->sync());
      }
    }
    WEIR_TRY(files_.sync_directory(options_.path));
    return files_.sync_directory(parent_path(options_.path));
  }

  Status append(const WalBatch& batch) {
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

  // --- Producers

  Status load_producers() {
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

  // --- Epochs

  Status load_epochs() {
    std::string text;
    const bool exists = names_.contains(std::string(LeaderEpochCache::kFileName));
    if (exists) {
      WEIR_TRY_ASSIGN(text, read_file(files_, path_of(LeaderEpochCache::kFileName)));
    }
    Result<LeaderEpochCache> parsed = LeaderEpochCache::parse(text);
    if (parsed.ok() && !parsed->empty() && !lacks_beginning(*parsed)) {
      // An entry is written before the first batch of its epoch: the file knows every epoch.
      log_.epochs = *std::move(parsed);
    } else {
      if (!parsed.ok()) {
        WEIR_WARN("leader epochs rebuilt from the log partition={} reason=\"{}\"",
                  options_.name.to_string(), parsed.error().message());
      }
      WEIR_TRY(rebuild_epochs());
    }
    if (replays()) {
      note_walked_epochs();
    }
    log_.epochs.truncate_from_end(log_.log_end);
    log_.epochs.truncate_from_start(log_.log_start);
    log_.epochs_changed = (exists || !log_.epochs.empty()) && log_.epochs.encode() != text;
    return Status();
  }

  // A deletion of records that was cut short: the file knew of it before the log start did.
  bool lacks_beginning(const LeaderEpochCache& epochs) const {
    return recovering() && epochs.entries().front().start > log_.log_start;
  }

  // Above the recovery point the file may lack what the batches say.
  void note_walked_epochs() {
    for (const Candidate& candidate : candidates_) {
      for (const EpochStart& epoch : candidate.result.epochs) {
        if (epoch.epoch > log_.epochs.latest() && is_epoch(epoch.epoch)) {
          log_.epochs.assign(epoch.epoch, epoch.start);
        }
      }
    }
  }

  // The field has no CRC: an epoch that the controller never gave is no epoch.
  bool is_epoch(LeaderEpoch epoch) const {
    return options_.leader_epoch < LeaderEpoch(0) || epoch <= options_.leader_epoch;
  }

  Status rebuild_epochs() {
    std::vector<EpochStart> all;
    for (const Candidate& candidate : candidates_) {
      ScanResult result = candidate.result;
      if (!candidate.scan) {
        ScanRange range = range_of(candidate);
        range.durable_to = kOffsetMax;
        SegmentIndexes unused(candidate.base);
        WEIR_TRY_ASSIGN(const std::shared_ptr<File> file, candidate.segment->file());
        WEIR_TRY_ASSIGN(result, scan_segment(*file, range, unused));
        candidate.segment->release();
      }
      for (const EpochStart& epoch : result.epochs) {
        BatchHeader header;
        header.base_offset = epoch.start;
        header.leader_epoch = epoch.epoch;
        note_epoch(all, header);
      }
    }
    for (const EpochStart& epoch : all) {
      if (is_epoch(epoch.epoch)) {
        log_.epochs.assign(epoch.epoch, epoch.start);
      }
    }
    return Status();
  }

  const Partition::Environment& environment_;
  FileSystem& files_;
  const std::shared_ptr<SegmentResources> resources_;
  const Partition::OpenOptions& options_;
  Offset recovery_point_;
  bool replayed_producers_ = false;
  std::vector<Candidate> candidates_;
  std::set<std::string> names_;
  LoadedLog log_;
};

}  // namespace

SegmentSettings segment_settings(const PartitionSettings& settings) {
  return {std::min<std::int64_t>(settings.segment_bytes, INT32_MAX), settings.segment_ms,
          settings.segment_index_bytes, settings.index_interval_bytes,
          settings.durability == DurabilityMode::kFsync};
}

Result<LoadedLog> load_partition(const Partition::Environment& environment,
                                 const Partition::OpenOptions& options) {
  return Loader(environment, options).run();
}

}  // namespace weir::log
