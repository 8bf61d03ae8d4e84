#include "runtime/lane/session_engine_impl.h"

#include <weir/runtime/logger.h>
#include <weir/runtime/session_settings.h>

#include <fmt/core.h>

#include <algorithm>
#include <exception>
#include <utility>

namespace weir::internal {

namespace {

DispatchOptions dispatch_options(const SessionOptions& options) {
  return {.workers = options.workers,
          .mode = options.dispatch == SessionDispatch::kSpread ? DispatchMode::kSpread
                                                               : DispatchMode::kLocal,
          .has_unordered_null_sessions = options.has_unordered_null_sessions,
          .window_max = options.window_records_max,
          .bytes_max = options.buffer_bytes_max,
          .writes_lane_map = options.writes_lane_map,
          .extractor = options.extractor_id,
          .commit_interval = options.commit_interval,
          .commit_records = options.commit_records_max,
          .gap_timeout = options.gap_timeout,
          .has_gap_guard = options.has_gap_guard};
}

LaneOptions lane_options(const SessionOptions& options) {
  LaneOptions lanes;
  lanes.retry = options.retry;
  lanes.lane_records_max = options.lane_records_max;
  lanes.backoff_records_max = options.backoff_records_max;
  lanes.stash_records_high = options.stash_records_high;
  lanes.stash_records_low = options.stash_records_low;
  lanes.running_max = options.running_max;
  lanes.lanes_max = options.lanes_max;
  lanes.quarantined_max = options.quarantine_sessions_max;
  lanes.lane_idle = options.lane_idle;
  lanes.handler_timeout = options.handler_timeout;
  return lanes;
}

}  // namespace

SessionEngineImpl::SessionEngineImpl(const SessionOptions& options, Parts parts)
    : options_(options), parts_(std::move(parts)), dispatcher_(dispatch_options(options)) {
  for (std::uint32_t worker = 0; worker < options.workers; ++worker) {
    workers_.push_back(std::make_unique<LaneRunner>(lane_options(options), options.seed + worker,
                                                    *parts_.clock, parts_.make_worker(worker),
                                                    [this] { notify(); }));
    if (options.has_threads) {
      workers_.back()->start_thread();
    }
  }
}

SessionEngineImpl::~SessionEngineImpl() {
  if (is_joined_ && !is_closed_) {
    // No callback may come after this.
    parts_.group->leave().ignore("the group finds out by itself");
  }
  for (const auto& worker : workers_) {
    worker->stop_thread();
  }
}

Status SessionEngineImpl::join(std::vector<std::string> topics) {
  WEIR_TRY(parts_.group->join(std::move(topics), {}, *this));
  is_joined_ = true;
  return {};
}

void SessionEngineImpl::notify() {
  {
    const MutexLock lock(mutex_);
    has_reports_ = true;
  }
  condition_.notify_one();
  if (wants_wakeup_.load(std::memory_order_acquire)) {
    parts_.source->wakeup();
  }
}

void SessionEngineImpl::wake() {
  for (const auto& worker : workers_) {
    worker->wake();
  }
  notify();
  parts_.source->wakeup();
}

void SessionEngineImpl::finish(std::uint32_t worker, RunId run, Outcome outcome) {
  if (worker < workers_.size()) {
    workers_[worker]->finish_later(run, std::move(outcome));
  }
}

void SessionEngineImpl::answer_letter(std::uint32_t worker, RunId letter, bool ok) {
  if (worker < workers_.size()) {
    workers_[worker]->answer_later(letter, ok);
  }
}

void SessionEngineImpl::send_messages() {
  for (std::uint32_t worker = 0; worker < workers_.size(); ++worker) {
    workers_[worker]->send(dispatcher_.messages(worker));
  }
}

bool SessionEngineImpl::exchange() {
  {
    const MutexLock lock(mutex_);
    has_reports_ = false;
  }
  bool has_worked = false;
  send_messages();
  for (std::uint32_t worker = 0; worker < workers_.size(); ++worker) {
    if (!options_.has_threads) {
      has_worked = workers_[worker]->run_round() || has_worked;
    }
    workers_[worker]->take(outbox_);
    has_worked = has_worked || !outbox_.empty();
    for (ShardReport& report : outbox_.reports) {
      dispatcher_.take(worker, report, now());
    }
    for (std::vector<Delivery>& records : outbox_.spare) {
      dispatcher_.recycle(std::move(records));
    }
    flushes_left_ -= outbox_.flushes;
    if (!outbox_.flush_error.ok() && flush_failure_.ok()) {
      ++commit_failures_;
      flush_failure_ = std::move(outbox_.flush_error);
    }
  }
  send_messages();
  return has_worked;
}

void SessionEngineImpl::apply_pauses() {
  paused_.resize(names_.size(), false);
  for (const PauseChange& change : dispatcher_.pauses()) {
    paused_[change.partition] = change.is_paused;
    const auto at = std::find(assignment_.begin(), assignment_.end(), change.partition);
    if (at == assignment_.end()) {
      continue;
    }
    const auto index = static_cast<std::uint32_t>(at - assignment_.begin());
    if (change.is_paused) {
      parts_.source->pause(index);
    } else {
      parts_.source->resume(index);
    }
  }
  // A report is worth a wake-up when the poll cannot find anything by itself.
  wants_wakeup_.store(
      std::find(paused_.begin(), paused_.end(), true) != paused_.end() || !commit_.empty(),
      std::memory_order_release);
}

void SessionEngineImpl::begin_commit(std::span<const std::uint32_t> only) {
  if (!flush_failure_.ok()) {
    return;
  }
  commit_ = dispatcher_.begin_commit(now(), only);
  if (commit_.empty()) {
    return;
  }
  // Answers to flushes of a commit that was given up still come.
  flushes_left_ += static_cast<std::uint32_t>(workers_.size());
  for (const auto& worker : workers_) {
    worker->request_flush();
  }
}

CommitResult SessionEngineImpl::commit_result(const Status& status) const {
  if (status.ok()) {
    return CommitResult::kOk;
  }
  switch (status.error().code()) {
    case Errc::kFenced:
      return CommitResult::kFenced;
    case Errc::kInvalidArgument:
      return CommitResult::kMetadataTooLarge;
    default:
      return CommitResult::kRetry;
  }
}

Status SessionEngineImpl::continue_commit() {
  if (commit_.empty() || flushes_left_ > 0) {
    return {};
  }
  WrittenCommit written = write_commit();
  // What passes is tried again; a fenced member gets its partitions anew.
  const bool is_for_the_caller =
      !written.is_worth_repeating &&
      (written.status.ok() || written.status.error().code() != Errc::kFenced);
  return is_for_the_caller ? std::move(written.status) : Status();
}

SessionEngineImpl::WrittenCommit SessionEngineImpl::write_commit() {
  const std::vector<PartitionCommit> commits = std::exchange(commit_, {});
  if (!flush_failure_.ok()) {
    dispatcher_.finish_commit(CommitResult::kRetry);
    return {flush_failure_, false};
  }
  std::vector<PartitionOffset> offsets;
  for (const PartitionCommit& commit : commits) {
    // Given up since the snapshot: its next owner commits for it.
    if (dispatcher_.is_assigned(commit.partition) &&
        dispatcher_.epoch(commit.partition) == commit.epoch) {
      offsets.emplace_back(names_[commit.partition], commit.offset);
    }
  }
  Status status = offsets.empty() ? Status() : parts_.group->commit(offsets);
  const CommitResult result = commit_result(status);
  dispatcher_.finish_commit(result);
  ++(status.ok() ? commits_ : commit_failures_);
  bool is_worth_repeating = false;
  switch (result) {
    case CommitResult::kOk:
      break;
    case CommitResult::kMetadataTooLarge:
      is_worth_repeating =
          std::any_of(commits.begin(), commits.end(),
                      [](const PartitionCommit& commit) { return commit.may_have_map; });
      if (is_worth_repeating) {
        WEIR_WARN("a commit without its lane map follows: {}", status.error().message());
      }
      break;
    case CommitResult::kFenced:
      lose_all();
      break;
    case CommitResult::kRetry:
      // A rebalance or a full disk passes.
      is_worth_repeating = is_retriable(status.error().code());
      break;
  }
  return {std::move(status), is_worth_repeating};
}

void SessionEngineImpl::release(std::uint32_t number) {
  dispatcher_.release(number);
  if (parts_.on_released) {
    parts_.on_released(number);
  }
}

void SessionEngineImpl::lose_all() {
  for (const std::uint32_t number : owned()) {
    release(number);
  }
  callback_error_ = keep_first(assign_source());
  send_messages();
}

void SessionEngineImpl::report_gaps() {
  for (const SkippedGap& gap : dispatcher_.gaps()) {
    const StuckRecord record{names_[gap.partition], gap.offset, gap.age};
    WEIR_ERROR("offset {} of {} was skipped after {} ms: a dead letter has it (gap.timeout.ms)",
               gap.offset.value(), record.partition.to_string(),
               std::chrono::duration_cast<std::chrono::milliseconds>(gap.age).count());
    if (parts_.on_gap_skipped) {
      parts_.on_gap_skipped(record);
    }
  }
}

Status SessionEngineImpl::poll_records(Duration timeout) {
  WEIR_TRY_ASSIGN(std::vector<RecordBlock> blocks, parts_.source->poll(timeout));
  const MonotonicTime time = now();
  for (RecordBlock& block : blocks) {
    Status taken = take_block(block, time);
    // The source is past the block: whoever polls again would commit over it.
    if (!taken.ok() && poll_failure_.ok()) {
      poll_failure_ = std::move(taken);
    }
  }
  return poll_failure_;
}

Status SessionEngineImpl::take_block(RecordBlock& block, MonotonicTime time) {
  const std::uint32_t number = assignment_[block.assignment];
  if (!block.status.ok()) {
    return std::move(block.status).error().with_context(names_[number].to_string());
  }
  std::vector<NullableBytes> sessions;
  if (parts_.extractor) {
    try {
      sessions = parts_.extractor(block);
    } catch (const std::exception& exception) {
      return Error(Errc::kHandlerThrew,
                   fmt::format("the session extractor threw: {}", exception.what()));
    } catch (...) {
      return Error(Errc::kHandlerThrew, "the session extractor threw no std::exception");
    }
    if (sessions.size() != block.records.size()) {
      return Error(Errc::kInvalidArgument,
                   fmt::format("the session extractor gave {} sessions for {} records of {}",
                               sessions.size(), block.records.size(), names_[number].to_string()));
    }
  }
  dispatcher_.offer(number, std::move(block), std::move(sessions), time);
  return {};
}

Status SessionEngineImpl::run_once(Duration timeout) {
  if (is_closed_) {
    return Error(Errc::kClosed, "the session engine was closed");
  }
  WEIR_TRY(Status(poll_failure_));
  WEIR_TRY(parts_.group->poll());
  WEIR_TRY(std::exchange(callback_error_, {}));
  const bool has_worked = exchange();
  WEIR_TRY(Status(flush_failure_));
  if (dispatcher_.stop_cause().has_value()) {
    return *dispatcher_.stop_cause();
  }
  dispatcher_.check_gaps(now());
  report_gaps();
  WEIR_TRY(continue_commit());
  if (commit_.empty() && dispatcher_.is_commit_due(now())) {
    begin_commit({});
  }
  apply_pauses();
  const Duration wait = has_worked ? Duration::zero() : poll_timeout(timeout);
  if (assignment_.empty()) {
    const MutexLock lock(mutex_);
    if (wait > Duration::zero() && !has_reports_) {
      condition_.wait_for(mutex_, wait);
    }
    return {};
  }
  WEIR_TRY(poll_records(wait));
  send_messages();
  return {};
}

Duration SessionEngineImpl::poll_timeout(Duration wanted) {
  if (!options_.has_threads) {
    return Duration::zero();
  }
  const MutexLock lock(mutex_);
  return has_reports_ ? Duration::zero() : std::min(wanted, options_.commit_interval);
}

SessionSignals SessionEngineImpl::signals() const {
  const DispatchCounters& counters = dispatcher_.counters();
  return {.accepted = counters.accepted,
          .terminal = counters.terminal,
          .replay_skipped = counters.replay_skipped,
          .duplicates = counters.duplicates,
          .gaps_skipped = counters.gaps_skipped,
          .commits = commits_,
          .commit_failures = commit_failures_,
          .commit_regressions = counters.commit_regressions,
          .bytes = dispatcher_.bytes()};
}

std::vector<StuckRecord> SessionEngineImpl::stuck(std::size_t count_max) const {
  std::vector<StuckRecord> records;
  for (const std::uint32_t number : owned()) {
    for (const CommitTracker::Unfinished& entry : dispatcher_.stuck(number, count_max)) {
      records.push_back({names_[number], entry.offset, now() - entry.accepted_at});
    }
  }
  return records;
}

std::vector<std::pair<TopicPartition, Offset>> SessionEngineImpl::positions() const {
  std::vector<std::pair<TopicPartition, Offset>> positions;
  for (const std::uint32_t number : owned()) {
    positions.emplace_back(names_[number], dispatcher_.tracker(number).commit_value());
  }
  return positions;
}

std::optional<MonotonicTime> SessionEngineImpl::next_due() const {
  std::optional<MonotonicTime> due;
  if (options_.has_threads) {
    return due;  // the lanes are their threads'
  }
  for (const auto& worker : workers_) {
    const std::optional<MonotonicTime> next = worker->next_due();
    if (next.has_value() && (!due.has_value() || *next < *due)) {
      due = next;
    }
  }
  return due;
}

}  // namespace weir::internal

namespace weir {

Result<std::unique_ptr<SessionEngine>> SessionEngine::open(const SessionOptions& options,
                                                           Parts parts,
                                                           std::vector<std::string> topics) {
  static_assert(internal::kSlots == 4'096);  // as check_session_options() says of workers
  WEIR_TRY(check_session_options(options));
  if (options.extractor_id >= internal::kExtractorsMax ||
      (parts.extractor && options.extractor_id == 0)) {
    return Error(Errc::kInvalidConfig,
                 fmt::format("an extractor of sessions needs an id from 1 to {}; it has {}",
                             internal::kExtractorsMax - 1, options.extractor_id));
  }
  if (parts.clock == nullptr || parts.group == nullptr || parts.source == nullptr ||
      !parts.make_worker || !parts.start_offset) {
    return Error(Errc::kInvalidConfig,
                 "a session engine needs clock, group, source, make_worker and start_offset");
  }
  auto engine = std::make_unique<internal::SessionEngineImpl>(options, std::move(parts));
  WEIR_TRY(engine->join(std::move(topics)));
  return std::unique_ptr<SessionEngine>(std::move(engine));
}

}  // namespace weir
