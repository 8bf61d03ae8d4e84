#include "runtime/observe/line_limiter.h"

#include <weir/runtime/clock.h>
#include <weir/runtime/logger.h>
#include <weir/runtime/thread_annotations.h>

#include <fmt/chrono.h>
#include <fmt/format.h>

#include <atomic>
#include <cerrno>
#include <chrono>
#include <exception>
#include <string>
#include <unistd.h>
#include <utility>

namespace weir {

namespace {

// Longer lines are cut: a diagnostic is for a person.
constexpr std::size_t kLineBytesMax = 16U << 10U;

std::atomic<LogLevel> g_level{LogLevel::kInfo};

std::string_view level_name(LogLevel level) {
  switch (level) {
    case LogLevel::kDebug:
      return "DEBUG";
    case LogLevel::kInfo:
      return "INFO ";
    case LogLevel::kWarn:
      return "WARN ";
    case LogLevel::kError:
    case LogLevel::kOff:
      break;
  }
  return "ERROR";
}

// One write(2) a line, so that lines of several threads and processes do not mix.
void write_stderr(LogLevel level, std::string_view text) {
  const Timestamp now = system_clock().now();
  const std::chrono::sys_time<std::chrono::milliseconds> time{std::chrono::milliseconds(now)};
  const std::string line =
      fmt::format("{} {:%Y-%m-%dT%H:%M:%S}.{:03}Z {}\n", level_name(level),
                  fmt::gmtime(std::chrono::system_clock::to_time_t(
                      std::chrono::time_point_cast<std::chrono::system_clock::duration>(time))),
                  now % 1000, text);
  std::string_view rest = line;
  while (!rest.empty()) {
    const ssize_t written = ::write(STDERR_FILENO, rest.data(), rest.size());
    if (written < 0 && errno == EINTR) {
      continue;
    }
    if (written <= 0) {
      return;  // nowhere is left to complain to
    }
    rest.remove_prefix(static_cast<std::size_t>(written));
  }
}

struct Logger {
  Mutex mutex;
  LogSink sink WEIR_GUARDED_BY(mutex) = write_stderr;
  internal::LineLimiter limiter WEIR_GUARDED_BY(mutex);
};

// Never destroyed: destructors of static objects may write lines.
Logger& logger() {
  static Logger* const instance = new Logger;
  return *instance;
}

// True while this thread runs the sink: a line that the sink itself writes goes to stderr instead
// of waiting for its own lock.
thread_local bool t_in_sink = false;

// A line stays one line, whatever was formatted into it.
std::string one_line(std::string_view text) {
  std::string line;
  line.reserve(text.size());
  for (const char c : text.substr(0, kLineBytesMax)) {
    if (c == '\n') {
      line += "\\n";
    } else if (c == '\r') {
      line += "\\r";
    } else {
      line += c;
    }
  }
  if (text.size() > kLineBytesMax) {
    line += fmt::format("... cut_bytes={}", text.size() - kLineBytesMax);
  }
  return line;
}

}  // namespace

void set_log_level(LogLevel level) {
  g_level.store(level, std::memory_order_relaxed);
}

LogLevel log_level() noexcept {
  return g_level.load(std::memory_order_relaxed);
}

LogSink set_log_sink(LogSink sink) {
  if (sink == nullptr) {
    sink = write_stderr;
  }
  Logger& target = logger();
  MutexLock lock(target.mutex);
  std::swap(target.sink, sink);
  return sink;
}

namespace internal {

void write_log(LogLevel level, fmt::string_view format, fmt::format_args args) {
  std::string text;
  try {
    text = one_line(fmt::vformat(format, args));
  } catch (const std::exception& problem) {  // a formatter of some argument type
    text = one_line(fmt::format("line could not be formatted format=\"{}\" cause=\"{}\"",
                                std::string_view(format.data(), format.size()), problem.what()));
  }
  if (t_in_sink) {
    write_stderr(level, text);
    return;
  }
  Logger& target = logger();
  // Held while the sink runs, because the contract promises one call at a time and none after
  // set_log_sink() has replaced it.
  MutexLock lock(target.mutex);
  t_in_sink = true;
  for (const LineLimiter::Line& line :
       target.limiter.admit(level, text, system_clock().monotonic())) {
    try {
      target.sink(line.level, line.text);
    } catch (...) {  // a user's function; the line must not be lost, nor the caller disturbed
      write_stderr(line.level, line.text);
    }
  }
  t_in_sink = false;
}

}  // namespace internal

}  // namespace weir
