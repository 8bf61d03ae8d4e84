#include "log/partition/leader_epoch_cache.h"

#include <weir/runtime/assert.h>

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <iterator>

namespace weir::log {
namespace {

// Takes one number and the character behind it off `text`.
template <class T>
bool take_number(std::string_view& text, char terminator, T& value) {
  const auto [stop, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  const auto used = static_cast<std::size_t>(stop - text.data());
  if (error != std::errc() || used >= text.size() || *stop != terminator) {
    return false;
  }
  text.remove_prefix(used + 1);
  return true;
}

Error bad_file(std::string_view what) {
  return Error(Errc::kCorrupt, fmt::format("{} {}", LeaderEpochCache::kFileName, what));
}

}  // namespace

bool LeaderEpochCache::assign(LeaderEpoch epoch, Offset start) {
  WEIR_ASSERT(epoch >= LeaderEpoch(0));
  if (!empty() && entries_.back().epoch == epoch && entries_.back().start <= start) {
    return false;
  }
  while (!empty() && (entries_.back().epoch >= epoch || entries_.back().start >= start)) {
    entries_.pop_back();
  }
  entries_.push_back({epoch, start});
  return true;
}

void LeaderEpochCache::truncate_from_end(Offset end) {
  while (!empty() && entries_.back().start >= end) {
    entries_.pop_back();
  }
}

void LeaderEpochCache::truncate_from_start(Offset start) {
  const auto later = std::find_if(entries_.begin(), entries_.end(),
                                  [&](const EpochStart& entry) { return entry.start > start; });
  if (later == entries_.begin()) {
    return;
  }
  const auto holds = std::prev(later);
  holds->start = start;
  entries_.erase(entries_.begin(), holds);
}

std::optional<Offset> LeaderEpochCache::end_offset(LeaderEpoch epoch, Offset log_end) const {
  if (empty() || epoch < LeaderEpoch(0) || epoch > latest()) {
    return std::nullopt;
  }
  const auto later = std::find_if(entries_.begin(), entries_.end(),
                                  [&](const EpochStart& entry) { return entry.epoch > epoch; });
  return later == entries_.end() ? log_end : later->start;
}

std::string LeaderEpochCache::encode() const {
  std::string text = fmt::format("0\n{}\n", entries_.size());
  for (const EpochStart& entry : entries_) {
    fmt::format_to(std::back_inserter(text), "{} {}\n", entry.epoch.value(), entry.start.value());
  }
  return text;
}

Result<LeaderEpochCache> LeaderEpochCache::parse(std::string_view text) {
  LeaderEpochCache cache;
  if (text.empty()) {
    return cache;
  }
  std::int32_t version = 0;
  std::size_t count = 0;
  if (!take_number(text, '\n', version) || version != 0 || !take_number(text, '\n', count)) {
    return bad_file("does not start with version 0 and a count");
  }
  for (std::size_t i = 0; i < count; ++i) {
    std::int32_t epoch = 0;
    std::int64_t start = 0;
    if (!take_number(text, ' ', epoch) || !take_number(text, '\n', start)) {
      return bad_file(fmt::format("has no entry {} of {}", i + 1, count));
    }
    const EpochStart entry{LeaderEpoch(epoch), Offset(start)};
    if (epoch < 0 || start < 0 ||
        (!cache.empty() && (entry.epoch <= cache.entries_.back().epoch ||
                            entry.start <= cache.entries_.back().start))) {
      return bad_file(fmt::format("has an entry {} that does not rise", i + 1));
    }
    cache.entries_.push_back(entry);
  }
  if (!text.empty()) {
    return bad_file(fmt::format("has more than its {} entries", count));
  }
  return cache;
}

}  // namespace weir::log
