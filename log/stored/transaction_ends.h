#pragma once

#include "log/record/batch_header.h"

#include <map>
#include <optional>
#include <unordered_map>
#include <vector>

namespace weir::log {

// Which transactions of a partition were aborted and which are open, from its batches in offset
// order (reference K 3.6). Pure: batches in, answers out.
//
// Bounds: an entry an aborted transaction and one an open producer.
// Threading: confined to its owner while it is fed; const afterwards.
class TransactionEnds {
 public:
  struct Span {
    Offset first;
    Offset last;  // offset of the ABORT marker
    friend auto operator<=>(const Span&, const Span&) = default;
  };
  struct Open {
    Offset first;
    ProducerEpoch epoch;
    bool may_have_ended = false;  // its marker may stand in lost offsets
  };

  // What a .txnindex says. Before everything else; used where the markers do not tell.
  void know_aborted(ProducerId producer, Span span);

  // A batch with transactional records. One without records (what compaction leaves of it) says
  // nothing: its marker may be gone.
  void add_data(const BatchHeader& header);
  void add_marker(ProducerId producer, Offset at, bool is_commit);
  // Offsets [from, to) are lost.
  void add_loss(Offset from, Offset to);
  void finish();

  bool is_aborted(const BatchHeader& header) const;
  // Where reading of committed records ends: at the first open transaction that no lost marker may
  // have ended, else at `end`.
  Offset last_stable(Offset end) const;
  // Transactions whose end may be lost: what was made of them is that they are committed.
  std::vector<std::pair<ProducerId, Offset>> unknown_ends() const { return unknown_ends_; }
  const std::map<ProducerId, std::vector<Span>>& aborted() const { return aborted_; }

 private:
  void leave_unknown(ProducerId producer, const Open& open);

  std::map<ProducerId, std::vector<Span>> known_;    // of .txnindex, by last offset
  std::map<ProducerId, std::vector<Span>> aborted_;  // sorted by finish()
  std::map<ProducerId, Open> open_;
  std::vector<std::pair<ProducerId, Offset>> unknown_ends_;  // with the first offset
};

}  // namespace weir::log
