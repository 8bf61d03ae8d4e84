#include "log/verify/partition_check.h"

#include "log/dump/dump_target.h"
#include "log/dump/index_check.h"
#include "log/dump/partition_files.h"
#include "log/dump/segment_walk.h"
#include "log/partition/leader_epoch_cache.h"
#include "log/partition/partition_metadata.h"
#include "log/record/batch_decoder.h"
#include "log/record/control_record.h"
#include "log/segment/segment_names.h"
#include "log/segment/segment_scrub.h"
#include "log/verify/epoch_check.h"
#include "log/verify/findings.h"

#include <fmt/format.h>

#include <algorithm>
#include <memory>
#include <optional>
#include <utility>

namespace weir::log {
namespace {

// ".log" files that a deletion or a compaction had renamed.
bool is_left_over(std::string_view name) {
  for (const std::string_view suffix : {kDeletedSuffix, kCleanedSuffix, kSwapSuffix}) {
    if (name.ends_with(suffix)) {
      return parse_log_file_name(name.substr(0, name.size() - suffix.size())).has_value();
    }
  }
  return false;
}

struct LogFile {
  std::string path;
  Offset base;
  std::string_view suffix;  // ".swap" of a segment that compaction had nearly put in place
  Offset end = kOffsetMax;  // base of the next one
};

// Offsets that no segment has, between two of them.
struct Hole {
  std::string file;  // in front of it
  Offset from;
  Offset to;
};

class Check {
 public:
  Check(FileSystem& files, const DumpTarget& target, const PartitionCheckOptions& options)
      : files_(files),
        target_(target),
        options_(options),
        findings_(options.findings_max, options.has_write_ahead_log && !options.clean
                                            ? std::optional(options.recovery_point)
                                            : std::nullopt),
        is_compacted_(options.compacted),
        epochs_(read_epochs(), options.clean, findings_) {}

  Result<PartitionCheck> run() {
    check_small_files();
    find_segments();
    for (std::size_t i = 0; i < segments_.size(); ++i) {
      WEIR_TRY(check_segment(segments_[i], i + 1 == segments_.size()));
    }
    epochs_.finish();
    report_holes();
    check_end();
    result_.totals.partitions = 1;
    result_.totals.damage = findings_.damage_count();
    result_.totals.notes = findings_.note_count();
    result_.findings = findings_.take(target_.path);
    return std::move(result_);
  }

 private:
  // --- The files beside the segments

  std::vector<EpochStart> read_epochs() {
    const DumpFile* const file = target_.find(LeaderEpochCache::kFileName);
    if (file == nullptr || !target_.is_folder) {
      return {};
    }
    const std::string path = target_.path_of(*file);
    const Result<std::string> text = read_file(files_, path);
    if (!text.ok()) {
      findings_.damage(path, text.error().message());
      return {};
    }
    const Result<LeaderEpochCache> epochs = LeaderEpochCache::parse(*text);
    if (!epochs.ok()) {
      findings_.damage(path, epochs.error().message());
      return {};
    }
    return epochs->entries();
  }

  void check_small_files() {
    if (!target_.is_folder) {
      return;
    }
    for (const DumpFile& file : target_.files) {
      const std::string path = target_.path_of(file);
      if (file.kind == DumpFileKind::kPartitionMetadata) {
        check_small(path, VerifySeverity::kDamage,
                    [](const std::string& text) { return parse_metadata_file(text).status(); });
      } else if (file.kind == DumpFileKind::kSnapshot) {
        check_small(path, is_made_anew(file.base) ? VerifySeverity::kNote : VerifySeverity::kDamage,
                    [](const std::string& text) { return parse_producer_snapshot(text).status(); });
      } else if (file.kind == DumpFileKind::kMetadataSnapshot) {
        check_metadata_snapshot(path);
      } else if (is_left_over(file.name)) {
        findings_.note(path, "left by a deletion or a compaction that a crash cut short");
      }
    }
  }

  // Whole batches from a SNAPSHOT_HEADER to a SNAPSHOT_FOOTER.
  void check_metadata_snapshot(const std::string& path) {
    const Result<std::shared_ptr<File>> file = files_.open(path, OpenMode::kRead);
    if (!file.ok()) {
      findings_.damage(path, file.error().message());
      return;
    }
    const Status walked = walk_metadata_snapshot(path, **file);
    if (!walked.ok()) {
      findings_.damage(path, walked.error().message());
    }
  }

  Status walk_metadata_snapshot(const std::string& path, File& file) {
    WEIR_TRY_ASSIGN(const std::uint64_t size, file.size());
    SegmentWalk walk(file, size, Offset(0), kOffsetMax);
    std::optional<ControlType> first;
    std::optional<ControlType> last;
    bool is_first = true;
    while (true) {
      WEIR_TRY_ASSIGN(const WalkItem item, walk.next());
      if (const auto* range = std::get_if<DamagedRange>(&item)) {
        report_range(path, *range, false);
        return Status();
      }
      const auto* const batch = std::get_if<WalkedBatch>(&item);
      if (batch == nullptr) {
        break;
      }
      last = control_type(*batch);
      first = std::exchange(is_first, false) ? last : first;
    }
    if (first != ControlType::kSnapshotHeader || last != ControlType::kSnapshotFooter) {
      return Error(Errc::kCorrupt, "does not go from a SNAPSHOT_HEADER to a SNAPSHOT_FOOTER");
    }
    return Status();
  }

  // Of the first record of a control batch.
  std::optional<ControlType> control_type(const WalkedBatch& batch) {
    records_.clear();
    if (!batch.header.is_control() ||
        !decode_records(batch.header, batch.bytes, DecodeLimits(), records_, decompressed_).ok() ||
        records_.empty()) {
      return std::nullopt;
    }
    const Result<ControlRecord> control = parse_control_record(records_.front());
    return control.ok() ? std::optional(control->type) : std::nullopt;
  }

  void check_small(const std::string& path, VerifySeverity severity,
                   const std::function<Status(const std::string&)>& parse) {
    const Result<std::string> text = read_file(files_, path);
    if (!text.ok() && text.error().code() == Errc::kNotFound) {
      return;  // a running process took it away meanwhile
    }
    const Status status = text.ok() ? parse(*text) : text.status();
    if (!status.ok()) {
      findings_.add({.severity = severity, .file = path, .what = status.error().message()});
    }
  }

  // --- Segments

  void find_segments() {
    for (const DumpFile& file : target_.files) {
      const std::string path = target_.path_of(file);
      if (file.kind == DumpFileKind::kLog) {
        segments_.push_back({path, file.base, "", kOffsetMax});
        continue;
      }
      const std::string name = file.name.ends_with(kSwapSuffix)
                                   ? file.name.substr(0, file.name.size() - kSwapSuffix.size())
                                   : std::string();
      const std::optional<Offset> base = parse_log_file_name(name);
      if (base && target_.find(name) == nullptr) {
        segments_.push_back({path, *base, kSwapSuffix, kOffsetMax});
      }
    }
    std::sort(segments_.begin(), segments_.end(),
              [](const LogFile& a, const LogFile& b) { return a.base < b.base; });
    for (std::size_t i = 0; i + 1 < segments_.size(); ++i) {
      segments_[i].end = segments_[i + 1].base;
    }
    result_.log_start = segments_.empty() ? Offset(0) : segments_.front().base;
    result_.log_end = result_.log_start;
  }

  Status check_segment(const LogFile& segment, bool is_last) {
    const Result<std::shared_ptr<File>> log = files_.open(segment.path, OpenMode::kRead);
    if (!log.ok()) {
      if (log.error().code() != Errc::kNotFound) {
        findings_.damage(segment.path, log.error().message());
      }
      return Status();  // else a running process took it away meanwhile
    }
    if (segment.base > result_.log_end) {
      holes_.push_back({segment.path, result_.log_end, segment.base});
    }
    result_.log_end = segment.base;
    std::optional<IndexCheck> indexes;
    if (target_.is_folder) {
      indexes.emplace(files_, target_.path, segment.base, segment.suffix);
    }
    // Behind the indexes, so that they name nothing that is not seen.
    WEIR_TRY_ASSIGN(const std::uint64_t size, (*log)->size());
    ++result_.totals.segments;
    result_.totals.bytes += size;
    is_compacted_ |= size == 0 && !is_last;
    SegmentWalk walk(**log, size, segment.base, segment.end, compare_heads(*log, size, segment));
    WEIR_TRY(check_items(walk, segment, is_last, indexes ? &*indexes : nullptr));
    if (indexes) {
      const bool may_lack_indexes = size == 0 || (is_last && !options_.clean);
      report_indexes(*indexes, segment, may_lack_indexes);
    }
    return Status();
  }

  // What the side-car shows to be wrong; one that cannot be read shows nothing.
  std::vector<Damage> compare_heads(const std::shared_ptr<File>& log, std::uint64_t size,
                                    const LogFile& segment) {
    if (options_.checksum_folder.empty()) {
      return {};
    }
    const std::string path =
        join_path(options_.checksum_folder, segment_file_name(segment.base, kChecksumSuffix));
    const Offset limit = options_.clean ? kOffsetMax : options_.recovery_point;
    Result<ChecksumReader> known = ChecksumReader::open(files_, path, limit);
    if (!known.ok()) {
      findings_.note(path, known.error().message());
      return {};
    }
    SegmentScrub scrub(log,
                       {.base = segment.base,
                        .offset_end = segment.end,
                        .end_position = size,
                        .end_offset = segment.end,
                        .stop_at = limit,
                        .depth = ScrubDepth::kHeads},
                       *std::move(known));
    const Result<bool> walked = scrub.step(UINT64_MAX / 2);
    if (scrub.side_car_is_foreign()) {
      findings_.note(path, "it is of another log; a scrub makes it anew");
    }
    return walked.ok() ? scrub.damage() : std::vector<Damage>();
  }

  Status check_items(SegmentWalk& walk, const LogFile& segment, bool is_last, IndexCheck* indexes) {
    while (true) {
      WEIR_TRY_ASSIGN(WalkItem item, walk.next());
      if (const auto* batch = std::get_if<WalkedBatch>(&item)) {
        check_batch(segment.path, *batch, indexes);
      } else if (auto* range = std::get_if<DamagedRange>(&item)) {
        if (indexes != nullptr) {
          indexes->add(*range);
        }
        if (!range->next_offset && !is_last) {
          range->next_offset = segment.end;
        }
        result_.log_end = range->next_offset.value_or(result_.log_end);
        report_range(segment.path, *range, is_last);
      } else {
        return Status();
      }
    }
  }

  void check_batch(const std::string& path, const WalkedBatch& batch, IndexCheck* indexes) {
    const BatchHeader& header = batch.header;
    is_compacted_ |= header.base_offset > result_.log_end || header.has_delete_horizon() ||
                     header.records_count <= header.last_offset_delta;
    result_.log_end = header.next_offset();
    ++result_.totals.batches;
    result_.totals.records += static_cast<std::uint64_t>(std::max(header.records_count, 0));
    epochs_.add(path, batch);
    if (const std::string wrong = wrong_records(batch); !wrong.empty()) {
      report_range(path, undecodable(batch, wrong), false);
    }
    if (indexes == nullptr) {
      return;
    }
    indexes->add(batch);
    if (const std::optional<AbortMarker> marker = aborts_.add(batch)) {
      indexes->add(*marker);
    }
  }

  // What is wrong inside a batch; empty when nothing is.
  std::string wrong_records(const WalkedBatch& batch) {
    records_.clear();
    const Status decoded =
        decode_records(batch.header, batch.bytes, DecodeLimits(), records_, decompressed_);
    if (!decoded.ok()) {
      return decoded.error().message();
    }
    Offset next = batch.header.base_offset;
    for (const RecordView& record : records_) {
      if (record.offset < next || record.offset > batch.header.last_offset()) {
        return fmt::format("the record at offset {} does not go on from {} to {}",
                           record.offset.value(), next.value(), batch.header.last_offset().value());
      }
      next = record.offset.next();
    }
    return "";
  }

  void report_range(const std::string& path, const DamagedRange& range, bool is_last) {
    VerifyFinding finding{.severity = VerifySeverity::kDamage,
                          .file = path,
                          .position = range.position,
                          .end_position = range.end_position,
                          .first_offset = range.first_offset,
                          .next_offset = range.next_offset,
                          .what = range.reason};
    const bool is_tail = is_last && !range.next_offset;
    const bool was_durable = range.first_offset < options_.recovery_point;
    // A whole batch is not torn: it stands where it must not.
    const bool is_whole = range.header && range.is_crc_right;
    if (range.is_old_format) {
      finding.severity = VerifySeverity::kNote;
    } else if (is_tail && range.is_zero && !was_durable) {
      finding.severity = VerifySeverity::kNote;
    } else if (is_tail && !is_whole && !was_durable && !options_.clean) {
      finding.severity = VerifySeverity::kNote;
      finding.what = fmt::format("a torn tail, which a start cuts: {}", range.reason);
    }
    is_tail_reported_ |= is_tail;
    findings_.add(std::move(finding));
  }

  // After a crash: what hangs on offsets from the recovery point up was not synced.
  bool is_made_anew(Offset end) const { return !options_.clean && end > options_.recovery_point; }

  // The active segment's may be in memory until a roll or a clean close.
  void report_indexes(IndexCheck& indexes, const LogFile& segment, bool may_be_missing) {
    for (IndexFault& fault : indexes.finish()) {
      if (is_made_anew(segment.end)) {
        fault.what += "; a start makes it anew";
      }
      VerifyFinding finding{
          .severity = is_made_anew(segment.end) ? VerifySeverity::kNote : VerifySeverity::kDamage,
          .file = std::move(fault.file),
          .position = fault.position,
          .first_offset = fault.offset,
          .what = std::move(fault.what)};
      findings_.add(std::move(finding));
    }
    for (const auto& [suffix, is_there] :
         {std::pair(kOffsetIndexSuffix, indexes.has_offset_index()),
          std::pair(kTimeIndexSuffix, indexes.has_time_index())}) {
      if (!is_there && !may_be_missing) {
        findings_.note(join_path(target_.path, segment_file_name(segment.base, suffix) +
                                                   std::string(segment.suffix)),
                       "missing; it is made anew from the log");
      }
    }
  }

  // --- Behind the last segment

  void report_holes() {
    for (const Hole& hole : holes_) {
      findings_.add({.severity = is_compacted_ ? VerifySeverity::kNote : VerifySeverity::kDamage,
                     .file = hole.file,
                     .first_offset = hole.from,
                     .next_offset = hole.to,
                     .what = is_compacted_ ? "a hole in front of this segment, as compaction leaves"
                                           : "a hole in front of this segment: a file is lost"});
    }
  }

  void check_end() {
    if (!target_.is_folder) {
      return;
    }
    for (const std::string_view name : {LeaderEpochCache::kFileName, kPartitionMetadataName}) {
      if (target_.find(name) == nullptr && result_.log_end > result_.log_start) {
        findings_.note(join_path(target_.path, name), "missing");
      }
    }
    if (std::max(result_.log_end, options_.log_start) < options_.recovery_point &&
        !is_tail_reported_) {
      findings_.add({.severity = VerifySeverity::kDamage,
                     .file = target_.path,
                     .first_offset = result_.log_end,
                     .next_offset = options_.recovery_point,
                     .what = "durable by the recovery point, and not there"});
    }
  }

  FileSystem& files_;
  const DumpTarget& target_;
  const PartitionCheckOptions& options_;
  Findings findings_;
  bool is_compacted_;
  EpochCheck epochs_;
  PartitionCheck result_;
  std::vector<LogFile> segments_;
  std::vector<Hole> holes_;
  bool is_tail_reported_ = false;
  AbortTracker aborts_;
  RecordViews records_;
  SharedBytes decompressed_;
};

}  // namespace

Result<PartitionCheck> check_partition(FileSystem& files, const std::string& path,
                                       const PartitionCheckOptions& options) {
  WEIR_TRY_ASSIGN(const DumpTarget target, find_dump_target(files, path));
  if (target.is_folder ? !target.is_partition() : target.files.front().kind != DumpFileKind::kLog) {
    return Error(Errc::kInvalidArgument,
                 fmt::format("{} is neither a partition folder nor a .log file; give one, or a "
                             "directory of them",
                             path));
  }
  return Check(files, target, options).run();
}

}  // namespace weir::log
