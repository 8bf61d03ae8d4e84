#pragma once

#include <weir/runtime/types.h>

#include <algorithm>
#include <map>
#include <set>

namespace weir::log {

// What holds the last stable offset of a partition back: transactions that are open, and those
// whose marker is not below the high watermark yet (Kafka's unreplicated transactions). Pure.
//
// Bounds: an entry an open transaction, and one a marker above the high watermark.
// Threading: confined to its owner.
class UnstableTransactions {
 public:
  void begin(Offset first) { open_.insert(first); }
  // `last`: of the marker.
  void end(Offset first, Offset last) {
    open_.erase(first);
    ended_.emplace(first, last);
  }
  void advance(Offset high_watermark) {
    if (!ended_.empty()) {
      std::erase_if(ended_, [&](const auto& one) { return one.second < high_watermark; });
    }
  }
  // Requires: advance(high_watermark) was called.
  Offset last_stable(Offset high_watermark) const {
    Offset stable = high_watermark;
    if (!open_.empty()) {
      stable = std::min(stable, *open_.begin());
    }
    if (!ended_.empty()) {
      stable = std::min(stable, ended_.begin()->first);
    }
    return stable;
  }
  // The first undecided offset, as a .txnindex entry has it: what is unreplicated does not count.
  Offset first_open(Offset otherwise) const { return open_.empty() ? otherwise : *open_.begin(); }

 private:
  std::set<Offset> open_;
  std::map<Offset, Offset> ended_;  // first offset, offset of the marker
};

}  // namespace weir::log
