#include "runtime/lane/session_engine_impl.h"

#include <weir/runtime/logger.h>

#include <algorithm>
#include <utility>

// What the group's callbacks and the end do with partitions (session-workers 2.6, 2.14).

namespace weir::internal {

namespace {

// A blocked wait looks at the clock again at least so often.
constexpr Duration kLookAgain = std::chrono::milliseconds(10);
constexpr Duration kLastCommitMax = std::chrono::seconds(5);
// Between attempts at the last commit.
constexpr Duration kCommitAgainMin = std::chrono::milliseconds(10);
constexpr Duration kCommitAgainMax = std::chrono::milliseconds(500);
constexpr int kCommitsWithoutThreadsMax = 16;
// A deadline that can be computed.
constexpr Duration kWaitMax = std::chrono::hours(24 * 365);

// A callback of the group: what it waits for may not poll the group again.
class CallbackScope {
 public:
  explicit CallbackScope(bool& is_inside) : is_inside_(is_inside), before_(is_inside) {
    is_inside_ = true;
  }
  CallbackScope(const CallbackScope&) = delete;
  CallbackScope& operator=(const CallbackScope&) = delete;
  ~CallbackScope() { is_inside_ = before_; }

 private:
  bool& is_inside_;
  bool before_;
};

}  // namespace

std::uint32_t SessionEngineImpl::number_of(const TopicPartition& partition) {
  const auto [entry, is_new] =
      numbers_.emplace(partition, static_cast<std::uint32_t>(names_.size()));
  if (is_new) {
    names_.push_back(partition);
    paused_.push_back(false);
  }
  return entry->second;
}

std::vector<std::uint32_t> SessionEngineImpl::owned() const {
  std::vector<std::uint32_t> numbers;
  for (std::uint32_t number = 0; number < names_.size(); ++number) {
    if (dispatcher_.is_assigned(number)) {
      numbers.push_back(number);
    }
  }
  return numbers;
}

Status SessionEngineImpl::keep_first(Status status) {
  return callback_error_.ok() ? std::move(status) : std::move(callback_error_);
}

Status SessionEngineImpl::assign_source() {
  std::vector<Offset> positions(names_.size(), kNoOffset);
  for (std::uint32_t index = 0; index < assignment_.size(); ++index) {
    positions[assignment_[index]] = parts_.source->position(index);
  }
  assignment_ = owned();
  std::vector<TopicPartition> partitions;
  partitions.reserve(assignment_.size());
  for (const std::uint32_t number : assignment_) {
    partitions.push_back(names_[number]);
  }
  WEIR_TRY(parts_.source->assign(std::move(partitions)));
  for (std::uint32_t index = 0; index < assignment_.size(); ++index) {
    const std::uint32_t number = assignment_[index];
    const Offset position = positions[number] != kNoOffset
                                ? positions[number]
                                : dispatcher_.tracker(number).fetch_next();
    WEIR_TRY(parts_.source->seek(index, position));
    if (paused_[number]) {
      parts_.source->pause(index);  // a new assignment forgets it (T57)
    }
  }
  return {};
}

Status SessionEngineImpl::assign_partitions(std::span<const TopicPartition> partitions) {
  WEIR_TRY_ASSIGN(const std::vector<std::optional<CommittedOffset>> committed,
                  parts_.group->committed(partitions));
  for (std::size_t i = 0; i < partitions.size(); ++i) {
    const std::uint32_t number = number_of(partitions[i]);
    if (dispatcher_.is_assigned(number)) {
      continue;
    }
    CommittedOffset start;
    if (committed[i].has_value()) {
      start = *committed[i];
    } else {
      WEIR_TRY_ASSIGN(start.offset, parts_.start_offset(partitions[i]));
    }
    Offset log_end = kNoOffset;
    if (parts_.log_end) {
      WEIR_TRY_ASSIGN(log_end, parts_.log_end(partitions[i]));
    }
    if (parts_.on_assigned) {
      WEIR_TRY(parts_.on_assigned(number, partitions[i]));
    }
    paused_[number] = false;
    dispatcher_.assign(number, start, parts_.group->metadata().generation, log_end);
  }
  return assign_source();
}

void SessionEngineImpl::on_assigned(std::span<const TopicPartition> partitions) {
  const CallbackScope scope(is_in_callback_);
  if (is_closed_) {
    return;  // leaves at once
  }
  callback_error_ = keep_first(assign_partitions(partitions));
  send_messages();
}

void SessionEngineImpl::on_revoked(std::span<const TopicPartition> partitions) {
  const CallbackScope scope(is_in_callback_);
  std::vector<std::uint32_t> numbers;
  for (const TopicPartition& partition : partitions) {
    const std::uint32_t number = number_of(partition);
    if (dispatcher_.is_assigned(number)) {
      numbers.push_back(number);
    }
  }
  // What is not committed here is repeated: the next owner starts at the commit before.
  const Status status = hand_over(numbers, Dispatcher::Drain::kRunning,
                                  now() + std::min(options_.drain_max, kWaitMax));
  if (!status.ok()) {
    WEIR_WARN("partitions were given up without their last commit; what it held is repeated: {}",
              status.error().message());
  }
}

void SessionEngineImpl::on_lost(std::span<const TopicPartition> partitions) {
  const CallbackScope scope(is_in_callback_);
  for (const TopicPartition& partition : partitions) {
    const std::uint32_t number = number_of(partition);
    if (dispatcher_.is_assigned(number)) {
      release(number);
    }
  }
  callback_error_ = keep_first(assign_source());
  send_messages();
}

template <class IsDone>
bool SessionEngineImpl::exchange_until(MonotonicTime deadline, IsDone is_done) {
  while (true) {
    const bool has_worked = exchange();
    if (is_closed_ && !is_in_callback_) {
      callback_error_ = keep_first(parts_.group->poll());
    }
    if (is_done()) {
      return true;
    }
    if (now() >= deadline) {
      return false;
    }
    if (has_worked) {
      continue;
    }
    if (!options_.has_threads) {
      return false;  // nothing more can happen while this thread waits
    }
    const MutexLock lock(mutex_);
    if (!has_reports_) {
      condition_.wait_for(mutex_, std::min<Duration>(deadline - now(), kLookAgain));
    }
  }
}

void SessionEngineImpl::give_up_commit() {
  if (dispatcher_.has_commit_in_flight()) {
    dispatcher_.finish_commit(CommitResult::kRetry);
    commit_.clear();
  }
}

Status SessionEngineImpl::commit_last(std::span<const std::uint32_t> numbers,
                                      MonotonicTime deadline) {
  Duration pause = kCommitAgainMin;
  for (int attempts = 1;; ++attempts) {
    begin_commit(numbers);
    if (commit_.empty()) {
      return {};
    }
    if (!exchange_until(deadline, [&] { return flushes_left_ == 0; })) {
      give_up_commit();
      return Error(Errc::kTimedOut, "the flush before the last commit did not end in time");
    }
    if (commit_.empty()) {
      continue;  // a callback of the group dealt with it
    }
    WrittenCommit written = write_commit();
    // Without threads no time passes here.
    const bool is_last =
        now() >= deadline || (!options_.has_threads && attempts == kCommitsWithoutThreadsMax);
    if (written.status.ok() || !written.is_worth_repeating || is_last) {
      return std::move(written.status);
    }
    exchange_until(std::min(deadline, now() + pause), [] { return false; });
    pause = std::min(2 * pause, kCommitAgainMax);
  }
}

Status SessionEngineImpl::hand_over(std::span<const std::uint32_t> numbers, Dispatcher::Drain drain,
                                    MonotonicTime deadline) {
  // The last commit has its own part of the time, or handlers that do not end would take it all.
  const MonotonicTime drain_deadline =
      deadline - std::min<Duration>(kLastCommitMax, (deadline - now()) / 5);
  // The gate first: nothing new begins while anything is waited for.
  for (const std::uint32_t number : numbers) {
    dispatcher_.drain(number, drain);
  }
  const auto have_drained = [&] {
    return std::all_of(numbers.begin(), numbers.end(),
                       [&](std::uint32_t number) { return dispatcher_.is_drained(number); });
  };
  exchange_until(drain_deadline, [&] { return flushes_left_ == 0 && have_drained(); });
  if (!have_drained()) {
    WEIR_WARN("{} partitions are given up while handlers still run: their effects may be repeated",
              numbers.size());
  }
  // The commit that was in flight: one at a time (C4).
  Status status;
  if (!commit_.empty() && flushes_left_ == 0) {
    status = write_commit().status;
  }
  give_up_commit();
  std::vector<std::uint32_t> left;
  std::copy_if(numbers.begin(), numbers.end(), std::back_inserter(left),
               [&](std::uint32_t number) { return dispatcher_.is_assigned(number); });
  if (!left.empty()) {
    status = commit_last(left, deadline);
  }
  for (const std::uint32_t number : left) {
    if (dispatcher_.is_assigned(number)) {
      release(number);
    }
  }
  callback_error_ = keep_first(assign_source());
  send_messages();
  return flush_failure_.ok() ? status : flush_failure_;
}

Status SessionEngineImpl::close(Close mode, Duration deadline) {
  if (is_closed_) {
    return {};
  }
  is_closed_ = true;
  Status status = hand_over(
      owned(),
      mode == Close::kDrainQueued ? Dispatcher::Drain::kQueued : Dispatcher::Drain::kRunning,
      now() + std::min(deadline, kWaitMax));
  if (is_joined_) {
    Status left = parts_.group->leave();
    if (status.ok()) {
      status = std::move(left);
    }
  }
  for (const auto& worker : workers_) {
    worker->stop_thread();
  }
  return status;
}

}  // namespace weir::internal
