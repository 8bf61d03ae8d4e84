#include "operators/session/session_worker.h"

#include <utility>

namespace weir::internal {

namespace {

class Context final : public ScopedContext<SessionContext> {
 public:
  Context(SessionEffects::Scope& scope, const SessionShared& shared)
      : ScopedContext(scope, *shared.clock, shared.options.lanes.handler_timeout),
        shared_(shared) {}

  bool is_stop_requested() const override {
    return shared_.is_closing.load(std::memory_order_relaxed) || is_overdue();
  }

 private:
  const SessionShared& shared_;
};

void count(std::atomic<std::uint64_t>& counter, std::uint64_t by = 1) {
  counter.fetch_add(by, std::memory_order_relaxed);
}

}  // namespace

SessionWorker::SessionWorker(SessionShared& shared, SessionEffects effects,
                             DeadLetterWriter letters)
    : shared_(shared), effects_(std::move(effects)), letters_(std::move(letters)) {
  if (shared_.async_handler) {
    async_.emplace(*shared_.clock, shared_.options.lanes.handler_timeout, shared_.async_handler,
                   shared_.options.classify);
  }
}

void SessionWorker::cancel(RunId run) {
  if (async_.has_value()) {
    async_->cancel(run);
  }
}

void SessionWorker::set_waker(std::function<void()> waker) {
  if (async_.has_value()) {
    async_->set_waker(std::move(waker));
  }
}

std::optional<MonotonicTime> SessionWorker::next_due() const {
  return async_.has_value() ? async_->next_due() : std::nullopt;
}

std::optional<Outcome> SessionWorker::begin(const Attempt& attempt, SessionEffects::Scope& scope) {
  count(shared_.counters.attempts);
  if (attempt.number > 1) {
    count(shared_.counters.retries);
  }
  const Result<bool> is_applied = scope.is_applied();
  if (!is_applied.ok()) {
    return Outcome::retry(is_applied.error());
  }
  if (*is_applied) {
    count(shared_.counters.skipped_applied);
    return Outcome::ok();
  }
  return std::nullopt;
}

Outcome SessionWorker::handle(const Attempt& attempt, SessionEffects::Scope& scope) {
  if (std::optional<Outcome> known = begin(attempt, scope)) {
    return *std::move(known);
  }
  const TopicPartition& source = scope.partition().source;
  const std::string event_id = event_id_of(source, *attempt.record);
  Context context(scope, shared_);
  return shared_.handler({.partition = source,
                          .record = *attempt.record,
                          .session = attempt.session,
                          .attempt = attempt.number,
                          .event_id = event_id,
                          .fence = attempt.fence},
                         context);
}

void SessionWorker::run(LaneRuns& runs) {
  // Counts what becomes of attempts on its way to the lanes.
  class Counting final : public LaneRuns {
   public:
    Counting(LaneRuns& runs, SessionCounters& counters) : runs_(runs), counters_(counters) {}
    bool next(Attempt& attempt) override { return runs_.next(attempt); }
    void finish(RunId run, Outcome outcome) override {
      count(outcome.kind == Outcome::Kind::kOk ? counters_.handled : counters_.failures);
      runs_.finish(run, std::move(outcome));
    }
    void answer_letter(RunId letter, bool ok) override { runs_.answer_letter(letter, ok); }
    MonotonicTime now() const override { return runs_.now(); }

   private:
    LaneRuns& runs_;
    SessionCounters& counters_;
  };
  Counting counting(runs, shared_.counters);
  auto handler = [this](const Attempt& attempt, SessionEffects::Scope& scope) {
    return handle(attempt, scope);
  };
  const std::uint64_t outputs_before = effects_.outputs_promoted();
  if (async_.has_value()) {
    run_async(counting);
  } else {
    run_attempts(counting, effects_, handler, shared_.options.classify);
  }
  count(shared_.counters.outputs, effects_.outputs_promoted() - outputs_before);
}

void SessionWorker::run_async(LaneRuns& runs) {
  const auto on_ended = [&](AsyncAttempts::Ended ended) {
    end_attempt(runs, effects_, std::move(ended.scope), ended.run, std::move(ended.outcome));
  };
  if (shared_.is_closing.load(std::memory_order_relaxed)) {
    async_->cancel_all();
  }
  async_->resume(on_ended);
  Attempt attempt;
  while (runs.next(attempt)) {
    SessionEffects::Scope scope = effects_.begin_attempt(attempt);
    if (std::optional<Outcome> known = begin(attempt, scope)) {
      end_attempt(runs, effects_, std::move(scope), attempt.run, *std::move(known));
    } else {
      async_->start(attempt, std::move(scope), effects_.partition(attempt.partition), on_ended);
    }
  }
}

void SessionWorker::write(std::span<const DeadLetter> letters, LaneRuns& runs) {
  const std::size_t written =
      letters_.write(letters, [&](RunId letter, bool ok) { runs.answer_letter(letter, ok); });
  count(shared_.counters.dead_letters, written);
  count(shared_.counters.letter_failures, letters.size() - written);
}

}  // namespace weir::internal
