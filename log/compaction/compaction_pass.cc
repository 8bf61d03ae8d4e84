#include "log/compaction/compaction_pass.h"

#include "log/segment/segment_names.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

namespace weir::log {
namespace {

constexpr std::size_t kDecompressedBytesMax = 256U << 20U;
// What is left on the disk beside a copy, for appends and their write-ahead log.
constexpr std::uint64_t kSpareBytes = 1U << 20U;

}  // namespace

CompactionPass::CompactionPass(FileSystem& files, std::shared_ptr<Partition> partition,
                               CompactionPlan plan, RaiseHorizon raise_horizon)
    : files_(files),
      partition_(std::move(partition)),
      plan_(std::move(plan)),
      raise_horizon_(std::move(raise_horizon)),
      map_(plan_.map_bytes_max, plan_.seed),
      transactions_(std::make_unique<CleanedTransactions>(plan_.aborted)),
      map_end_(plan_.range.first_dirty) {
  const std::vector<std::shared_ptr<Segment>> all = partition_->segments();
  for (std::size_t i = 0; i + 1 < all.size(); ++i) {
    if (all[i + 1]->base_offset() <= plan_.range.end) {
      segments_.push_back(all[i]);
    }
  }
}

CompactionPass::~CompactionPass() {
  if (writer_) {
    writer_->abandon();
  }
}

const CompactionCounts& CompactionPass::counts() const {
  static const CompactionCounts kNothing;
  return cleaner_ ? cleaner_->counts() : kNothing;
}

Result<std::uint64_t> CompactionPass::step(std::uint64_t bytes) {
  Result<std::uint64_t> done = run(bytes);
  if (!done.ok()) {
    if (writer_) {
      writer_->abandon();
      writer_.reset();
    }
    is_done_ = true;
    return std::move(done).error().with_context(
        fmt::format("compact {}", partition_->options().name.to_string()));
  }
  return done;
}

Result<std::uint64_t> CompactionPass::run(std::uint64_t bytes) {
  std::uint64_t done = 0;
  while (!is_done_ && done < bytes) {
    WEIR_TRY(partition_->health());
    WEIR_TRY_ASSIGN(const std::uint64_t more, cleaner_ ? clean_one() : map_one());
    done += more;
  }
  return done;
}

// --- Reading

Error CompactionPass::damaged(const Error& error) const {
  return Error(Errc::kCorrupt,
               fmt::format("{} at position {}, offset {}: {}", segment_->path(kLogSuffix),
                           scanner_->position(), expected_.value(), error.message()));
}

Status CompactionPass::open(const std::shared_ptr<Segment>& segment) {
  if (const std::vector<Damage> known = segment->damage(); !known.empty()) {
    return Error(Errc::kCorrupt, fmt::format("{} is damaged at position {}, offset {}: {}",
                                             segment->path(kLogSuffix), known.front().position,
                                             known.front().from.value(), known.front().what));
  }
  // By its own descriptor: it is not to push out what readers use.
  WEIR_TRY_ASSIGN(file_, files_.open(segment->path(kLogSuffix), OpenMode::kRead));
  if (segment->is_retired()) {
    return Error(Errc::kNotFound,
                 fmt::format("{} was removed meanwhile", segment->path(kLogSuffix)));
  }
  segment_ = segment;
  scanner_.emplace(*file_, 0, segment->size_bytes());
  expected_ = segment->base_offset();
  return Status();
}

// The next batch of the segment; nullopt behind the last one.
Result<std::optional<BatchHeader>> CompactionPass::peek() {
  Result<std::optional<BatchHeader>> header = scanner_->peek();
  if (!header.ok()) {
    return header.error().code() == Errc::kIo ? header.error() : damaged(header.error());
  }
  if (*header &&
      ((*header)->base_offset < expected_ || (*header)->last_offset() >= segment_->next_offset())) {
    return damaged(Error(Errc::kCorrupt, fmt::format("offsets {} to {} do not fit in here",
                                                     (*header)->base_offset.value(),
                                                     (*header)->last_offset().value())));
  }
  return header;
}

Result<ByteView> CompactionPass::whole(const BatchHeader& header) {
  Result<ByteView> batch = scanner_->whole(header);
  if (!batch.ok()) {
    return batch.error().code() == Errc::kIo ? batch.error() : damaged(batch.error());
  }
  const Result<BatchHeader> verified = verify_batch(*batch);
  return verified.ok() ? batch : Result<ByteView>(damaged(verified.error()));
}

// --- The map

Result<std::uint64_t> CompactionPass::map_one() {
  if (segment_ == nullptr) {
    while (at_ < segments_.size() && segments_[at_]->next_offset() <= plan_.range.first_dirty) {
      ++at_;
    }
    if (at_ == segments_.size()) {
      WEIR_TRY(begin_cleaning());
      return std::uint64_t{1};
    }
    WEIR_TRY(open(segments_[at_]));
  }
  WEIR_TRY_ASSIGN(const std::optional<BatchHeader> header, peek());
  if (!header) {
    map_end_ = segment_->next_offset();
    segment_ = nullptr;
    ++at_;
    return std::uint64_t{1};
  }
  const std::uint64_t size = header->size_bytes();
  if (header->next_offset() <= plan_.range.first_dirty) {
    expected_ = header->next_offset();
    scanner_->skip(*header);
    return kBatchHeaderBytes;
  }
  WEIR_TRY_ASSIGN(const ByteView batch, whole(*header));
  Offset end = header->next_offset();
  if (header->is_control()) {
    WEIR_TRY_ASSIGN(const std::optional<ControlType> type, marker_type(*header, batch));
    if (type) {
      transactions_->marker_is_done(*header, *type);
    }
  } else if (!transactions_->is_aborted(*header)) {
    Result<Offset> mapped =
        add_to_map(map_, plan_.range.first_dirty, *header, batch, kDecompressedBytesMax);
    if (!mapped.ok()) {
      return damaged(mapped.error());
    }
    end = *mapped;
  }
  map_end_ = end;
  if (end < header->next_offset()) {  // full
    segment_ = nullptr;
    WEIR_TRY(begin_cleaning());
    return size;
  }
  expected_ = end;
  scanner_->skip(*header);
  return size;
}

// --- The copies

Status CompactionPass::begin_cleaning() {
  segment_ = nullptr;
  at_ = 0;
  while (!segments_.empty() && segments_.back()->base_offset() >= map_end_) {
    segments_.pop_back();
  }
  std::vector<SegmentFacts> facts;
  for (const std::shared_ptr<Segment>& segment : segments_) {
    facts.push_back({segment->base_offset(), segment->next_offset(), segment->size_bytes()});
  }
  const PartitionSettings settings = partition_->settings();
  groups_ = group_segments(
      facts, {static_cast<std::uint64_t>(std::min<std::int64_t>(settings.segment_bytes, INT32_MAX)),
              static_cast<std::uint64_t>(settings.segment_index_bytes),
              static_cast<std::uint64_t>(settings.index_interval_bytes)});
  std::reverse(groups_.begin(), groups_.end());
  BatchCleaner::Rules rules;
  rules.map_end = map_end_;
  rules.now = plan_.now;
  rules.delete_retention_ms = settings.cleanup.delete_retention_ms;
  rules.decompressed_bytes_max = kDecompressedBytesMax;
  cleaner_ = std::make_unique<BatchCleaner>(map_, plan_.producers, std::move(plan_.aborted), rules);
  return Status();
}

Status CompactionPass::begin_group() {
  const auto first = segments_.begin() + static_cast<std::ptrdiff_t>(at_);
  group_.assign(first, first + static_cast<std::ptrdiff_t>(groups_.back()));
  groups_.pop_back();
  std::uint64_t bytes = 0;
  for (const std::shared_ptr<Segment>& segment : group_) {
    bytes += segment->size_bytes();
    last_filled_ = segment->size_bytes() > 0 ? segment : last_filled_;
  }
  const std::string& folder = partition_->options().path;
  if (const Result<DiskSpace> space = files_.disk_space(folder);
      space.ok() && space->available_bytes < bytes + kSpareBytes) {
    return Error(Errc::kNoSpace,
                 fmt::format("{} bytes are free, the copy of {} needs up to {}; free space",
                             space->available_bytes, group_.front()->path(kLogSuffix), bytes));
  }
  group_is_changed_ = group_.size() > 1;
  Result<CleanedWriter> writer = CleanedWriter::create(
      files_, {folder, group_.front()->base_offset(), partition_->settings().index_interval_bytes,
               group_.front()->checksum_path()});
  WEIR_TRY(writer.status());
  writer_ = *std::move(writer);
  return Status();
}

Result<std::uint64_t> CompactionPass::clean_one() {
  if (!writer_) {
    if (groups_.empty()) {
      is_done_ = true;
      return std::uint64_t{1};
    }
    WEIR_TRY(begin_group());
  }
  if (segment_ == nullptr) {
    WEIR_TRY(open(segments_[at_]));
  }
  WEIR_TRY_ASSIGN(const std::optional<BatchHeader> header, peek());
  if (!header) {
    const bool is_last = segment_ == group_.back();
    segment_ = nullptr;
    ++at_;
    if (is_last) {
      WEIR_TRY(end_group());
    }
    return std::uint64_t{1};
  }
  WEIR_TRY_ASSIGN(const ByteView batch, whole(*header));
  // So that no hole before the next segment looks like a lost file.
  const bool keeps_end =
      segment_ == last_filled_ && scanner_->position() + batch.size() >= segment_->size_bytes();
  Result<BatchCleaner::Outcome> outcome = cleaner_->clean(*header, batch, keeps_end);
  if (!outcome.ok()) {
    return damaged(outcome.error());
  }
  std::uint64_t done = batch.size();
  if (outcome->is_unchanged) {
    WEIR_TRY(writer_->add(*header, batch));
    done += batch.size();
  } else {
    group_is_changed_ = true;
    if (outcome->bytes) {
      WEIR_TRY_ASSIGN(const BatchHeader left, read_batch_header(outcome->bytes.view(), SIZE_MAX));
      WEIR_TRY(writer_->add(left, outcome->bytes.view()));
      done += outcome->bytes.size();
    }
  }
  expected_ = header->next_offset();
  scanner_->skip(*header);
  return done;
}

Status CompactionPass::end_group() {
  const AbortedTransactions index = cleaner_->take_transaction_index();
  if (!group_is_changed_) {
    writer_->abandon();
    writer_.reset();
    return Status();
  }
  WEIR_TRY(writer_->finish(index));
  WEIR_TRY(raise_horizon_(cleaner_->tombstone_end()));
  const CleanedSegment cleaned{group_.front()->base_offset(), group_.back()->next_offset(),
                               writer_->size_bytes(), index};
  if (Status replaced = partition_->replace_segments(group_, cleaned); !replaced.ok()) {
    // What the partition did not take back is for the next start.
    if (partition_->health().ok()) {
      writer_->abandon();
    }
    writer_.reset();
    return replaced;
  }
  writer_->write_side_car();
  writer_.reset();
  return Status();
}

}  // namespace weir::log
