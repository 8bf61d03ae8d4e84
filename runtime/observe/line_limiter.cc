#include "runtime/observe/line_limiter.h"

#include <fmt/core.h>

#include <algorithm>
#include <utility>

namespace weir::internal {

LineLimiter::Entry* LineLimiter::find(LogLevel level, std::string_view text) {
  const auto found = std::find_if(entries_.begin(), entries_.end(), [&](const Entry& entry) {
    return entry.level == level && entry.text == text;
  });
  return found == entries_.end() ? nullptr : &*found;
}

void LineLimiter::evict(std::vector<Line>& out) {
  if (entries_.size() < kLines) {
    return;
  }
  const auto oldest =
      std::min_element(entries_.begin(), entries_.end(),
                       [](const Entry& a, const Entry& b) { return a.last_used < b.last_used; });
  if (oldest->seen > kBurst) {
    out.push_back(
        {oldest->level, fmt::format("{} suppressed={}", oldest->text, oldest->seen - kBurst)});
  }
  entries_.erase(oldest);
}

std::vector<LineLimiter::Line> LineLimiter::admit(LogLevel level, std::string_view text,
                                                  MonotonicTime now) {
  std::vector<Line> out;
  Entry* entry = find(level, text);
  if (entry == nullptr) {
    evict(out);
    entries_.push_back({level, std::string(text), now, now, 1});
    out.push_back({level, std::string(text)});
    return out;
  }
  entry->last_used = now;
  if (now - entry->window_start >= kWindow) {
    const std::uint64_t suppressed = entry->seen > kBurst ? entry->seen - kBurst : 0;
    entry->window_start = now;
    entry->seen = 1;
    out.push_back({level, suppressed == 0 ? std::string(text)
                                          : fmt::format("{} suppressed={}", text, suppressed)});
    return out;
  }
  ++entry->seen;
  if (entry->seen < kBurst) {
    out.push_back({level, std::string(text)});
  } else if (entry->seen == kBurst) {
    constexpr auto kSeconds = std::chrono::duration_cast<std::chrono::seconds>(kWindow).count();
    out.push_back({level, fmt::format("{} repeats=counted_for_{}s", text, kSeconds)});
  }
  return out;
}

}  // namespace weir::internal
