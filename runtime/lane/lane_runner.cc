#include "runtime/lane/lane_runner.h"

#include <algorithm>
#include <exception>
#include <utility>

namespace weir::internal {

namespace {

// Exceptions of the user's code end here (D9).
template <class Call>
Status without_exceptions(Call call) {
  try {
    return call();
  } catch (const std::exception& exception) {
    return Error(Errc::kHandlerThrew, exception.what());
  } catch (...) {
    return Error(Errc::kHandlerThrew, "a worker threw no std::exception");
  }
}

void stop_at(const Status& status, ShardReport& report) {
  if (!status.ok() && !report.stop.has_value()) {
    report.stop = status.error();
  }
}

}  // namespace

LaneRunner::LaneRunner(const LaneOptions& options, std::uint64_t seed, const Clock& clock,
                       std::unique_ptr<LaneWorker> worker, std::function<void()> notify)
    : clock_(clock), shard_(options, seed), worker_(std::move(worker)), notify_(std::move(notify)) {
  worker_->set_waker([this] { wake_for_worker(); });
}

LaneRunner::~LaneRunner() {
  stop_thread();
  worker_.reset();  // it may be woken until it is gone
}

std::optional<MonotonicTime> LaneRunner::next_due() const {
  const std::optional<MonotonicTime> lanes = shard_.next_due();
  const std::optional<MonotonicTime> worker = worker_->next_due();
  if (!lanes.has_value() || !worker.has_value()) {
    return lanes.has_value() ? lanes : worker;
  }
  return std::min(*lanes, *worker);
}

void LaneRunner::start_thread() {
  has_thread_.store(true, std::memory_order_release);
  thread_ = std::thread([this] { run(); });
}

void LaneRunner::stop_thread() {
  {
    const MutexLock lock(mutex_);
    is_stopping_ = true;
  }
  condition_.notify_one();
  if (thread_.joinable()) {
    thread_.join();
  }
}

void LaneRunner::send(std::vector<ShardMessage> messages) {
  if (messages.empty()) {
    return;
  }
  const bool has_command =
      std::any_of(messages.begin(), messages.end(),
                  [](const ShardMessage& message) { return !message.commands.empty(); });
  {
    const MutexLock lock(mutex_);
    std::move(messages.begin(), messages.end(), std::back_inserter(inbox_.messages));
    if (has_command) {
      inbox_.has_command = true;
      is_wanted_.store(true, std::memory_order_release);
    }
  }
  condition_.notify_one();
}

void LaneRunner::finish_later(RunId run, Outcome outcome) {
  {
    const MutexLock lock(mutex_);
    inbox_.outcomes.emplace_back(run, std::move(outcome));
  }
  condition_.notify_one();
}

void LaneRunner::answer_later(RunId letter, bool ok) {
  {
    const MutexLock lock(mutex_);
    inbox_.answers.emplace_back(letter, ok);
  }
  condition_.notify_one();
}

void LaneRunner::request_flush() {
  {
    const MutexLock lock(mutex_);
    ++inbox_.flushes;
    is_wanted_.store(true, std::memory_order_release);
  }
  condition_.notify_one();
}

void LaneRunner::wake() {
  {
    const MutexLock lock(mutex_);
    is_woken_ = true;
  }
  condition_.notify_one();
}

void LaneRunner::wake_for_worker() {
  if (has_thread_.load(std::memory_order_acquire)) {
    wake();
  } else {
    notify_();  // the polling thread runs the rounds
  }
}

void LaneRunner::take(Outbox& outbox) {
  outbox.spare.clear();
  outbox.flushes = 0;
  outbox.flush_error = {};
  const MutexLock lock(mutex_);
  for (ShardReport& report : outbox.reports) {
    if (spare_reports_.size() < kSpareReportsMax) {
      report.clear();
      spare_reports_.push_back(std::move(report));
    }
  }
  outbox.reports.clear();
  std::swap(outbox, outbox_);
}

bool LaneRunner::next(Attempt& attempt) {
  if (budget_ == 0 || is_wanted_.load(std::memory_order_acquire)) {
    return false;
  }
  if (++looks_ % kAttemptsALook == 0 && clock_.monotonic() - now_ >= kRoundMax) {
    budget_ = 0;
    return false;
  }
  if (!shard_.start(attempt, now_)) {
    return false;
  }
  --budget_;
  return true;
}

void LaneRunner::finish(RunId run, Outcome outcome) {
  has_ended_ = true;
  if (outcome.kind != Outcome::Kind::kOk) {
    now_ = clock_.monotonic();  // a back-off begins now, however long the handler took
  }
  if (is_writing_) {
    ended_.outcomes.emplace_back(run, std::move(outcome));
  } else {
    shard_.finish(run, std::move(outcome), now_);
  }
}

void LaneRunner::answer_letter(RunId letter, bool ok) {
  has_ended_ = true;
  if (is_writing_) {
    ended_.answers.emplace_back(letter, ok);
  } else {
    shard_.letter_done(letter, ok, now_);
  }
}

void LaneRunner::take_inbox() {
  const MutexLock lock(mutex_);
  is_woken_ = false;
  is_wanted_.store(false, std::memory_order_release);
  takes_all_ = std::exchange(inbox_.has_command, false);
  taken_.outcomes.swap(inbox_.outcomes);
  taken_.answers.swap(inbox_.answers);
  taken_.flushes += std::exchange(inbox_.flushes, 0);
  if (applied_ == taken_.messages.size()) {
    taken_.messages.clear();
    applied_ = 0;
  }
  std::move(inbox_.messages.begin(), inbox_.messages.end(), std::back_inserter(taken_.messages));
  inbox_.messages.clear();
}

void LaneRunner::apply_messages() {
  while (applied_ < taken_.messages.size()) {
    ShardMessage& message = taken_.messages[applied_++];
    shard_.apply(message, now_);
    budget_ += 2 * static_cast<std::uint32_t>(message.records.size());
    if (message.records.capacity() > 0) {
      message.records.clear();
      arrived_.push_back(std::move(message.records));
    }
    if (!takes_all_) {
      break;
    }
  }
}

void LaneRunner::write_letters() {
  while (!shard_.letters().empty()) {
    const std::vector<DeadLetter> letters = std::exchange(shard_.letters(), {});
    is_writing_ = true;
    stop_at(without_exceptions([&]() -> Status {
              worker_->write(letters, *this);
              return {};
            }),
            shard_.report());
    is_writing_ = false;
    for (auto& [run, outcome] : ended_.outcomes) {
      shard_.finish(run, std::move(outcome), now_);
    }
    for (const auto& [letter, ok] : ended_.answers) {
      shard_.letter_done(letter, ok, now_);
    }
    ended_.outcomes.clear();
    ended_.answers.clear();
  }
}

bool LaneRunner::run_round() {
  now_ = clock_.monotonic();
  has_ended_ = false;
  take_inbox();
  bool has_worked = applied_ < taken_.messages.size() || !taken_.outcomes.empty() ||
                    !taken_.answers.empty() || taken_.flushes > 0;
  budget_ = kAttemptsMin;
  apply_messages();
  for (auto& [run, outcome] : taken_.outcomes) {
    shard_.finish(run, std::move(outcome), now_);
  }
  for (const auto& [letter, ok] : taken_.answers) {
    shard_.letter_done(letter, ok, now_);
  }
  taken_.outcomes.clear();
  taken_.answers.clear();
  shard_.advance(now_);
  const std::uint32_t budget = budget_;
  stop_at(without_exceptions([&]() -> Status {
            worker_->run(*this);
            return {};
          }),
          shard_.report());
  has_worked = has_worked || budget_ < budget || !shard_.letters().empty() ||
               applied_ < taken_.messages.size();
  write_letters();
  for (const RunId run : std::exchange(shard_.cancels(), {})) {
    stop_at(without_exceptions([&]() -> Status {
              worker_->cancel(run);
              return {};
            }),
            shard_.report());
  }
  publish();
  return has_worked || has_ended_;
}

// What was promoted before a flush was asked for is in the report that goes out with its answer.
void LaneRunner::publish() {
  Status flushed;
  const std::uint32_t flushes = std::exchange(taken_.flushes, 0);
  if (flushes > 0) {
    flushed = without_exceptions([&] { return worker_->flush(); });
  }
  ShardReport& report = shard_.report();
  if (report.empty() && flushes == 0) {
    return;
  }
  bool was_empty = false;
  {
    const MutexLock lock(mutex_);
    was_empty = outbox_.empty();
    if (!report.empty()) {
      outbox_.reports.push_back(std::move(report));
      report = {};
      if (!spare_reports_.empty()) {
        report = std::move(spare_reports_.back());
        spare_reports_.pop_back();
      }
    }
    std::move(arrived_.begin(), arrived_.end(), std::back_inserter(outbox_.spare));
    outbox_.flushes += flushes;
    if (!flushed.ok()) {
      outbox_.flush_error = std::move(flushed);
    }
  }
  arrived_.clear();
  if (was_empty) {
    notify_();
  }
}

void LaneRunner::wait() {
  const std::optional<MonotonicTime> due = next_due();
  if (!due.has_value()) {
    condition_.wait(mutex_);
    return;
  }
  const Duration left = *due - clock_.monotonic();
  if (left > Duration::zero()) {
    condition_.wait_for(mutex_, left);
  }
}

void LaneRunner::run() {
  while (true) {
    const bool has_worked = run_round();
    const MutexLock lock(mutex_);
    while (!has_worked && !is_stopping_ && !is_woken_ && inbox_.empty()) {
      const std::optional<MonotonicTime> due = next_due();
      if (due.has_value() && *due <= clock_.monotonic()) {
        break;
      }
      wait();
    }
    if (is_stopping_) {
      return;
    }
  }
}

}  // namespace weir::internal
