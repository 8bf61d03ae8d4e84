#pragma once

#include "log/partition/partition.h"

#include <deque>
#include <optional>

namespace weir::log {

// The last batches of a log, as they were appended: a reader at the tail gets the same buffers.
//
// Threading: confined to its owner.
// Bounds:    the capacities of the buffers add up to at most `bytes_max`; the oldest go first. A
//            small batch in a far larger buffer is copied into one of its size.
class TailCache {
 public:
  explicit TailCache(std::size_t bytes_max) : bytes_max_(bytes_max) {}

  // Requires: `header` goes on where the last batch ended.
  void push(SharedBytes batch, const BatchHeader& header);
  // Whole batches from the one that holds `from`, ending at or below `limit`: at least one if there
  // is any, then up to `bytes_max`. False when `from` lies before the first batch.
  bool collect(Offset from, Offset limit, std::size_t bytes_max,
               std::vector<FetchedBatch>& out) const;
  void clear();
  // Forgets what ends at or below `end`.
  void drop_below(Offset end);
  std::size_t size_bytes() const { return bytes_; }

 private:
  struct Entry {
    SharedBytes bytes;
    BatchHeader header;
  };
  std::optional<std::deque<Entry>> entries_;  // none while empty: a deque alone takes 576 bytes
  std::size_t bytes_ = 0;
  std::size_t bytes_max_;
};

}  // namespace weir::log
