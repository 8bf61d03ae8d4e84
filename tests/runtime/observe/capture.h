#pragma once

#include <weir/runtime/logger.h>
#include <weir/runtime/thread_annotations.h>

#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace weir::testing {

// Takes the diagnostic lines while it lives. Threading: thread-safe.
class LogCapture {
 public:
  using Line = std::pair<LogLevel, std::string>;

  LogCapture() {
    previous_ = set_log_sink([this](LogLevel level, std::string_view text) {
      MutexLock lock(mutex_);
      lines_.emplace_back(level, text);
    });
  }
  ~LogCapture() { set_log_sink(std::move(previous_)); }
  LogCapture(const LogCapture&) = delete;
  LogCapture& operator=(const LogCapture&) = delete;

  std::vector<Line> lines() {
    MutexLock lock(mutex_);
    return lines_;
  }

 private:
  LogSink previous_;
  Mutex mutex_;
  std::vector<Line> lines_ WEIR_GUARDED_BY(mutex_);
};

}  // namespace weir::testing
