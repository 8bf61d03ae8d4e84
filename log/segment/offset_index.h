#pragma once

#include <weir/runtime/bytes.h>
#include <weir/runtime/result.h>
#include <weir/runtime/types.h>

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace weir::log {

// Sparse map from offset to file position of one segment. File format (docs/formats/indexes.md,
// Kafka's OffsetIndex): entries of 8 bytes, big-endian,
//
//   0 i32 last offset of a batch, relative to the segment's base | 4 i32 position of its first byte
//
// both strictly rising. A hint: whoever uses an entry compares it with the batch that it names.
//
// Threading: confined to its owner.
// Bounds:    8 bytes an entry; the segment rolls at segment.index.bytes.
class OffsetIndex {
 public:
  static constexpr std::size_t kEntryBytes = 8;
  struct Entry {
    Offset last_offset;
    std::uint64_t position = 0;
    friend bool operator==(const Entry&, const Entry&) = default;
  };

  explicit OffsetIndex(Offset base) : base_(base) {}

  // An entry that does not rise in both fields or does not fit them is left out.
  void append(Offset last_offset, std::uint64_t position);
  // The last entry at or below `target`; nullopt when the search starts at position 0.
  std::optional<Entry> lookup(Offset target) const;

  std::size_t size() const { return entries_.size(); }
  bool empty() const { return entries_.empty(); }
  Entry at(std::size_t i) const {
    return {base_.plus(entries_[i].relative_offset), entries_[i].position};
  }
  std::optional<Entry> last() const {
    return empty() ? std::nullopt : std::optional(at(size() - 1));
  }

  std::string encode() const;
  // Reads a file. Zeros behind the last entry are the rest of a preallocated file.
  // Errors: kCorrupt when entries do not rise, point behind `log_bytes` or the size is odd.
  static Result<OffsetIndex> parse(Offset base, ByteView file, std::uint64_t log_bytes);

 private:
  struct Packed {
    std::int32_t relative_offset;
    std::uint32_t position;
  };
  Offset base_;
  std::vector<Packed> entries_;
};

}  // namespace weir::log
