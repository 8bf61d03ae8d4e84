#pragma once

#include "log/broker/log_directory.h"
#include "log/embedded/embedded_admin.h"

#include <weir/log/embedded_log.h>
#include <weir/runtime/thread_annotations.h>

#include <functional>
#include <memory>

namespace weir::log {

// Keeps the background work of a log within its life: what an executor runs holds it, enters it
// first, and stop() waits for whoever is inside.
// Threading: thread-safe.
class Background {
 public:
  // False once stopped; else leave() must follow.
  bool enter() {
    const MutexLock lock(mutex_);
    inside_ += stopped_ ? 0 : 1;
    return !stopped_;
  }
  void leave() {
    const MutexLock lock(mutex_);
    --inside_;
    left_.notify_all();
  }
  void stop() {
    const MutexLock lock(mutex_);
    stopped_ = true;
    while (inside_ > 0) {
      left_.wait(mutex_);
    }
  }

 private:
  Mutex mutex_;
  CondVar left_;
  bool stopped_ WEIR_GUARDED_BY(mutex_) = false;
  int inside_ WEIR_GUARDED_BY(mutex_) = 0;
};

// Threading: thread-safe, as EmbeddedLog; what has no guard is set before the log is handed out.
struct EmbeddedLog::State {
  EmbeddedLogOptions options;
  const std::shared_ptr<Background> background = std::make_shared<Background>();
  std::unique_ptr<EmbeddedAdmin> admin;
  RecoveryResult recovery;
  std::unique_ptr<Executor> own_executor;
  Executor* executor = nullptr;  // null: no periodic work

  Mutex mutex;
  bool due WEIR_GUARDED_BY(mutex) = false;  // a checkpoint, before its time
  Executor::TimerId timer WEIR_GUARDED_BY(mutex) = 0;
  Executor::TimerId scrub_timer WEIR_GUARDED_BY(mutex) = 0;
  Executor::TimerId transaction_timer WEIR_GUARDED_BY(mutex) = 0;
  Executor::TimerId cleaner_timer WEIR_GUARDED_BY(mutex) = 0;
  Executor::TimerId group_timer WEIR_GUARDED_BY(mutex) = 0;
  Executor::TimerId expiry_timer WEIR_GUARDED_BY(mutex) = 0;

  // Goes first: until it is gone it may ask for a checkpoint.
  std::unique_ptr<LogDirectory> directory;

  // Runs `work` on the executor after `wait`, unless the log is closed by then.
  Executor::TimerId run_after(Duration wait, std::function<void()> work);
  void schedule_checkpoint();
  void checkpoint_soon();
  void checkpoint();
  void schedule_scrub(Duration wait);
  void schedule_transactions();
  void schedule_cleaner(Duration wait);
  void schedule_groups(Duration wait);
  void schedule_expiry();
  void stop_background();
};

}  // namespace weir::log
