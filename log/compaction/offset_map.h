#pragma once

#include <weir/runtime/bytes.h>
#include <weir/runtime/types.h>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

namespace weir::log {

// The latest offset of every key of a dirty range (Kafka's SkimpyOffsetMap). Kafka tells keys apart
// by a hash of 16 bytes; here the key itself is kept and compared, so two keys are never taken for
// one, whatever their hashes are.
//
// Threading: confined to its owner.
// Bounds:    at most `bytes_max` for keys and table together, also while the table grows: a key
//            costs its size, rounded up to 8, and 16 bytes, and 4 to 12 bytes of the table. An
//            empty map takes one key whatever its size, so that a pass always gets on.
class OffsetMap {
 public:
  // `seed` keeps whoever chooses keys from choosing those whose hashes are equal.
  OffsetMap(std::size_t bytes_max, std::uint64_t seed);

  // `key` stands at `offset`, which is not before any that was put. False when there is no room for
  // it; the map is then as it was.
  bool put(ByteView key, Offset offset);
  std::optional<Offset> find(ByteView key) const;

  std::size_t size() const { return size_; }
  bool empty() const { return size_ == 0; }
  std::size_t size_bytes() const { return used_ + table_.size() * sizeof(std::uint32_t); }

 private:
  struct Entry {
    std::int64_t offset;
    std::uint32_t key_bytes;
    std::uint32_t hash;
  };

  std::uint64_t hash_of(ByteView key) const;
  // The slot of `key`, or the free one where it belongs.
  std::size_t slot_of(ByteView key, std::uint64_t hash) const;
  Entry entry_at(std::uint32_t reference) const;
  bool grow();
  bool make_room(std::size_t bytes);

  std::size_t bytes_max_;
  const std::uint64_t seed_;
  std::unique_ptr<char[]> keys_;  // an Entry and its key, one behind the other, from `kUnit` on
  std::size_t used_;
  std::vector<std::uint32_t> table_;  // positions in keys_ by 8 bytes; 0: free
  std::size_t size_ = 0;
};

}  // namespace weir::log
