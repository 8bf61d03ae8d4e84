#include "operators/session/session_worker.h"

#include <utility>

namespace weir::internal {

namespace {

class Context final : public SessionContext {
 public:
  Context(SessionEffects::Scope& scope, const SessionShared& shared)
      : scope_(scope), shared_(shared), started_(shared.clock->monotonic()) {}

  Result<NullableBytes> get(ByteView name) override { return scope_.get(name); }
  Status put(ByteView name, NullableBytes value) override { return scope_.put(name, value); }
  Status emit(std::uint32_t output, const RecordRef& record) override {
    return scope_.emit(output, record);
  }
  bool is_stop_requested() const override {
    const Duration limit = shared_.options.lanes.handler_timeout;
    return shared_.is_closing.load(std::memory_order_relaxed) ||
           (limit > Duration::zero() && shared_.clock->monotonic() - started_ >= limit);
  }

 private:
  SessionEffects::Scope& scope_;
  const SessionShared& shared_;
  MonotonicTime started_;
};

void count(std::atomic<std::uint64_t>& counter, std::uint64_t by = 1) {
  counter.fetch_add(by, std::memory_order_relaxed);
}

}  // namespace

SessionWorker::SessionWorker(SessionShared& shared, SessionEffects effects,
                             DeadLetterWriter letters)
    : shared_(shared), effects_(std::move(effects)), letters_(std::move(letters)) {}

Outcome SessionWorker::handle(const Attempt& attempt, SessionEffects::Scope& scope) {
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
  if (shared_.options.classify) {
    run_attempts(counting, effects_, handler, shared_.options.classify);
  } else {
    run_attempts(counting, effects_, handler);
  }
  count(shared_.counters.outputs, effects_.outputs_promoted() - outputs_before);
}

void SessionWorker::write(std::span<const DeadLetter> letters, LaneRuns& runs) {
  const std::size_t written =
      letters_.write(letters, [&](RunId letter, bool ok) { runs.answer_letter(letter, ok); });
  count(shared_.counters.dead_letters, written);
  count(shared_.counters.letter_failures, letters.size() - written);
}

}  // namespace weir::internal
