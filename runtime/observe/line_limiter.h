#pragma once

#include <weir/runtime/clock.h>
#include <weir/runtime/logger.h>

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace weir::internal {

// Decides which diagnostic lines are written, so that one repeated failure cannot fill a disk.
//
// Of lines that are equal in level and text, the first kBurst in a window of kWindow are written,
// the last of them with a note; the others are counted. The count is written with the next copy
// after the window, or on its own when the line is pushed out of the table.
//
// Threading: confined to its owner's lock. Pure: time is an argument.
// Bounds:    remembers kLines lines; a new one pushes out the one that was used longest ago.
class LineLimiter {
 public:
  static constexpr std::uint64_t kBurst = 5;
  static constexpr Duration kWindow = std::chrono::seconds(10);
  static constexpr std::size_t kLines = 64;

  struct Line {
    LogLevel level;
    std::string text;
  };
  // The lines to write now, at most two.
  std::vector<Line> admit(LogLevel level, std::string_view text, MonotonicTime now);

 private:
  struct Entry {
    LogLevel level;
    std::string text;
    MonotonicTime window_start;
    MonotonicTime last_used;
    std::uint64_t seen = 0;  // in the window
  };

  Entry* find(LogLevel level, std::string_view text);
  // Makes room when the table is full; adds what the evicted entry still owes to `out`.
  void evict(std::vector<Line>& out);

  std::vector<Entry> entries_;
};

}  // namespace weir::internal
