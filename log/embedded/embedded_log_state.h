#pragma once

#include "log/broker/log_directory.h"
#include "log/embedded/embedded_admin.h"

#include <weir/log/embedded_log.h>
#include <weir/runtime/thread_annotations.h>

#include <memory>

namespace weir::log {

// Threading: thread-safe, as EmbeddedLog; what has no guard is set before the log is handed out.
struct EmbeddedLog::State {
  EmbeddedLogOptions options;
  std::unique_ptr<LogDirectory> directory;
  std::unique_ptr<EmbeddedAdmin> admin;
  RecoveryResult recovery;
  std::unique_ptr<Executor> own_executor;
  Executor* executor = nullptr;  // null: no periodic work

  Mutex mutex;
  bool closed WEIR_GUARDED_BY(mutex) = false;
  bool due WEIR_GUARDED_BY(mutex) = false;  // a checkpoint, before its time
  Executor::TimerId timer WEIR_GUARDED_BY(mutex) = 0;
  Executor::TimerId scrub_timer WEIR_GUARDED_BY(mutex) = 0;
  Executor::TimerId group_timer WEIR_GUARDED_BY(mutex) = 0;
  Executor::TimerId expiry_timer WEIR_GUARDED_BY(mutex) = 0;

  void schedule_checkpoint();
  void checkpoint_soon();
  void checkpoint();
  void schedule_scrub(Duration wait);
  void schedule_groups(Duration wait);
  void schedule_expiry();
  void stop_background();
};

}  // namespace weir::log
