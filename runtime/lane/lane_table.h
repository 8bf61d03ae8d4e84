#pragma once

#include "runtime/lane/chunked_pool.h"

#include <cstddef>
#include <cstdint>
#include <vector>

namespace weir::internal {

// Finds a lane by 32 bits of its hash; the caller compares the key (session-workers D5). Open
// addressing, linear probing, removal by moving back, so that no tombstone stays behind a million
// sessions that came and went.
//
// Bounds:    8 bytes an entry, between a quarter and three quarters full (after a shrink: a
//            sixteenth): 11 to 32 bytes a lane. Growing copies entries without touching a lane.
// Threading: confined to its owner.
class LaneTable {
 public:
  LaneTable() : entries_(kEntriesMin) {}

  void prefetch(std::uint32_t hash) const { __builtin_prefetch(&entries_[hash & mask()]); }
  // The lane that find() will look at first, a guess to prefetch; kNone.
  std::uint32_t guess(std::uint32_t hash) const { return entries_[hash & mask()].lane; }
  // The lane for which `matches(lane)` holds; kNone.
  template <class Matches>
  std::uint32_t find(std::uint32_t hash, Matches matches) const {
    for (std::size_t i = hash & mask(); entries_[i].lane != kNone; i = (i + 1) & mask()) {
      if (entries_[i].hash == hash && matches(entries_[i].lane)) {
        return entries_[i].lane;
      }
    }
    return kNone;
  }
  // Requires: the lane is not in.
  void insert(std::uint32_t hash, std::uint32_t lane) {
    if ((size_ + 1) * 4 > entries_.size() * 3) {
      resize(entries_.size() * 2);
    }
    place({hash, lane});
    ++size_;
  }
  // Requires: the lane is in.
  void erase(std::uint32_t hash, std::uint32_t lane) {
    std::size_t hole = hash & mask();
    while (entries_[hole].lane != lane) {
      hole = (hole + 1) & mask();
    }
    for (std::size_t i = (hole + 1) & mask(); entries_[i].lane != kNone; i = (i + 1) & mask()) {
      const std::size_t home = entries_[i].hash & mask();
      // Moves back unless that would put it before its home.
      if (((i - home) & mask()) >= ((i - hole) & mask())) {
        entries_[hole] = entries_[i];
        hole = i;
      }
    }
    entries_[hole] = {};
    --size_;
    if (entries_.size() > kEntriesMin && size_ * 16 < entries_.size()) {
      resize(entries_.size() / 4);
    }
  }
  std::size_t size() const { return size_; }
  std::size_t bytes() const { return entries_.size() * sizeof(Entry); }

 private:
  static constexpr std::size_t kEntriesMin = 256;

  struct Entry {
    std::uint32_t hash = 0;
    std::uint32_t lane = kNone;
  };

  std::size_t mask() const { return entries_.size() - 1; }
  void place(Entry entry) {
    std::size_t i = entry.hash & mask();
    while (entries_[i].lane != kNone) {
      i = (i + 1) & mask();
    }
    entries_[i] = entry;
  }
  void resize(std::size_t size) {
    std::vector<Entry> old(size < kEntriesMin ? kEntriesMin : size);
    old.swap(entries_);
    for (const Entry& entry : old) {
      if (entry.lane != kNone) {
        place(entry);
      }
    }
  }

  std::vector<Entry> entries_;
  std::size_t size_ = 0;
};

}  // namespace weir::internal
