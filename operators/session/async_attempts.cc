#include "operators/session/async_attempts.h"

#include "operators/session/dead_letter_headers.h"

#include <weir/runtime/assert.h>

#include <algorithm>
#include <atomic>

namespace weir {
namespace internal {

// The end of one wait, shared by the copies of its SessionResume.
class SessionWait {
 public:
  SessionWait(std::shared_ptr<SessionMailbox> mailbox, RunId run, std::uint64_t number)
      : mailbox_(std::move(mailbox)), run_(run), number_(number) {}
  ~SessionWait() {
    if (!is_over_.load(std::memory_order_relaxed)) {
      mailbox_->post({run_, number_, true});
    }
  }
  SessionWait(const SessionWait&) = delete;
  SessionWait& operator=(const SessionWait&) = delete;

  void end() {
    if (!is_over_.exchange(true, std::memory_order_relaxed)) {
      mailbox_->post({run_, number_, false});
    }
  }

 private:
  const std::shared_ptr<SessionMailbox> mailbox_;
  const RunId run_;
  const std::uint64_t number_;
  std::atomic<bool> is_over_{false};
};

class SessionTaskAccess {
 public:
  static std::coroutine_handle<SessionTask::promise_type> handle(SessionTask& task) {
    return task.handle_;
  }
};

void SessionMailbox::set_waker(std::function<void()> waker) {
  const MutexLock lock(mutex_);
  waker_ = std::move(waker);
}

// The waker is called under the lock, so that it is not used behind close().
void SessionMailbox::post(const Ended& ended) {
  const MutexLock lock(mutex_);
  if (!waker_) {
    return;
  }
  ended_.push_back(ended);
  if (ended_.size() == 1) {
    waker_();
  }
}

std::vector<SessionMailbox::Ended> SessionMailbox::take() {
  const MutexLock lock(mutex_);
  return std::exchange(ended_, {});
}

void SessionMailbox::close() {
  const MutexLock lock(mutex_);
  waker_ = nullptr;
  ended_.clear();
}

// One attempt, from its start to its outcome; the context that its handler sees.
class AsyncAttempts::Open final : public ScopedContext<AsyncSessionContext> {
 public:
  Open(AsyncAttempts& all, const Attempt& attempt, SessionEffects::Scope scope,
       std::shared_ptr<SessionPartition> partition)
      : ScopedContext(scope_, all.clock_, all.handler_timeout_),
        all_(all),
        run_(attempt.run),
        partition_(std::move(partition)),
        scope_(std::move(scope)),
        event_id_(event_id_of(partition_->source, *attempt.record)),
        record_{.partition = partition_->source,
                .record = *attempt.record,
                .session = attempt.session,
                .attempt = attempt.number,
                .event_id = event_id_,
                .fence = attempt.fence} {}

  bool is_stop_requested() const override { return stop_.stop_requested() || is_overdue(); }
  std::stop_token stop_token() const override { return stop_.get_token(); }

  RunId run() const { return run_; }
  std::uint64_t wait() const { return wait_; }
  bool is_waiting() const { return state_ != State::kRunning; }
  // Somebody else may still write into what the handler owns.
  bool is_shared() const { return state_ == State::kWaiting; }
  void request_stop() {
    stop_.request_stop();
    if (state_ == State::kSleeping) {
      all_.mailbox_->post({run_, wait_, false});
    }
  }
  void set_dropped(bool is_dropped) { is_dropped_ = is_dropped; }

  // False: the handler waits.
  bool resume() {
    state_ = State::kRunning;
    if (!task_.has_value()) {
      task_.emplace(all_.handler_(record_, *this));
    }
    const auto handle = SessionTaskAccess::handle(*task_);
    handle.resume();
    return handle.done();
  }
  Outcome outcome() {
    SessionTask::promise_type& promise = SessionTaskAccess::handle(*task_).promise();
    if (!promise.exception) {
      return std::move(promise.result);
    }
    return outcome_of(promise.exception);
  }
  Outcome outcome_of(const std::exception_ptr& thrown) const {
    try {
      std::rethrow_exception(thrown);
    } catch (...) {
      return outcome_of_thrown(all_.classify_);
    }
  }
  // The coroutine's frame goes first: it refers to record and context.
  SessionEffects::Scope take_scope() {
    task_.reset();
    return std::move(scope_);
  }

 private:
  enum class State : std::uint8_t { kRunning, kWaiting, kSleeping };

  SessionResume begin_wait() override {
    state_ = State::kWaiting;
    is_dropped_ = false;
    return SessionResume(std::make_shared<SessionWait>(all_.mailbox_, run_, ++wait_));
  }
  void forget_wait() override {
    state_ = State::kRunning;
    ++wait_;
  }
  Status end_wait() override {
    return is_dropped_ ? Status(Error(Errc::kClosed, "a wait was given up: nobody will end it"))
                       : Status();
  }
  void begin_sleep(Duration delay) override {
    constexpr Duration kLongest = std::chrono::hours(24 * 365);
    state_ = State::kSleeping;
    all_.sleeps_.emplace(all_.clock_.monotonic() + std::clamp(delay, Duration::zero(), kLongest),
                         Sleep{run_, ++wait_});
  }

  AsyncAttempts& all_;
  const RunId run_;
  const std::shared_ptr<SessionPartition> partition_;  // a handler may outlive the hand-over
  SessionEffects::Scope scope_;
  const std::string event_id_;
  const SessionRecord record_;
  std::stop_source stop_;
  std::optional<SessionTask> task_;
  std::uint64_t wait_ = 0;  // rises with each
  State state_ = State::kRunning;
  bool is_dropped_ = false;
};

AsyncAttempts::AsyncAttempts(const Clock& clock, Duration handler_timeout,
                             AsyncSessionHandler handler,
                             std::function<Outcome(const std::exception&)> classify)
    : clock_(clock),
      handler_timeout_(handler_timeout),
      handler_(std::move(handler)),
      classify_(std::move(classify)) {}

AsyncAttempts::~AsyncAttempts() {
  mailbox_->close();
  for (auto& [lane, open] : open_) {
    if (open->is_shared()) {
      abandon(std::move(open));
    }
  }
}

// Never freed: reachable for ever, and never touched again.
void AsyncAttempts::abandon(std::unique_ptr<Open> open) {
  static Mutex mutex;
  static auto* const abandoned = new std::vector<Open*>;
  const MutexLock lock(mutex);
  abandoned->push_back(open.release());
}

void AsyncAttempts::start(const Attempt& attempt, SessionEffects::Scope scope,
                          std::shared_ptr<SessionPartition> partition, const OnEnded& ended) {
  auto open = std::make_unique<Open>(*this, attempt, std::move(scope), std::move(partition));
  Open& started = *open;
  const bool is_new = open_.emplace(attempt.run.lane, std::move(open)).second;
  WEIR_ASSERT(is_new);  // a lane runs one attempt at a time
  go_on(started, ended);
}

void AsyncAttempts::go_on(Open& open, const OnEnded& ended) {
  std::optional<Outcome> outcome;
  try {
    if (open.resume()) {
      outcome = open.outcome();
    }
  } catch (...) {  // a handler that is no coroutine, or has none
    outcome = open.outcome_of(std::current_exception());
  }
  if (!outcome.has_value()) {
    return;
  }
  const RunId run = open.run();
  SessionEffects::Scope scope = open.take_scope();
  open_.erase(run.lane);
  ended({run, *std::move(outcome), std::move(scope)});
}

AsyncAttempts::Open* AsyncAttempts::find(RunId run, std::uint64_t wait) {
  const auto found = open_.find(run.lane);
  if (found == open_.end() || found->second->run() != run || found->second->wait() != wait ||
      !found->second->is_waiting()) {
    return nullptr;  // it was ended already
  }
  return found->second.get();
}

void AsyncAttempts::resume(const OnEnded& ended) {
  for (const SessionMailbox::Ended& one : mailbox_->take()) {
    if (Open* const open = find(one.run, one.wait)) {
      open->set_dropped(one.is_dropped);
      go_on(*open, ended);
    }
  }
  while (!sleeps_.empty() && sleeps_.begin()->first <= clock_.monotonic()) {
    const Sleep sleep = sleeps_.extract(sleeps_.begin()).mapped();
    if (Open* const open = find(sleep.run, sleep.wait)) {
      go_on(*open, ended);
    }
  }
}

void AsyncAttempts::cancel(RunId run) {
  const auto found = open_.find(run.lane);
  if (found != open_.end() && found->second->run() == run) {
    found->second->request_stop();
  }
}

void AsyncAttempts::cancel_all() {
  for (const auto& [lane, open] : open_) {
    open->request_stop();
  }
}

std::optional<MonotonicTime> AsyncAttempts::next_due() const {
  return sleeps_.empty() ? std::nullopt : std::optional(sleeps_.begin()->first);
}

}  // namespace internal

void SessionResume::operator()() const {
  wait_->end();
}

namespace {

// Shared with whoever may still call when the handler is gone.
struct Answer {
  std::atomic<bool> is_given{false};
  Outcome outcome;
};

SessionTask run_to_answer(const SessionStarter& start, const SessionRecord& record,
                          AsyncSessionContext& session) {
  const auto answer = std::make_shared<Answer>();
  const Status ended = co_await session.until([&](const SessionResume& resume) {
    start(record, session, [answer, resume](Outcome outcome) {
      if (!answer->is_given.exchange(true)) {
        answer->outcome = std::move(outcome);
        resume();
      }
    });
  });
  if (!ended.ok()) {
    co_return Outcome::retry(ended.error());
  }
  co_return std::move(answer->outcome);
}

}  // namespace

AsyncSessionHandler async_session_handler(SessionStarter start) {
  return [start = std::move(start)](const SessionRecord& record, AsyncSessionContext& session) {
    return run_to_answer(start, record, session);
  };
}

}  // namespace weir
