#pragma once

#include <fmt/core.h>

#include <functional>
#include <string>
#include <string_view>

// Diagnostics for operators: one line, "what happened key=value ...", written where the decision is
// made, once. Not for records. Errors that are returned are not logged too.

namespace weir {

enum class LogLevel { kDebug, kInfo, kWarn, kError, kOff };

// Lines below it cost a relaxed load. Default kInfo. Thread-safe.
void set_log_level(LogLevel level);
LogLevel log_level() noexcept;

// Replaces where lines go (default: stderr as "INFO  2026-01-02T03:04:05.678Z text"). The sink may
// be called from any thread, one call at a time. Returns the previous one.
using LogSink = std::function<void(LogLevel, std::string_view line)>;
LogSink set_log_sink(LogSink sink);

namespace internal {
void write_log(LogLevel level, fmt::string_view format, fmt::format_args args);
}

}  // namespace weir

#define WEIR_LOG(level, ...)                            \
  do {                                                  \
    if ((level) >= ::weir::log_level()) {               \
      ::weir::internal::log_line((level), __VA_ARGS__); \
    }                                                   \
  } while (false)
#define WEIR_DEBUG(...) WEIR_LOG(::weir::LogLevel::kDebug, __VA_ARGS__)
#define WEIR_INFO(...) WEIR_LOG(::weir::LogLevel::kInfo, __VA_ARGS__)
#define WEIR_WARN(...) WEIR_LOG(::weir::LogLevel::kWarn, __VA_ARGS__)
#define WEIR_ERROR(...) WEIR_LOG(::weir::LogLevel::kError, __VA_ARGS__)

namespace weir::internal {
template <class... Args>
void log_line(LogLevel level, fmt::format_string<Args...> format, Args&&... args) {
  write_log(level, format, fmt::make_format_args(args...));
}
}  // namespace weir::internal
