#include "log/record/batch_decoder.h"
#include "log/segment/batch_scanner.h"
#include "log/segment/segment.h"
#include "log/segment/segment_names.h"

#include <weir/runtime/logger.h>

#include <fmt/format.h>

#include <algorithm>

// The half of Segment that finds batches by offset and by time, and that loads, checks and rebuilds
// indexes.

namespace weir::log {
namespace {

constexpr std::size_t kIndexFileBytesMax = 256U << 20U;

// First record of `batch` at or after `time` in [from, limit).
Result<std::optional<Offset>> find_in_batch(const BatchHeader& header, ByteView bytes,
                                            Timestamp time, Offset from, Offset limit) {
  WEIR_TRY(verify_batch(bytes));
  RecordViews records;
  SharedBytes decompressed;
  WEIR_TRY(decode_records(header, bytes, DecodeLimits{}, records, decompressed));
  for (const RecordView& record : records) {
    if (record.timestamp >= time && record.offset >= from && record.offset < limit) {
      return std::optional(record.offset);
    }
  }
  return std::optional<Offset>();
}

}  // namespace

Result<Segment::View> Segment::view() {
  View view;
  WEIR_TRY_ASSIGN(view.file, file());
  const MutexLock lock(mutex_);
  view.size_bytes = size_bytes_;
  view.end_offset = segment_offset_end(base_, sealed_ ? next_offset_ : kOffsetMax);
  view.sealed = sealed_;
  view.damage = damage_;
  return view;
}

Error Segment::damaged(std::uint64_t position, Offset from, std::optional<Offset> readable,
                       std::string_view what) const {
  const std::string next = readable
                               ? fmt::format("reading can go on at offset {}", readable->value())
                               : std::string("nothing behind it in this file is readable");
  return Error(Errc::kCorrupt, fmt::format("{} is damaged at position {}, offset {}: {}; {}",
                                           path(kLogSuffix), position, from.value(), what, next));
}

// --- Indexes

Status Segment::load_indexes() {
  {
    const MutexLock lock(mutex_);
    if (indexes_ != nullptr) {
      return Status();
    }
  }
  WEIR_TRY_ASSIGN(const View now, view());
  Result<SegmentIndexes> indexes = read_index_files(now.size_bytes);
  if (is_retired()) {
    return replaced();  // the index files may be another's
  }
  Status usable = indexes.status();
  if (usable.ok()) {
    const Result<ScanResult> scan = resume_scan(*now.file, whole_range(now), *indexes);
    usable = scan.status();
    if (usable.ok() && !scan->stop_reason.empty()) {
      usable = Error(Errc::kCorrupt, scan->stop_reason);
    }
  }
  if (!usable.ok()) {
    const Errc code = usable.error().code();
    if (code != Errc::kCorrupt && code != Errc::kNotFound) {
      return usable;
    }
    return rebuild_indexes(usable.error().message());
  }
  const MutexLock lock(mutex_);
  largest_timestamp_ = indexes->largest_timestamp();
  indexes_ = std::make_unique<SegmentIndexes>(*std::move(indexes));
  return Status();
}

Result<SegmentIndexes> Segment::read_index_files(std::uint64_t log_bytes) {
  WEIR_TRY_ASSIGN(const std::string offsets,
                  read_file(files_, path(kOffsetIndexSuffix), kIndexFileBytesMax));
  WEIR_TRY_ASSIGN(const std::string times,
                  read_file(files_, path(kTimeIndexSuffix), kIndexFileBytesMax));
  WEIR_TRY_ASSIGN(OffsetIndex offset_index, OffsetIndex::parse(base_, offsets, log_bytes));
  WEIR_TRY_ASSIGN(TimeIndex time_index, TimeIndex::parse(base_, times));
  return SegmentIndexes(std::move(offset_index), std::move(time_index));
}

ScanRange Segment::whole_range(const View& view) const {
  ScanRange range;
  range.end = view.size_bytes;
  range.expected = base_;
  range.offset_end = view.end_offset;
  range.durable_to = kOffsetMax;
  range.known_damage = view.damage;
  const MutexLock lock(mutex_);
  range.index_interval_bytes = index_interval_bytes_;
  return range;
}

Status Segment::rebuild_indexes(std::string_view reason) {
  WEIR_TRY_ASSIGN(const View now, view());
  SegmentIndexes indexes(base_);
  WEIR_TRY(scan_segment(*now.file, whole_range(now), indexes));
  indexes.finish();
  const std::string offsets = indexes.offsets().encode();
  const std::string times = indexes.times().encode();
  WEIR_WARN("index rebuilt from the log file={} reason={}", path(kLogSuffix), reason);
  {
    const MutexLock lock(mutex_);
    ++indexes_rebuilt_;
    largest_timestamp_ = indexes.largest_timestamp();
    indexes_ = std::make_unique<SegmentIndexes>(std::move(indexes));
  }
  if (writable_ && !is_retired()) {
    // Durably: below a recovery point nobody would look at it again.
    if (Status written = write_index_files(offsets, times, true); !written.ok()) {
      WEIR_WARN("index kept in memory only file={} error={}", path(kLogSuffix),
                written.error().message());
    }
  }
  return Status();
}

Result<SegmentIndexes> Segment::indexes_copy() {
  WEIR_TRY(load_indexes());
  const MutexLock lock(mutex_);
  return indexes_ != nullptr ? SegmentIndexes(*indexes_) : SegmentIndexes(base_);
}

Result<std::optional<OffsetIndex::Entry>> Segment::index_entry(Offset target) {
  WEIR_TRY_ASSIGN(const SegmentIndexes indexes, indexes_copy());
  return indexes.offsets().lookup(target);
}

// --- Offsets

Result<bool> Segment::breaks_order(const View& view, const BatchHeader& header,
                                   std::uint64_t position, Offset expected) const {
  if (header.base_offset < expected || header.last_offset() >= view.end_offset) {
    return true;
  }
  if (header.base_offset == expected) {
    return false;
  }
  return jumps_ahead(*view.file, header, position, view.size_bytes, expected);
}

// Walks from `entry` (or the start) to the batch that ends at or behind `target`. Damage before the
// target is stepped over.
Result<Segment::Located> Segment::walk_to(const View& view, std::optional<OffsetIndex::Entry> entry,
                                          Offset target) {
  BatchScanner scanner(*view.file, entry ? entry->position : 0, view.size_bytes);
  Offset expected = base_;
  if (entry) {
    Result<std::optional<BatchHeader>> named = scanner.peek();
    if (!named.ok() && named.error().code() != Errc::kCorrupt) {
      return std::move(named).error();
    }
    if (!named.ok() || !*named || (*named)->last_offset() != entry->last_offset) {
      return Located{std::nullopt, {}, true};
    }
    expected = (*named)->base_offset;
  }
  while (true) {
    if (const Damage* const known = view.damage_at(scanner.position())) {
      if (target < known->to) {
        return damaged(known->position, known->from, known->to, known->what);
      }
      expected = known->to;
      scanner.seek(known->end_position);
      continue;
    }
    Result<std::optional<BatchHeader>> header = scanner.peek();
    if (!header.ok() && header.error().code() != Errc::kCorrupt) {
      return std::move(header).error();
    }
    bool broken = !header.ok();
    if (header.ok() && *header) {
      WEIR_TRY_ASSIGN(broken, breaks_order(view, **header, scanner.position(), expected));
    }
    if (broken) {
      WEIR_TRY_ASSIGN(const bool learned, learn_damage());
      if (learned) {
        return Located{.look_again = true};
      }
      WEIR_TRY_ASSIGN(const std::optional<std::uint64_t> next,
                      scanner.find_next(scanner.position() + 1, expected, view.end_offset));
      const std::uint64_t bad = scanner.position();
      const std::string what = header.ok() ? "offsets out of order" : header.error().message();
      if (!next) {
        return damaged(bad, expected, std::nullopt, what);
      }
      scanner.seek(*next);
      WEIR_TRY_ASSIGN(const std::optional<BatchHeader> whole, scanner.peek());
      WEIR_ASSERT(whole.has_value());
      if (target < whole->base_offset) {
        return damaged(bad, expected, whole->base_offset, what);
      }
      continue;
    }
    if (!*header) {
      return Located{};
    }
    if ((*header)->last_offset() >= target) {
      return Located{scanner.position(), **header, false};
    }
    expected = (*header)->next_offset();
    scanner.skip(**header);
  }
}

// The index entry that a walk to `target` starts at; none: at the start of the file.
std::optional<OffsetIndex::Entry> Segment::entry_below(const View& view, Offset target) const {
  const MutexLock lock(mutex_);
  if (indexes_ == nullptr) {  // released meanwhile
    return std::nullopt;
  }
  std::optional<OffsetIndex::Entry> entry = indexes_->offsets().lookup(target);
  while (entry) {
    const Damage* const damage = view.damage_at(entry->position);
    if (damage == nullptr) {
      break;
    }
    entry = damage->position == 0 || damage->from <= base_
                ? std::nullopt
                : indexes_->offsets().lookup(Offset(damage->from.value() - 1));
    if (entry && entry->position >= damage->position) {
      return std::nullopt;
    }
  }
  return entry;
}

Result<Segment::Located> Segment::locate_batch(Offset target) {
  for (int attempt = 0; attempt < 2; ++attempt) {
    WEIR_TRY(load_indexes());
    WEIR_TRY_ASSIGN(const View now, view());
    const std::optional<OffsetIndex::Entry> entry = entry_below(now, target);
    WEIR_TRY_ASSIGN(Located located, walk_to(now, entry, target));
    if (located.look_again) {
      return locate_batch(target);  // once: damage is learned once
    }
    if (!located.index_lies) {
      return located;
    }
    WEIR_TRY_ASSIGN(const bool learned, learn_damage());
    if (learned) {
      return locate_batch(target);
    }
    if (!now.sealed || attempt > 0) {
      return damaged(entry->position, entry->last_offset, std::nullopt,
                     "the batch that was indexed here is gone");
    }
    WEIR_TRY(rebuild_indexes(fmt::format("no batch ends with offset {} at position {}",
                                         entry->last_offset.value(), entry->position)));
  }
  return Error(Errc::kInternal, "unreachable: the second attempt returns");
}

Result<std::optional<std::uint64_t>> Segment::locate(Offset target) {
  if (target <= base_ && readable_end(0) > 0) {
    const std::uint64_t size = size_bytes();
    return size == 0 ? std::optional<std::uint64_t>() : std::optional<std::uint64_t>(0);
  }
  WEIR_TRY_ASSIGN(const Located located, locate_batch(target));
  return located.position;
}

// --- Time

Result<Timestamp> Segment::largest_timestamp() {
  {
    const MutexLock lock(mutex_);
    if (indexes_ != nullptr) {
      return indexes_->largest_timestamp();
    }
    if (largest_timestamp_) {
      return *largest_timestamp_;
    }
  }
  WEIR_TRY(load_indexes());
  const MutexLock lock(mutex_);
  return largest_timestamp_.value_or(kNoTimestamp);
}

Result<Timestamp> Segment::first_timestamp() {
  WEIR_TRY_ASSIGN(const View now, view());
  WEIR_TRY_ASSIGN(const std::optional<BatchHeader> first,
                  BatchScanner(*now.file, 0, now.size_bytes).peek());
  return first ? first->max_timestamp : kNoTimestamp;
}

// Position from which a search for `time` must scan.
Result<std::uint64_t> Segment::time_start(Timestamp time) {
  for (int attempt = 0; attempt < 2; ++attempt) {
    WEIR_TRY(load_indexes());
    std::optional<TimeIndex::Entry> entry;
    bool sealed = false;
    {
      const MutexLock lock(mutex_);
      sealed = sealed_;
      if (indexes_ != nullptr) {
        entry = indexes_->times().lookup(time);
      }
    }
    if (!entry) {
      return std::uint64_t{0};
    }
    WEIR_TRY_ASSIGN(const Located at, locate_batch(entry->offset));
    if (at.position && at.header.last_offset() == entry->offset &&
        at.header.max_timestamp == entry->timestamp) {
      return *at.position;
    }
    if (!sealed) {
      break;
    }
    WEIR_TRY(rebuild_indexes(fmt::format("no batch ends with offset {} and time {}",
                                         entry->offset.value(), entry->timestamp)));
  }
  return std::uint64_t{0};
}

Result<std::optional<Offset>> Segment::find_time(Timestamp time, Offset from, Offset limit) {
  WEIR_TRY_ASSIGN(const std::uint64_t start, time_start(time));
  WEIR_TRY_ASSIGN(const View now, view());
  BatchScanner scanner(*now.file, start, now.size_bytes);
  Offset expected = base_;
  while (true) {
    if (const Damage* const known = now.damage_at(scanner.position())) {
      expected = known->to;
      scanner.seek(known->end_position);
      continue;
    }
    Result<std::optional<BatchHeader>> header = scanner.peek();
    if (!header.ok()) {
      if (header.error().code() != Errc::kCorrupt) {
        return std::move(header).error();
      }
      return damaged(scanner.position(), expected, std::nullopt, header.error().message());
    }
    if (!*header || (*header)->base_offset >= limit) {
      return std::optional<Offset>();
    }
    if ((*header)->max_timestamp >= time && (*header)->last_offset() >= from) {
      WEIR_TRY_ASSIGN(const ByteView bytes, scanner.whole(**header));
      Result<std::optional<Offset>> found = find_in_batch(**header, bytes, time, from, limit);
      if (!found.ok()) {
        return damaged(scanner.position(), (*header)->base_offset, (*header)->next_offset(),
                       found.error().message());
      }
      if (*found) {
        return found;
      }
    }
    expected = (*header)->next_offset();
    scanner.skip(**header);
  }
}

// --- Read-only logs

Status Segment::extend(Offset limit, Offset end_offset) {
  WEIR_ASSERT(!writable_);
  WEIR_TRY_ASSIGN(const std::shared_ptr<File> file, this->file());
  ScanRange range;
  SegmentIndexes indexes(base_);
  {
    const MutexLock lock(mutex_);
    if (sealed_ || next_offset_ >= limit) {
      return Status();
    }
    range.begin = size_bytes_;
    range.expected = std::max(next_offset_, base_);
    range.index_interval_bytes = index_interval_bytes_;
    if (indexes_ != nullptr) {
      indexes = *indexes_;
    }
  }
  WEIR_TRY_ASSIGN(range.end, file->size());
  range.offset_end = segment_offset_end(base_, end_offset);
  range.durable_to = limit;
  range.stop_at = limit;
  if (range.end <= range.begin) {
    return Status();
  }
  WEIR_TRY_ASSIGN(const ScanResult scan, scan_segment(*file, range, indexes));
  const MutexLock lock(mutex_);
  size_bytes_ = scan.valid_bytes;
  next_offset_ = scan.next_offset;
  indexes_ = std::make_unique<SegmentIndexes>(std::move(indexes));
  return Status();
}

}  // namespace weir::log
