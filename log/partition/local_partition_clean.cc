#include "log/partition/local_partition.h"
#include "log/partition/segment_swap.h"
#include "log/segment/segment_names.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

// The part of LocalPartition in which compaction puts one segment in the place of others.

namespace weir::log {

// They stay readable for those who hold them as long as their files are open.
void LocalPartition::forget(const Segments& segments) {
  const auto is_gone = [&segments](const std::shared_ptr<Segment>& segment) {
    return segment != nullptr &&
           std::find(segments.begin(), segments.end(), segment) != segments.end();
  };
  for (const std::shared_ptr<Segment>& segment : segments) {
    segment->retire();
  }
  std::erase_if(recent_, is_gone);
  for (Hint& hint : hints_) {
    if (is_gone(hint.segment)) {
      hint = {};
    }
  }
  std::size_t at = 0;
  std::erase_if(unsynced_indexes_,
                [&](const std::shared_ptr<Segment>& segment) WEIR_NO_THREAD_SAFETY_ANALYSIS {
                  const bool gone = is_gone(segment);
                  indexes_prepared_ -= gone && at < indexes_prepared_ ? 1U : 0U;
                  at += gone ? 0U : 1U;
                  return gone;
                });
  segment_changes_ += segments.empty() ? 0U : 1U;
}

Status LocalPartition::check_replaceable(const Segments& old) const {
  const MutexLock lock(mutex_);
  const auto first =
      old.empty() ? segments_.end() : std::find(segments_.begin(), segments_.end(), old.front());
  const auto left = static_cast<std::size_t>(segments_.end() - first);
  // Behind the last of them the active one must be left.
  if (left <= old.size() || !std::equal(old.begin(), old.end(), first)) {
    return Error(Errc::kNotFound,
                 fmt::format("the segments of {} that were compacted are not its segments any more",
                             options_.name.to_string()));
  }
  return Status();
}

Status LocalPartition::replace_segments(const std::vector<std::shared_ptr<Segment>>& old,
                                        const CleanedSegment& cleaned) {
  const MutexLock names(names_mutex_);
  WEIR_TRY(check_open());
  WEIR_TRY(check_replaceable(old));
  FileSystem& files = environment_.files;
  if (Status committed = commit_swap(files, options_.path, cleaned.base); !committed.ok()) {
    drop_cleaned(files, options_.path, cleaned.base);
    const std::string swap = join_path(options_.path, segment_file_name(cleaned.base, kLogSuffix)) +
                             std::string(kSwapSuffix);
    // It would be in force after the next start, whatever became of the log until then.
    return path_exists(files, swap) ? Status(poison(committed.error())) : std::move(committed);
  }
  std::vector<Offset> replaced;
  for (const std::shared_ptr<Segment>& segment : old) {
    replaced.push_back(segment->base_offset());
    segment->retire();
    if (const std::string side_car = segment->checksum_path(); !side_car.empty()) {
      files.remove_file(side_car).ignore("a scrub finds out that it is of another segment");
    }
  }
  if (Status finished = finish_swap(files, options_.path, cleaned.base, replaced); !finished.ok()) {
    return poison(finished.error());
  }
  take_place(old, cleaned);
  return Status();
}

void LocalPartition::take_place(const Segments& old, const CleanedSegment& cleaned) {
  auto segment = std::make_shared<Segment>(environment_.files, options_.path, cleaned.base, true,
                                           environment_.resources);
  segment->keep_checksums(options_.checksum_folder);
  segment->adopt_sealed(cleaned.size_bytes, cleaned.end, settings().index_interval_bytes);
  segment->set_aborted(cleaned.aborted, cleaned.aborted.size());
  const MutexLock lock(mutex_);
  const auto first = std::find(segments_.begin(), segments_.end(), old.front());
  const auto behind = segments_.erase(first, first + static_cast<std::ptrdiff_t>(old.size()));
  segments_.insert(behind, std::move(segment));
  forget(old);
  // What was removed is not to be read from memory either.
  tail_.drop_below(cleaned.end);
  count_tail();
}

}  // namespace weir::log
