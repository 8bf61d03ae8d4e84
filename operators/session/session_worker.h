#pragma once

#include "operators/session/async_attempts.h"
#include "operators/session/dead_letter_writer.h"
#include "operators/session/session_effects.h"

#include <weir/operators/session.h>

#include <atomic>
#include <memory>
#include <string>

namespace weir::internal {

// Counters of all workers. Threading: thread-safe.
struct SessionCounters {
  std::atomic<std::uint64_t> attempts{0};
  std::atomic<std::uint64_t> handled{0};
  std::atomic<std::uint64_t> failures{0};
  std::atomic<std::uint64_t> retries{0};
  std::atomic<std::uint64_t> dead_letters{0};
  std::atomic<std::uint64_t> letter_failures{0};
  std::atomic<std::uint64_t> outputs{0};
  std::atomic<std::uint64_t> skipped_applied{0};
};

// What all workers of a processor share; outlives them.
struct SessionShared {
  SessionProcessorOptions options;
  SessionHandler handler;  // or:
  AsyncSessionHandler async_handler;
  const Clock* clock = nullptr;
  SessionPartitions partitions;
  SessionCounters counters;
  std::atomic<bool> is_closing{false};
};

// A worker of a session processor: user's handler, effects, dead letters.
// Threading: confined to its worker's thread.
class SessionWorker final : public LaneWorker {
 public:
  SessionWorker(SessionShared& shared, SessionEffects effects, DeadLetterWriter letters);

  void run(LaneRuns& runs) override;
  void write(std::span<const DeadLetter> letters, LaneRuns& runs) override;
  Status flush() override { return effects_.flush(); }
  void cancel(RunId run) override;
  void set_waker(std::function<void()> waker) override;
  std::optional<MonotonicTime> next_due() const override;

 private:
  // What is to be done before a handler sees the attempt; an outcome: it need not.
  std::optional<Outcome> begin(const Attempt& attempt, SessionEffects::Scope& scope);
  Outcome handle(const Attempt& attempt, SessionEffects::Scope& scope);
  void run_async(LaneRuns& runs);

  SessionShared& shared_;
  SessionEffects effects_;
  DeadLetterWriter letters_;
  std::optional<AsyncAttempts> async_;  // behind the effects that its attempts use
};

}  // namespace weir::internal
