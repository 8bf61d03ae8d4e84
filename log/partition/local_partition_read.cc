#include "log/partition/batch_reader.h"
#include "log/partition/local_partition.h"
#include "log/segment/segment_names.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

// The half of LocalPartition that reads.

namespace weir::log {
namespace {

// Sealed segments that keep their file open and their indexes in memory.
constexpr std::size_t kOpenSegmentsMax = 4;
// How often a read looks again when the segment that it was sent to is gone.
constexpr int kLooksMax = 8;

}  // namespace

PartitionOffsets LocalPartition::offsets() const {
  const MutexLock lock(mutex_);
  return {log_start_, high_watermark_, last_stable(), log_end_, leader_epoch_};
}

std::optional<Offset> LocalPartition::epoch_end_offset(LeaderEpoch epoch) const {
  const MutexLock lock(mutex_);
  return epochs_.end_offset(epoch, log_end_);
}

Error LocalPartition::out_of_range(Offset from) const {
  return Error(Errc::kOffsetOutOfRange,
               fmt::format("offset {} of {} is outside its log, which has {} to {}", from.value(),
                           options_.name.to_string(), log_start_.value(), log_end_.value()));
}

Result<FetchResult> LocalPartition::read(Offset from, std::size_t bytes_max,
                                         FetchIsolation isolation) {
  for (int look = 1;; ++look) {
    std::uint64_t seen = 0;
    Result<FetchResult> result = read_batches_from(from, bytes_max, isolation, seen);
    if (result.ok() && isolation == FetchIsolation::kCommitted && !result->batches.empty()) {
      if (Status collected = collect_aborted(*result); !collected.ok()) {
        result = std::move(collected).error();
      } else if (has_changed(seen)) {
        continue;  // compaction may have dropped data, then what said that it was aborted
      }
    }
    if (result.ok() || look == kLooksMax || !segments_changed(result.error(), seen)) {
      return result;
    }
  }
}

bool LocalPartition::has_changed(std::uint64_t seen) const {
  const MutexLock lock(mutex_);
  return segment_changes_ != seen;
}

bool LocalPartition::segments_changed(const Error& error, std::uint64_t seen) {
  const bool may_be_gone = error.code() == Errc::kNotFound || error.code() == Errc::kCorrupt;
  if (may_be_gone && options_.read_only) {
    // The holder may have compacted or removed what was listed here.
    const MutexLock appending(append_mutex_);
    Result<Segments> segments = list_segments(offsets().high_watermark, true);
    if (!segments.ok()) {
      return false;
    }
    const MutexLock lock(mutex_);
    const Segments before = std::exchange(segments_, *std::move(segments));
    forget(before);
    return true;
  }
  return may_be_gone && has_changed(seen);
}

Result<FetchResult> LocalPartition::read_batches_from(Offset from, std::size_t bytes_max,
                                                      FetchIsolation isolation,
                                                      std::uint64_t& seen) {
  FetchResult result;
  Offset limit;
  std::optional<Place> place;
  {
    const MutexLock lock(mutex_);
    seen = segment_changes_;
    if (from < log_start_ || from > log_end_) {
      return out_of_range(from);
    }
    // Read once: what the answer says and what it holds are of the same moment (KAFKA-9807).
    result.next_offset = from;
    result.log_start = log_start_;
    result.high_watermark = high_watermark_;
    result.last_stable_offset = last_stable();
    result.leader_epoch = leader_epoch_;
    limit = isolation == FetchIsolation::kLogEnd      ? log_end_
            : isolation == FetchIsolation::kCommitted ? result.last_stable_offset
                                                      : high_watermark_;
    if (from >= limit) {
      return result;
    }
    if (tail_.collect(from, limit, bytes_max, result.batches)) {
      if (!result.batches.empty()) {
        result.next_offset = result.batches.back().header.next_offset();
      }
      return result;
    }
    place = place_of(from);
  }
  if (!place) {
    return Error(Errc::kCorrupt, fmt::format("{} has no file for offset {}",
                                             options_.name.to_string(), from.value()));
  }
  return read_files(std::move(result), *std::move(place), limit, bytes_max);
}

std::optional<LocalPartition::Place> LocalPartition::place_of(Offset offset) const {
  const auto above = std::upper_bound(
      segments_.begin(), segments_.end(), offset,
      [](Offset value, const auto& segment) { return value < segment->base_offset(); });
  if (segments_.empty()) {
    return std::nullopt;
  }
  Place place;
  if (above == segments_.begin()) {
    place.segment = *above;
    place.offset_end = segments_.size() > 1 ? segments_[1]->base_offset() : kOffsetMax;
    return place;
  }
  place.segment = *std::prev(above);
  place.offset_end = above == segments_.end() ? kOffsetMax : (*above)->base_offset();
  for (const Hint& hint : hints_) {
    if (hint.segment == place.segment && hint.next == offset) {
      place.position = hint.position;
    }
  }
  return place;
}

std::optional<LocalPartition::Place> LocalPartition::place_behind(const Segment& segment) const {
  const MutexLock lock(mutex_);
  const auto next = std::upper_bound(
      segments_.begin(), segments_.end(), segment.base_offset(),
      [](Offset value, const auto& other) { return value < other->base_offset(); });
  if (next == segments_.end()) {
    return std::nullopt;
  }
  return place_of((*next)->base_offset());
}

Result<FetchResult> LocalPartition::read_files(FetchResult result, Place place, Offset limit,
                                               std::size_t bytes_max) {
  const Offset from = result.next_offset;
  while (true) {
    if (!place.position || place.segment->readable_end(*place.position) == *place.position) {
      WEIR_TRY_ASSIGN(place.position, place.segment->locate(from));
    }
    const std::uint64_t end = place.segment->readable_end(place.position.value_or(0));
    if (place.position && *place.position < end) {
      WEIR_TRY_ASSIGN(const std::shared_ptr<File> file, place.segment->file());
      const ReadRange range{*place.position, end, from, limit, place.offset_end, bytes_max};
      Result<ReadBatches> attempt = read_batches(*file, range);
      if (!attempt.ok()) {
        // The look-up knows where reading can go on behind the damage.
        WEIR_TRY(place.segment->locate(from).status());
        return std::move(attempt).error();
      }
      ReadBatches read = *std::move(attempt);
      touch(place.segment);
      if (!read.batches.empty()) {
        result.batches = std::move(read.batches);
        result.next_offset = result.batches.back().header.next_offset();
        remember(place.segment, result.next_offset, read.end_position);
        return result;
      }
    }
    std::optional<Place> next = place_behind(*place.segment);
    if (!next || next->segment->base_offset() >= limit) {
      return Error(Errc::kCorrupt,
                   fmt::format("offsets {} to {} of {} are missing behind {}", from.value(),
                               limit.value() - 1, options_.name.to_string(),
                               place.segment->path(kLogSuffix)));
    }
    place = *std::move(next);
  }
}

void LocalPartition::remember(const std::shared_ptr<Segment>& segment, Offset next,
                              std::uint64_t position) {
  const MutexLock lock(mutex_);
  if (!closed_ && !segment->is_retired()) {
    hints_[next_hint_++ % hints_.size()] = Hint{next, position, segment};
  }
}

// Keeps the most recently used sealed segments ready and closes the others.
void LocalPartition::touch(const std::shared_ptr<Segment>& segment) {
  if (!segment->sealed() || segment->is_retired()) {
    return;
  }
  std::shared_ptr<Segment> oldest;
  {
    const MutexLock lock(mutex_);
    if (!recent_.empty() && recent_.back() == segment) {
      return;
    }
    std::erase(recent_, segment);
    recent_.push_back(segment);
    if (recent_.size() > kOpenSegmentsMax) {
      oldest = recent_.front();
      recent_.erase(recent_.begin());
    }
  }
  if (oldest != nullptr) {
    oldest->release();
  }
}

Result<std::optional<Offset>> LocalPartition::offset_for_time(Timestamp time) {
  for (int look = 1;; ++look) {
    std::uint64_t seen = 0;
    Result<std::optional<Offset>> result = find_time(time, seen);
    if (result.ok() || look == kLooksMax || !segments_changed(result.error(), seen)) {
      return result;
    }
  }
}

Result<std::optional<Offset>> LocalPartition::find_time(Timestamp time, std::uint64_t& seen) {
  Segments segments;
  Offset from;
  Offset limit;
  {
    const MutexLock lock(mutex_);
    seen = segment_changes_;
    segments = segments_;
    from = log_start_;
    limit = high_watermark_;
  }
  for (const std::shared_ptr<Segment>& segment : segments) {
    if (segment->base_offset() >= limit || segment->next_offset() <= from ||
        segment->size_bytes() == 0) {
      continue;
    }
    WEIR_TRY_ASSIGN(const Timestamp largest, segment->largest_timestamp());
    touch(segment);
    if (largest < time) {
      continue;
    }
    WEIR_TRY_ASSIGN(const std::optional<Offset> found, segment->find_time(time, from, limit));
    if (found) {
      return found;
    }
  }
  return std::optional<Offset>();
}

// --- Read-only logs

Status LocalPartition::refresh(Offset log_start, Offset high_watermark,
                               std::optional<Offset> last_stable) {
  WEIR_ASSERT(options_.read_only);
  {
    const MutexLock appending(append_mutex_);
    {
      const MutexLock lock(mutex_);
      const bool same = log_start_ == log_start && high_watermark_ == high_watermark;
      if (closed_ || (same && (!last_stable || *last_stable == told_last_stable_))) {
        return Status();
      }
    }
    WEIR_TRY_ASSIGN(Segments segments, list_segments(high_watermark, false));
    Offset stable = last_stable.value_or(high_watermark);
    if (!last_stable) {
      WEIR_TRY(find_last_stable(high_watermark, segments, &stable));
    } else {
      for (const std::shared_ptr<Segment>& segment : segments) {
        segment->forget_aborted();
      }
    }
    LeaderEpochCache epochs;
    const std::string path = join_path(options_.path, LeaderEpochCache::kFileName);
    if (const Result<std::string> text = read_file(environment_.files, path); text.ok()) {
      if (Result<LeaderEpochCache> parsed = LeaderEpochCache::parse(*text); parsed.ok()) {
        epochs = *std::move(parsed);
      }
    }
    const MutexLock lock(mutex_);
    segments_ = std::move(segments);
    log_start_ = log_start;
    high_watermark_ = high_watermark;
    told_last_stable_ = stable;
    newest_abort_ = high_watermark;  // unknown: the files are asked
    log_end_ = high_watermark;
    if (!epochs.empty()) {
      epochs_ = std::move(epochs);
      leader_epoch_ = std::max(leader_epoch_, epochs_.latest());
    }
  }
  notify_waiters();
  return Status();
}

Result<LocalPartition::Segments> LocalPartition::list_segments(Offset high_watermark, bool anew) {
  Segments known;
  if (!anew) {
    const MutexLock lock(mutex_);
    known = segments_;
  }
  Segments segments;
  Result<std::vector<DirectoryEntry>> entries = environment_.files.list(options_.path);
  if (!entries.ok()) {
    return entries.error().code() == Errc::kNotFound ? Result<Segments>(Segments())
                                                     : Result<Segments>(entries.error());
  }
  std::vector<Offset> bases;
  for (const DirectoryEntry& entry : *entries) {
    if (const std::optional<Offset> base = parse_log_file_name(entry.name)) {
      bases.push_back(*base);
    }
  }
  for (std::size_t i = 0; i < bases.size(); ++i) {
    const bool last = i + 1 == bases.size();
    const Offset end = last ? kOffsetMax : bases[i + 1];
    const auto found = std::find_if(known.begin(), known.end(), [&](const auto& segment) {
      return segment->base_offset() == bases[i];
    });
    const bool is_new = found == known.end();
    std::shared_ptr<Segment> segment =
        is_new ? std::make_shared<Segment>(environment_.files, options_.path, bases[i], false,
                                           environment_.resources)
               : *found;
    if (is_new && !last) {
      WEIR_TRY_ASSIGN(const FileInfo info, environment_.files.info(segment->path(kLogSuffix)));
      segment->adopt_sealed(info.size, end, options_.settings.index_interval_bytes);
    } else if (!segment->sealed()) {
      WEIR_TRY(segment->extend(last ? high_watermark : end, end));
      if (!last) {
        segment->seal(end);
      }
    }
    segments.push_back(std::move(segment));
  }
  return segments;
}

}  // namespace weir::log
