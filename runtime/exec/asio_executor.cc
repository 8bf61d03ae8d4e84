#include <weir/runtime/executor.h>
#include <weir/runtime/logger.h>
#include <weir/runtime/thread_annotations.h>

#include <boost/asio/executor_work_guard.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/post.hpp>
#include <boost/asio/steady_timer.hpp>

#include <algorithm>
#include <chrono>
#include <exception>
#include <thread>
#include <unordered_map>
#include <utility>
#include <vector>

namespace weir {

namespace {

namespace asio = boost::asio;

// "Never" in practice, and far from overflowing the clock.
constexpr Duration kDelayMax = std::chrono::hours(24 * 365 * 10);

// A task is user code: what it throws stops here.
void run_task(const Executor::Task& task) noexcept {
  try {
    task();
  } catch (const std::exception& thrown) {
    WEIR_ERROR("executor task threw what=\"{}\"", thrown.what());
  } catch (...) {
    WEIR_ERROR("executor task threw what=\"not a std::exception\"");
  }
}

class AsioExecutor final : public Executor {
 public:
  explicit AsioExecutor(int threads) : work_(asio::make_work_guard(io_)) {
    threads_.reserve(static_cast<std::size_t>(threads));
    for (int i = 0; i < threads; ++i) {
      threads_.emplace_back([this] { io_.run(); });
    }
  }

  ~AsioExecutor() override {
    drop_timers();
    work_.reset();
    for (std::thread& thread : threads_) {
      thread.join();
    }
  }

  void post(Task task) override {
    asio::post(io_, [task = std::move(task)] { run_task(task); });
  }

  TimerId post_after(Duration delay, Task task) override {
    MutexLock lock(mutex_);
    const TimerId id = next_id_++;
    if (stopping_) {
      return id;  // never due before the end
    }
    const auto due = std::chrono::steady_clock::now() + std::clamp(delay, Duration(0), kDelayMax);
    Timer& timer =
        timers_.emplace(id, Timer{asio::steady_timer(io_, due), std::move(task)}).first->second;
    // An expired timer's handler may already be queued when it is cancelled, so the map, and not
    // the error code, says whether the task still has to run.
    timer.alarm.async_wait([this, id](const boost::system::error_code&) { fire(id); });
    return id;
  }

  bool cancel(TimerId id) override {
    std::unordered_map<TimerId, Timer>::node_type dropped;
    MutexLock lock(mutex_);
    dropped = timers_.extract(id);
    return !dropped.empty();
  }

 private:
  struct Timer {
    asio::steady_timer alarm;
    Task task;
  };

  void fire(TimerId id) {
    std::unordered_map<TimerId, Timer>::node_type due;
    {
      MutexLock lock(mutex_);
      due = timers_.extract(id);
    }
    if (!due.empty()) {
      run_task(due.mapped().task);
    }
  }

  // Timers that are due now stay: they are finished like posted tasks.
  void drop_timers() {
    std::vector<std::unordered_map<TimerId, Timer>::node_type> dropped;
    MutexLock lock(mutex_);
    stopping_ = true;
    const auto now = std::chrono::steady_clock::now();
    for (auto timer = timers_.begin(); timer != timers_.end();) {
      const auto next = std::next(timer);
      if (timer->second.alarm.expiry() > now) {
        dropped.push_back(timers_.extract(timer));
      }
      timer = next;
    }
  }

  // No concurrency hint: with a hint of 1 a task that a task posts waits in a private queue and is
  // overtaken by later posts of other threads.
  asio::io_context io_;
  asio::executor_work_guard<asio::io_context::executor_type> work_;
  Mutex mutex_;
  std::unordered_map<TimerId, Timer> timers_ WEIR_GUARDED_BY(mutex_);
  TimerId next_id_ WEIR_GUARDED_BY(mutex_) = 1;
  bool stopping_ WEIR_GUARDED_BY(mutex_) = false;
  std::vector<std::thread> threads_;
};

}  // namespace

std::unique_ptr<Executor> make_asio_executor(int threads) {
  WEIR_ASSERT(threads > 0);
  return std::make_unique<AsioExecutor>(threads);
}

}  // namespace weir
