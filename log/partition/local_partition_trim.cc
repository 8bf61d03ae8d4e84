#include "log/partition/local_partition.h"
#include "log/segment/segment_names.h"

#include <fmt/format.h>

// The half of LocalPartition that gives up the beginning of the log.

namespace weir::log {

Status LocalPartition::advance_log_start(Offset before) {
  {
    const MutexLock appending(append_mutex_);
    WEIR_TRY(check_open());
    {
      const MutexLock lock(mutex_);
      if (before > high_watermark_ || before < Offset(0)) {
        return Error(
            Errc::kOffsetOutOfRange,
            fmt::format("records of {} below {} cannot be deleted: give 0 to its high "
                        "watermark {}, or -1 for that",
                        options_.name.to_string(), before.value(), high_watermark_.value()));
      }
      if (before <= log_start_) {
        return Status();
      }
      log_start_ = before;
      epochs_.truncate_from_start(before);
      publish_watermark();
    }
    epochs_dirty_ = true;
    unclean_ = true;
  }
  notify_waiters();
  return Status();
}

Status LocalPartition::remove_old_segments() {
  const MutexLock names(names_mutex_);
  const MutexLock appending(append_mutex_);
  WEIR_TRY(check_open());
  Segments doomed;
  {
    const MutexLock lock(mutex_);
    while (segments_.size() > 1 && segments_[1]->base_offset() <= log_start_) {
      doomed.push_back(segments_.front());
      segments_.erase(segments_.begin());
    }
    forget(doomed);
    tail_.drop_below(log_start_);
    count_tail();
  }
  if (doomed.empty()) {
    return Status();
  }
  // Oldest first and its indexes before the log, so that a crash in between leaves a log without
  // holes.
  for (const std::shared_ptr<Segment>& segment : doomed) {
    for (const std::string_view suffix : {kOffsetIndexSuffix, kTimeIndexSuffix,
                                          kTransactionIndexSuffix, kSnapshotSuffix, kLogSuffix}) {
      Status removed = environment_.files.remove_file(segment->path(suffix));
      if (!removed.ok() && removed.error().code() != Errc::kNotFound) {
        return std::move(removed).error().with_context(
            fmt::format("remove old segments of {}", options_.name.to_string()));
      }
    }
    if (const std::string side_car = segment->checksum_path(); !side_car.empty()) {
      environment_.files.remove_file(side_car).ignore("of no use, and no harm");
    }
  }
  return environment_.files.sync_directory(options_.path);
}

Status LocalPartition::roll_active() {
  const MutexLock appending(append_mutex_);
  WEIR_TRY(check_open());
  if (active_ == nullptr || active_->size_bytes() == 0) {
    return Status();
  }
  unclean_ = true;
  return roll(settings());
}

}  // namespace weir::log
