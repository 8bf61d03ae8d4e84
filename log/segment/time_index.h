#pragma once

#include <weir/runtime/bytes.h>
#include <weir/runtime/result.h>
#include <weir/runtime/types.h>

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace weir::log {

// Sparse map from timestamp to offset of one segment. File format (docs/formats/indexes.md, Kafka's
// TimeIndex): entries of 12 bytes, big-endian,
//
//   0 i64 largest timestamp so far, ms | 8 i32 last offset of the first batch that had it, relative
//
// both strictly rising: no record up to that offset is later than the timestamp. A hint, as the
// offset index is.
//
// Threading: confined to its owner.
class TimeIndex {
 public:
  static constexpr std::size_t kEntryBytes = 12;
  struct Entry {
    Timestamp timestamp = kNoTimestamp;
    Offset offset;
    friend bool operator==(const Entry&, const Entry&) = default;
  };

  explicit TimeIndex(Offset base) : base_(base) {}

  // Adds an entry unless the timestamp or the offset did not rise or does not fit.
  void append(Timestamp timestamp, Offset offset);
  // The last entry with a timestamp at or below `time`.
  std::optional<Entry> lookup(Timestamp time) const;

  std::size_t size() const { return entries_.size(); }
  bool empty() const { return entries_.empty(); }
  Entry at(std::size_t i) const {
    return {entries_[i].timestamp, base_.plus(entries_[i].relative_offset)};
  }
  std::optional<Entry> last() const {
    return empty() ? std::nullopt : std::optional(at(size() - 1));
  }

  std::string encode() const;
  // Errors: kCorrupt when entries do not rise or the size is odd. Zeros behind the last entry are
  // the rest of a preallocated file.
  static Result<TimeIndex> parse(Offset base, ByteView file);

 private:
  struct Packed {
    Timestamp timestamp;
    std::int32_t relative_offset;
  };
  Offset base_;
  std::vector<Packed> entries_;
};

}  // namespace weir::log
