#pragma once

#include <weir/runtime/backend.h>
#include <weir/runtime/clock.h>
#include <weir/runtime/lanes.h>
#include <weir/runtime/retry_policy.h>

#include <cstddef>
#include <cstdint>
#include <exception>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

namespace weir {

// Where a session's lane is (session-workers D3).
enum class SessionDispatch {
  kLocal,  // all sessions of a partition on one worker: with at least as many partitions as workers
  kSpread,  // sessions over all workers: one partition uses every core
};

// The settings of lanes, by their names without `session.`; Kafka's where it has one.
struct SessionOptions {
  std::uint32_t workers = 1;
  // false: no threads, run_once() runs the lanes itself. For tests and simulated time.
  bool has_threads = true;
  SessionDispatch dispatch = SessionDispatch::kLocal;
  RetryPolicy retry;
  bool has_unordered_null_sessions = false;  // null.session=unordered
  std::uint32_t lane_records_max = 1'024;
  std::uint32_t backoff_records_max = 131'072;  // a worker's, behind heads in back-off
  std::uint32_t stash_records_high = 2'048;     // a partition's: paused alone
  std::uint32_t stash_records_low = 512;        // and resumed
  std::uint32_t window_records_max = 1U << 22U;
  std::uint64_t buffer_bytes_max = 256U << 20U;
  std::uint32_t lanes_max = 1'000'000;  // a worker's
  std::uint32_t running_max = 1'024;    // a worker's attempts that are open
  std::uint32_t quarantine_sessions_max = 10'000;
  Duration lane_idle = std::chrono::seconds(30);
  Duration handler_timeout{};  // handler.timeout.ms: then LaneWorker::cancel(), once; 0: never
  Duration commit_interval = std::chrono::seconds(1);  // commit.interval.ms
  std::uint64_t commit_records_max = 10'000;           // newly finished ones: commit earlier
  bool writes_lane_map = true;                         // commit.metadata=map
  // Changes with how sessions are made, or finished records of one are taken for another's; 0: the
  // keys. Below 32,768.
  std::uint16_t extractor_id = 0;
  Duration gap_timeout{};  // 0: stuck gaps are never skipped
  bool has_gap_guard = true;
  Duration drain_max = std::chrono::seconds(30);  // rebalance.drain.max.ms
  std::uint64_t seed = 1;                         // of the jitter
};

// The attempts that a worker may run now. Threading: the worker's.
class LaneRuns {
 public:
  virtual ~LaneRuns() = default;
  // False: nothing is ready, or the round is over.
  virtual bool next(Attempt& attempt) = 0;
  // Now, or for asynchronous handlers in a later call of run() or by SessionEngine::finish().
  virtual void finish(RunId run, Outcome outcome) = 0;
  virtual void answer_letter(RunId letter, bool ok) = 0;
  virtual MonotonicTime now() const = 0;  // of the round
};

// What a worker does with its lanes: one object a worker, called on its thread only.
class LaneWorker {
 public:
  virtual ~LaneWorker() = default;
  // Takes ready attempts until next() says no, and finishes those that ended.
  virtual void run(LaneRuns& runs) = 0;
  // Writes records to the dead-letter topic and answers each, at once or later by
  // SessionEngine::answer_letter(). Ok only once it is durable there.
  virtual void write(std::span<const DeadLetter> letters, LaneRuns& runs) = 0;
  // Makes durable what was promoted so far (C7): a commit waits for it. After one that fails the
  // engine commits nothing any more, since a later one need not know what this one lost.
  virtual Status flush() { return {}; }
  // The attempt should stop; it is finished all the same.
  virtual void cancel(RunId /*run*/) {}
  // Called once, before all else: has run() called soon, from any thread, until the destructor.
  // NOLINTNEXTLINE(performance-unnecessary-value-param): an override keeps it
  virtual void set_waker(std::function<void()> /*waker*/) {}
  // When run() is to be called again without any event; nullopt: never.
  virtual std::optional<MonotonicTime> next_due() const { return std::nullopt; }
};

struct SessionSignals {
  std::uint64_t accepted = 0;
  std::uint64_t terminal = 0;
  std::uint64_t replay_skipped = 0;
  std::uint64_t duplicates = 0;
  std::uint64_t gaps_skipped = 0;
  std::uint64_t commits = 0;
  std::uint64_t commit_failures = 0;
  std::uint64_t commit_regressions = 0;  // stays 0
  std::uint64_t bytes = 0;               // of fetched blocks that are held
};

struct StuckRecord {
  TopicPartition partition;
  Offset offset;
  Duration age{};  // since it was fetched
};

// Runs the sessions of the topics of one group: polls, routes, commits, hands over (session-workers
// 2.2 to 2.6, 2.14). Handlers run on the workers' threads and never hold up a poll.
//
// Threading: the polling thread's, but for finish(), answer_letter() and wake().
class SessionEngine {
 public:
  using MakeWorker = std::function<std::unique_ptr<LaneWorker>(std::uint32_t worker)>;
  // Sessions of the block's records, borrowing from the block.
  using Extractor = std::function<std::vector<NullableBytes>(const RecordBlock&)>;
  // Of a partition: where it starts without a committed offset (auto.offset.reset), or where it
  // ends.
  using StartOffset = std::function<Result<Offset>(const TopicPartition&)>;
  // C9: what was given up, for people.
  using OnGapSkipped = std::function<void(const StuckRecord&)>;

  struct Parts {
    const Clock* clock = nullptr;
    Group* group = nullptr;          // not joined yet
    RecordSource* source = nullptr;  // without an assignment
    MakeWorker make_worker;
    StartOffset start_offset;
    // High watermark: what a lane map says above it is about records that a truncation took away.
    // None: it is taken at its word.
    StartOffset log_end = {};
    Extractor extractor = {};          // none: the keys; another one: with an extractor_id
    OnGapSkipped on_gap_skipped = {};  // none: only counted
    // Of the polling thread. Before the first attempt of a partition; `number` is what
    // Attempt::partition says of it as long as the engine lives. An error is one of run_once().
    std::function<Status(std::uint32_t number, const TopicPartition& partition)> on_assigned = {};
    // Handed over or lost. A handler that did not end in time may still run.
    std::function<void(std::uint32_t number)> on_released = {};
  };

  // Joins the group. `parts` outlive the engine.
  static Result<std::unique_ptr<SessionEngine>> open(const SessionOptions& options, Parts parts,
                                                     std::vector<std::string> topics);
  virtual ~SessionEngine() = default;

  // One round: the group's callbacks, what the workers finished, commits, then a poll of at most
  // `timeout` (commit_interval at most). Errors: those of group, source and flush; kHandlerThrew
  // and others as a handler's kStop gave them. After an error: close(); that of a flush comes
  // again each time.
  virtual Status run_once(Duration timeout) = 0;

  enum class Close {
    kDrainRunning,  // what runs ends; what waits is handled after the next start
    kDrainQueued,   // everything that was fetched runs to its end
  };
  // Stops intake, drains, waits for dead letters, commits, leaves, joins the workers (2.14). Ends
  // `deadline` from now at the latest but for one handler or flush that does not return: then when
  // it does. Errors: of the last commit or a flush; what was not committed is repeated after the
  // next start.
  virtual Status close(Close mode, Duration deadline) = 0;

  // The outcome of an attempt that did not end in run(). Thread-safe.
  virtual void finish(std::uint32_t worker, RunId run, Outcome outcome) = 0;
  virtual void answer_letter(std::uint32_t worker, RunId letter, bool ok) = 0;
  // Workers and poll look at the clock again. Thread-safe.
  virtual void wake() = 0;

  virtual SessionSignals signals() const = 0;
  // C12: unfinished records one by one, the first of each partition first; at most `count_max` a
  // partition.
  virtual std::vector<StuckRecord> stuck(std::size_t count_max) const = 0;
  // How far the group has come: the committed value in memory, for lag that stays right while
  // paused.
  virtual std::vector<std::pair<TopicPartition, Offset>> positions() const = 0;
  // When something is due next without any input; nullopt: never. For simulated time.
  virtual std::optional<MonotonicTime> next_due() const = 0;
};

// What becomes of an attempt whose effects were refused. What trying again cannot help is a dead
// letter; what is not the attempt's fault is none: a partition that was handed over waits for its
// end, a log that refuses everything ends the program.
inline Outcome refused(Error error) {
  switch (error.code()) {
    case Errc::kRecordTooLarge:
    case Errc::kInvalidRecord:
      return Outcome::dead(std::move(error));
    case Errc::kTimedOut:
    case Errc::kNoSpace:
      return Outcome::retry(std::move(error));
    case Errc::kFenced: {
      Outcome outcome = Outcome::retry(std::move(error));
      outcome.is_counted = false;
      return outcome;
    }
    default:
      return Outcome::stop(std::move(error));
  }
}

// The classifier of those who have none: a handler that throws is tried again.
inline Outcome retry_thrown(const std::exception& exception) {
  return Outcome::retry(Error(Errc::kHandlerThrew, exception.what()));
}

// What `classify` makes of what a handler has thrown; one that throws itself is no reason to end.
// Requires: within the catch block.
template <class Classify>
Outcome outcome_of_thrown(const Classify& classify) {
  try {
    throw;
  } catch (const std::exception& exception) {
    try {
      return classify(exception);
    } catch (...) {
      return Outcome::retry(
          Error(Errc::kHandlerThrew,
                std::string(exception.what()) + " (and what classifies exceptions threw, too)"));
    }
  } catch (...) {
    return Outcome::retry(Error(Errc::kHandlerThrew, "a handler threw no std::exception"));
  }
}

// Ends an attempt: its effects count when the outcome is ok, and go otherwise.
template <EffectScope E>
void end_attempt(LaneRuns& runs, E& effects, typename E::Scope scope, RunId run, Outcome outcome) {
  if (outcome.kind == Outcome::Kind::kOk) {
    if (Status promoted = effects.promote(std::move(scope)); !promoted.ok()) {
      outcome = refused(std::move(promoted).error());
    }
  } else {
    effects.discard(std::move(scope));
  }
  runs.finish(run, std::move(outcome));
}

// Runs ready attempts through `handler(const Attempt&, E::Scope&) -> Outcome`, each in a scope of
// `effects`: promoted when it is ok, discarded otherwise. A handler that throws is tried again, or
// what `classify` makes of the exception.
template <EffectScope E, class Handler, class Classify>
void run_attempts(LaneRuns& runs, E& effects, Handler& handler, const Classify& classify) {
  Attempt attempt;
  while (runs.next(attempt)) {
    typename E::Scope scope = effects.begin_attempt(attempt);
    Outcome outcome;
    try {
      outcome = handler(std::as_const(attempt), scope);
    } catch (...) {
      outcome = outcome_of_thrown(classify);
    }
    end_attempt(runs, effects, std::move(scope), attempt.run, std::move(outcome));
  }
}
template <EffectScope E, class Handler>
void run_attempts(LaneRuns& runs, E& effects, Handler& handler) {
  run_attempts(runs, effects, handler, retry_thrown);
}

}  // namespace weir
