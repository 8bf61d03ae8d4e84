#pragma once

#include "log/record/batch_header.h"
#include "log/record/control_record.h"
#include "log/segment/aborted_transactions.h"

#include <map>
#include <set>
#include <vector>

namespace weir::log {

// Which batches of a walk in offset order belong to aborted transactions,
// and which markers stand for transactions of which nothing is left, when the walk began at the
// log's start (Kafka's CleanedTransactionMetadata). Pure.
//
// Threading: confined to its owner. Bounds: an entry an aborted transaction and a producer.
class CleanedTransactions {
 public:
  // All aborted transactions with a batch or a marker in what is walked, in any order; others do
  // no harm.
  explicit CleanedTransactions(AbortedTransactions aborted);

  // A batch that is no control batch. Whether its records are aborted.
  bool is_aborted(const BatchHeader& batch);
  // A marker; true when nothing of its transaction is left, so that it may go.
  bool marker_is_done(const BatchHeader& batch, ControlType type);
  // Aborted transactions whose marker was met and stays: the .txnindex of what was walked since the
  // last call.
  AbortedTransactions take_index();

 private:
  struct Ongoing {
    AbortedTransaction transaction;
    bool has_batches = false;
  };
  void begin_up_to(const BatchHeader& batch);

  AbortedTransactions waiting_;            // by first offset, the last one first
  std::map<ProducerId, Ongoing> aborted_;  // begun, their marker not met
  std::set<ProducerId> committed_;         // begun, not aborted
  AbortedTransactions index_;
};

}  // namespace weir::log
