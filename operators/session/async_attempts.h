#pragma once

#include "operators/session/session_context.h"

#include <weir/operators/async_session.h>
#include <weir/runtime/session_engine.h>
#include <weir/runtime/thread_annotations.h>

#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

namespace weir::internal {

// Waits that ended, on their way to their worker. Outlives the worker as long as somebody may end a
// wait. Threading: thread-safe.
class SessionMailbox {
 public:
  struct Ended {
    RunId run;
    std::uint64_t wait = 0;
    bool is_dropped = false;  // nobody called
  };

  void set_waker(std::function<void()> waker);
  void post(const Ended& ended);
  std::vector<Ended> take();
  // Nothing is woken any more.
  void close();

 private:
  Mutex mutex_;
  std::function<void()> waker_ WEIR_GUARDED_BY(mutex_);
  std::vector<Ended> ended_ WEIR_GUARDED_BY(mutex_);
};

// A worker's attempts whose handlers wait.
//
// Threading: confined to the worker's thread, but for the mailbox.
// Bounds:    session.in.flight.max, the engine's.
class AsyncAttempts {
 public:
  struct Ended {
    RunId run;
    Outcome outcome;
    SessionEffects::Scope scope;
  };
  using OnEnded = std::function<void(Ended)>;

  // What of it may still be used by others at its end is never freed.
  ~AsyncAttempts();
  AsyncAttempts(const AsyncAttempts&) = delete;
  AsyncAttempts& operator=(const AsyncAttempts&) = delete;
  AsyncAttempts(const Clock& clock, Duration handler_timeout, AsyncSessionHandler handler,
                std::function<Outcome(const std::exception&)> classify);

  void set_waker(std::function<void()> waker) { mailbox_->set_waker(std::move(waker)); }
  // Runs the handler up to its first wait.
  void start(const Attempt& attempt, SessionEffects::Scope scope,
             std::shared_ptr<SessionPartition> partition, const OnEnded& ended);
  // Goes on with those whose wait is over.
  void resume(const OnEnded& ended);
  // The attempt should stop.
  void cancel(RunId run);
  void cancel_all();
  std::optional<MonotonicTime> next_due() const;
  std::size_t count() const { return open_.size(); }

 private:
  class Open;
  struct Sleep {
    RunId run;
    std::uint64_t wait = 0;
  };

  static void abandon(std::unique_ptr<Open> open);
  void go_on(Open& open, const OnEnded& ended);
  Open* find(RunId run, std::uint64_t wait);

  const Clock& clock_;
  const Duration handler_timeout_;
  const AsyncSessionHandler handler_;
  const std::function<Outcome(const std::exception&)> classify_;
  const std::shared_ptr<SessionMailbox> mailbox_ = std::make_shared<SessionMailbox>();
  std::unordered_map<std::uint32_t, std::unique_ptr<Open>> open_;  // by lane
  std::multimap<MonotonicTime, Sleep> sleeps_;                     // some are over already
};

}  // namespace weir::internal
