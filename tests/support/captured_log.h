#pragma once

#include <weir/runtime/logger.h>

#include <string>
#include <string_view>

namespace weir::testing {

// Keeps what is logged while it lives.
class CapturedLog {
 public:
  CapturedLog()
      : previous_(set_log_sink(
            [this](LogLevel, std::string_view line) { text_ += std::string(line) + "\n"; })) {}
  ~CapturedLog() { set_log_sink(previous_); }
  CapturedLog(const CapturedLog&) = delete;
  CapturedLog& operator=(const CapturedLog&) = delete;
  const std::string& text() const { return text_; }

 private:
  std::string text_;
  LogSink previous_;
};

}  // namespace weir::testing
