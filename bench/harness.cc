#include "bench/harness.h"

#include <fmt/core.h>

#include <cstdio>
#include <ctime>
#include <fstream>

#if __has_include(<valgrind/callgrind.h>)
#include <valgrind/callgrind.h>
#else
#define CALLGRIND_START_INSTRUMENTATION
#define CALLGRIND_STOP_INSTRUMENTATION
#endif

namespace weir::bench {
namespace {

std::int64_t read_clock(clockid_t clock) {
  timespec time{};
  clock_gettime(clock, &time);
  return static_cast<std::int64_t>(time.tv_sec) * 1'000'000'000 + time.tv_nsec;
}

// "5" sets the high-water mark back to the present size (proc(5), clear_refs).
void reset_peak_rss() {
  std::ofstream("/proc/self/clear_refs") << "5";
}

std::uint64_t peak_rss() {
  std::ifstream status("/proc/self/status");
  std::string word;
  while (status >> word) {
    if (word == "VmHWM:") {
      std::uint64_t kilobytes = 0;
      status >> kilobytes;
      return kilobytes << 10U;
    }
  }
  return 0;
}

}  // namespace

void Run::start() {
  if (counting_) {
    CALLGRIND_START_INSTRUMENTATION;
    return;
  }
  if (wall_ns_ == 0) {
    reset_peak_rss();
  }
  wall_started_ = read_clock(CLOCK_MONOTONIC);
  cpu_started_ = read_clock(CLOCK_PROCESS_CPUTIME_ID);
}

void Run::stop() {
  if (counting_) {
    CALLGRIND_STOP_INSTRUMENTATION;
    return;
  }
  cpu_ns_ += static_cast<double>(read_clock(CLOCK_PROCESS_CPUTIME_ID) - cpu_started_);
  wall_ns_ += static_cast<double>(read_clock(CLOCK_MONOTONIC) - wall_started_);
  peak_rss_bytes_ = peak_rss();
}

void Run::note(std::string name, double value, std::string unit) {
  notes_.push_back({std::move(name), value, std::move(unit)});
}

Status expect(bool condition, const std::string& what) {
  return condition ? Status() : Error(Errc::kInternal, "wrong result: " + what);
}

Status expect_equal(std::uint64_t is, std::uint64_t must_be, const std::string& what) {
  return expect(is == must_be, fmt::format("{} is {} and must be {}", what, is, must_be));
}

}  // namespace weir::bench
