#include "log/compaction/offset_map.h"

#include <weir/runtime/assert.h>

#include <algorithm>
#include <cstddef>
#include <cstring>
#include <utility>

namespace weir::log {
namespace {

constexpr std::size_t kUnit = 8;  // positions are counted in these, so that 32 bits reach 32 GiB
constexpr std::size_t kReach = std::size_t{UINT32_MAX} * kUnit;
constexpr std::size_t kTableMin = 64;

std::uint64_t mix(std::uint64_t a, std::uint64_t b) {
  __extension__ using Wide = unsigned __int128;
  const Wide product = Wide{a} * b;
  return static_cast<std::uint64_t>(product) ^ static_cast<std::uint64_t>(product >> 64U);
}

std::uint64_t word_at(const char* data, std::size_t bytes) {
  std::uint64_t word = 0;
  std::memcpy(&word, data, bytes);
  return word;
}

}  // namespace

OffsetMap::OffsetMap(std::size_t bytes_max, std::uint64_t seed)
    : bytes_max_(std::min(bytes_max, kReach)),
      seed_(seed),
      // Not touched here: the system gives memory as it is filled.
      keys_(new char[bytes_max_ + kUnit]),
      used_(kUnit) {}

std::uint64_t OffsetMap::hash_of(ByteView key) const {
  constexpr std::uint64_t kFirst = 0x9e3779b97f4a7c15U;
  constexpr std::uint64_t kSecond = 0xd6e8feb86659fd93U;
  std::uint64_t hash = mix(seed_ ^ kFirst, key.size() ^ kSecond);
  const char* at = key.data();
  std::size_t left = key.size();
  while (left >= kUnit) {
    hash = mix(hash ^ word_at(at, kUnit), kFirst);
    at += kUnit;
    left -= kUnit;
  }
  return mix(hash ^ (left > 0 ? word_at(at, left) : 0), kSecond);
}

OffsetMap::Entry OffsetMap::entry_at(std::uint32_t reference) const {
  Entry entry{};
  std::memcpy(&entry, keys_.get() + std::size_t{reference} * kUnit, sizeof(entry));
  return entry;
}

std::size_t OffsetMap::slot_of(ByteView key, std::uint64_t hash) const {
  const std::size_t mask = table_.size() - 1;
  std::size_t slot = hash & mask;
  while (table_[slot] != 0) {
    const Entry entry = entry_at(table_[slot]);
    if (entry.hash == static_cast<std::uint32_t>(hash >> 32U) && entry.key_bytes == key.size()) {
      const char* const known = keys_.get() + std::size_t{table_[slot]} * kUnit + sizeof(Entry);
      if (ByteView(known, key.size()) == key) {
        return slot;
      }
    }
    slot = (slot + 1) & mask;
  }
  return slot;
}

bool OffsetMap::put(ByteView key, Offset offset) {
  if (key.size() > UINT32_MAX) {
    return false;
  }
  const std::uint64_t hash = hash_of(key);
  if (!table_.empty()) {
    if (const std::uint32_t known = table_[slot_of(key, hash)]; known != 0) {
      char* const at = keys_.get() + std::size_t{known} * kUnit;
      WEIR_ASSERT(entry_at(known).offset <= offset.value());
      const std::int64_t value = offset.value();
      std::memcpy(at + offsetof(Entry, offset), &value, sizeof(value));
      return true;
    }
  }
  const std::size_t needed = (sizeof(Entry) + key.size() + kUnit - 1) / kUnit * kUnit;
  if (!make_room(needed)) {
    return false;
  }
  const Entry entry{offset.value(), static_cast<std::uint32_t>(key.size()),
                    static_cast<std::uint32_t>(hash >> 32U)};
  std::memcpy(keys_.get() + used_, &entry, sizeof(entry));
  if (!key.empty()) {
    std::memcpy(keys_.get() + used_ + sizeof(entry), key.data(), key.size());
  }
  table_[slot_of(key, hash)] = static_cast<std::uint32_t>(used_ / kUnit);
  used_ += needed;
  ++size_;
  return true;
}

std::optional<Offset> OffsetMap::find(ByteView key) const {
  if (table_.empty() || key.size() > UINT32_MAX) {
    return std::nullopt;
  }
  const std::uint32_t known = table_[slot_of(key, hash_of(key))];
  return known == 0 ? std::nullopt : std::optional(Offset(entry_at(known).offset));
}

bool OffsetMap::make_room(std::size_t bytes) {
  const std::size_t least = kUnit + bytes + kTableMin * sizeof(std::uint32_t);
  if (size_ == 0 && bytes_max_ < least) {
    bytes_max_ = least;
    keys_.reset(new char[bytes_max_ + kUnit]);
  }
  if ((size_ + 1) * 4 > table_.size() * 3 && !grow()) {
    return false;
  }
  return size_bytes() + bytes <= bytes_max_;
}

bool OffsetMap::grow() {
  const std::size_t slots = std::max(kTableMin, table_.size() * 2);
  // Both tables live while the keys move.
  if (size_bytes() + slots * sizeof(std::uint32_t) > bytes_max_) {
    return false;
  }
  const std::vector<std::uint32_t> before =
      std::exchange(table_, std::vector<std::uint32_t>(slots));
  for (const std::uint32_t reference : before) {
    if (reference != 0) {
      const Entry entry = entry_at(reference);
      const ByteView key(keys_.get() + std::size_t{reference} * kUnit + sizeof(Entry),
                         entry.key_bytes);
      table_[slot_of(key, hash_of(key))] = reference;
    }
  }
  return true;
}

}  // namespace weir::log
