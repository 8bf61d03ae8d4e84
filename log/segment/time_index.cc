#include "log/segment/time_index.h"

#include <weir/runtime/endian.h>

#include <fmt/format.h>

#include <algorithm>

namespace weir::log {
namespace {

bool is_zero(const char* entry) {
  return load_be<std::uint64_t>(entry) == 0 && load_be<std::uint32_t>(entry + 8) == 0;
}

}  // namespace

void TimeIndex::append(Timestamp timestamp, Offset offset) {
  // Kafka's empty index ends at NO_TIMESTAMP: a batch without time leaves no entry.
  const Timestamp last = entries_.empty() ? kNoTimestamp : entries_.back().timestamp;
  if (timestamp <= last) {
    return;
  }
  const std::int64_t relative = offset.value() - base_.value();
  if (relative < 0 || relative > INT32_MAX ||
      (!entries_.empty() && relative <= entries_.back().relative_offset)) {
    return;
  }
  entries_.push_back({timestamp, static_cast<std::int32_t>(relative)});
}

std::optional<TimeIndex::Entry> TimeIndex::lookup(Timestamp time) const {
  const auto above = std::upper_bound(
      entries_.begin(), entries_.end(), time,
      [](Timestamp value, const Packed& entry) { return value < entry.timestamp; });
  if (above == entries_.begin()) {
    return std::nullopt;
  }
  return at(static_cast<std::size_t>(above - entries_.begin()) - 1);
}

std::string TimeIndex::encode() const {
  std::string out(entries_.size() * kEntryBytes, '\0');
  char* next = out.data();
  for (const Packed& entry : entries_) {
    next = store_be(next, entry.timestamp);
    next = store_be(next, entry.relative_offset);
  }
  return out;
}

Result<TimeIndex> TimeIndex::parse(Offset base, ByteView file) {
  if (file.size() % kEntryBytes != 0) {
    return Error(Errc::kCorrupt,
                 fmt::format("{} bytes are no multiple of {}", file.size(), kEntryBytes));
  }
  std::size_t count = file.size() / kEntryBytes;
  while (count > 0 && is_zero(file.data() + (count - 1) * kEntryBytes)) {
    --count;
  }
  TimeIndex index(base);
  index.entries_.reserve(count);
  for (std::size_t i = 0; i < count; ++i) {
    const char* in = file.data() + i * kEntryBytes;
    const Packed entry{load_be<std::int64_t>(in), load_be<std::int32_t>(in + 8)};
    const bool rises = i == 0 || (entry.timestamp > index.entries_.back().timestamp &&
                                  entry.relative_offset > index.entries_.back().relative_offset);
    if (entry.timestamp < 0 || entry.relative_offset < 0 || !rises) {
      return Error(Errc::kCorrupt,
                   fmt::format("entry {} (timestamp {}, relative offset {}) does not rise", i,
                               entry.timestamp, entry.relative_offset));
    }
    index.entries_.push_back(entry);
  }
  return index;
}

}  // namespace weir::log
