#include "log/segment/offset_index.h"

#include <weir/runtime/endian.h>

#include <fmt/format.h>

#include <algorithm>

namespace weir::log {

void OffsetIndex::append(Offset last_offset, std::uint64_t position) {
  const std::int64_t relative = last_offset.value() - base_.value();
  if (relative < 0 || relative > INT32_MAX || position > INT32_MAX) {
    return;
  }
  // Not asserted: the last entry may come from a file, and files lie.
  if (!entries_.empty() &&
      (relative <= entries_.back().relative_offset || position <= entries_.back().position)) {
    return;
  }
  entries_.push_back({static_cast<std::int32_t>(relative), static_cast<std::uint32_t>(position)});
}

std::optional<OffsetIndex::Entry> OffsetIndex::lookup(Offset target) const {
  const std::int64_t relative = target.value() - base_.value();
  const auto above = std::upper_bound(
      entries_.begin(), entries_.end(), relative,
      [](std::int64_t value, const Packed& entry) { return value < entry.relative_offset; });
  if (above == entries_.begin()) {
    return std::nullopt;
  }
  return at(static_cast<std::size_t>(above - entries_.begin()) - 1);
}

std::string OffsetIndex::encode() const {
  std::string out(entries_.size() * kEntryBytes, '\0');
  char* next = out.data();
  for (const Packed& entry : entries_) {
    next = store_be(next, entry.relative_offset);
    next = store_be(next, entry.position);
  }
  return out;
}

Result<OffsetIndex> OffsetIndex::parse(Offset base, ByteView file, std::uint64_t log_bytes) {
  if (file.size() % kEntryBytes != 0) {
    return Error(Errc::kCorrupt,
                 fmt::format("{} bytes are no multiple of {}", file.size(), kEntryBytes));
  }
  std::size_t count = file.size() / kEntryBytes;
  while (count > 0 && load_be<std::uint64_t>(file.data() + (count - 1) * kEntryBytes) == 0) {
    --count;
  }
  OffsetIndex index(base);
  index.entries_.reserve(count);
  for (std::size_t i = 0; i < count; ++i) {
    const char* in = file.data() + i * kEntryBytes;
    const Packed entry{load_be<std::int32_t>(in), load_be<std::uint32_t>(in + 4)};
    const bool rises = i == 0 || (entry.relative_offset > index.entries_.back().relative_offset &&
                                  entry.position > index.entries_.back().position);
    if (entry.relative_offset < 0 || entry.position >= log_bytes || !rises) {
      return Error(Errc::kCorrupt,
                   fmt::format("entry {} (relative offset {}, position {}) does not rise or points "
                               "behind the log's {} bytes",
                               i, entry.relative_offset, entry.position, log_bytes));
    }
    index.entries_.push_back(entry);
  }
  return index;
}

}  // namespace weir::log
