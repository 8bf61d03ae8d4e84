#pragma once

#include <weir/operators/session.h>
#include <weir/runtime/assert.h>

#include <coroutine>
#include <exception>
#include <functional>
#include <memory>
#include <optional>
#include <stop_token>
#include <utility>

// Handlers of sessions that wait without a thread: for a timer, a socket, another service
// (docs/sessions.md). A coroutine a record:
//
//   weir::SessionTask answer(const weir::SessionRecord& record,
//                            weir::AsyncSessionContext& session) {
//     boost::system::error_code failure;
//     const weir::Status ended = co_await session.until([&](weir::SessionResume resume) {
//       async_ask(record.record.value, [&, resume](auto error) { failure = error; resume(); });
//     });
//     ...
//     co_return weir::Outcome::ok();
//   }

namespace weir {

namespace internal {
class SessionWait;
class SessionTaskAccess;
}  // namespace internal

// Ends one wait of a handler. The first call counts; later ones, and calls when the processor is
// gone, do nothing. When the last copy goes without a call, the wait ends with an error.
// Threading: any thread; what was written before the call is seen by the handler.
class SessionResume {
 public:
  explicit SessionResume(std::shared_ptr<internal::SessionWait> wait) : wait_(std::move(wait)) {}
  void operator()() const;

 private:
  std::shared_ptr<internal::SessionWait> wait_;
};

// As SessionContext, and what a handler may wait for. Everything of the handler runs on its
// worker's thread, also behind a co_await; other sessions' handlers run while it waits.
class AsyncSessionContext : public SessionContext {
 public:
  // co_await: calls `start(SessionResume)`, ends when that is called. Status: kClosed when every
  // copy of it went uncalled. Whatever `start` began may use what the handler owns until then: it
  // must call, or drop, its SessionResume when stop_token() asks for it.
  template <class Start>
  auto until(Start start) {
    return Waiter<Start>{*this, std::move(start)};
  }
  // co_await: at least `delay`. False when a stop was requested before it passed.
  auto wait_for(Duration delay) { return Sleeper{*this, delay}; }
  // The attempt's time is over, or the program closes. Its callbacks run on the worker's thread.
  virtual std::stop_token stop_token() const = 0;

 private:
  template <class Start>
  struct Waiter {
    AsyncSessionContext& context;
    Start start;
    bool await_ready() const noexcept { return false; }
    void await_suspend(std::coroutine_handle<> /*handler*/) {
      try {
        start(context.begin_wait());
      } catch (...) {
        context.forget_wait();
        throw;
      }
    }
    Status await_resume() { return context.end_wait(); }
  };
  struct Sleeper {
    AsyncSessionContext& context;
    Duration delay;
    bool await_ready() const noexcept { return context.is_stop_requested(); }
    void await_suspend(std::coroutine_handle<> /*handler*/) { context.begin_sleep(delay); }
    bool await_resume() const { return !context.stop_token().stop_requested(); }
  };

  virtual SessionResume begin_wait() = 0;
  virtual void forget_wait() = 0;
  virtual Status end_wait() = 0;
  virtual void begin_sleep(Duration delay) = 0;
};

// What an asynchronous handler returns: a coroutine that ends with an Outcome. What it throws goes
// through SessionProcessorOptions::classify. Its parameters live until it has ended.
class SessionTask {
 public:
  struct promise_type {  // NOLINT(readability-identifier-naming): the language's name
    SessionTask get_return_object() {
      return SessionTask(std::coroutine_handle<promise_type>::from_promise(*this));
    }
    std::suspend_always initial_suspend() const noexcept { return {}; }
    std::suspend_always final_suspend() const noexcept { return {}; }
    void return_value(Outcome outcome) { result = std::move(outcome); }
    void unhandled_exception() noexcept { exception = std::current_exception(); }

    Outcome result;
    std::exception_ptr exception;
  };

  SessionTask(SessionTask&& other) noexcept : handle_(std::exchange(other.handle_, nullptr)) {}
  SessionTask& operator=(SessionTask&& other) noexcept {
    std::swap(handle_, other.handle_);
    return *this;
  }
  ~SessionTask() {
    if (handle_) {
      handle_.destroy();
    }
  }

 private:
  friend class internal::SessionTaskAccess;
  explicit SessionTask(std::coroutine_handle<promise_type> handle) : handle_(handle) {}
  std::coroutine_handle<promise_type> handle_;
};

// Called on the workers' threads. Up to session.in.flight.max of a worker's handlers wait at once,
// for one session never two.
using AsyncSessionHandler = std::function<SessionTask(const SessionRecord&, AsyncSessionContext&)>;

// Ends an attempt of a handler without coroutines: the first call counts, on any thread. When the
// last copy goes without a call, the record is tried again.
using SessionDone = std::function<void(Outcome)>;
// Starts the work on a record and returns; the record and the context live until `done` is called.
// The context is the worker's thread's: use it before returning.
using SessionStarter = std::function<void(const SessionRecord&, AsyncSessionContext&, SessionDone)>;
AsyncSessionHandler async_session_handler(SessionStarter start);

// As SessionProcessor::open().
Result<std::unique_ptr<SessionProcessor>> open_async_sessions(Backend& backend, const Clock& clock,
                                                              SessionProcessorOptions options,
                                                              AsyncSessionHandler handler);

}  // namespace weir
