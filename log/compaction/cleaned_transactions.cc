#include "log/compaction/cleaned_transactions.h"

#include <algorithm>
#include <utility>

namespace weir::log {

CleanedTransactions::CleanedTransactions(AbortedTransactions aborted)
    : waiting_(std::move(aborted)) {
  std::sort(waiting_.begin(), waiting_.end(),
            [](const AbortedTransaction& a, const AbortedTransaction& b) {
              return a.first_offset > b.first_offset;
            });
}

// A walk may begin behind the marker of some: they are over.
void CleanedTransactions::begin_up_to(const BatchHeader& batch) {
  while (!waiting_.empty() && waiting_.back().first_offset <= batch.last_offset()) {
    const AbortedTransaction& next = waiting_.back();
    if (next.last_offset >= batch.base_offset) {
      aborted_.insert_or_assign(next.producer_id, Ongoing{next});
    }
    waiting_.pop_back();
  }
  const auto found = aborted_.find(batch.producer_id);
  if (found != aborted_.end() && found->second.transaction.last_offset < batch.base_offset) {
    aborted_.erase(found);
  }
}

bool CleanedTransactions::is_aborted(const BatchHeader& batch) {
  begin_up_to(batch);
  if (!batch.is_transactional()) {
    return false;
  }
  const auto found = aborted_.find(batch.producer_id);
  if (found == aborted_.end()) {
    committed_.insert(batch.producer_id);
    return false;
  }
  found->second.has_batches = true;
  return true;
}

bool CleanedTransactions::marker_is_done(const BatchHeader& batch, ControlType type) {
  begin_up_to(batch);
  if (type == ControlType::kAbort) {
    const auto found = aborted_.find(batch.producer_id);
    if (found == aborted_.end()) {
      return true;
    }
    // It stays until a pass meets no batch of it any more.
    const Ongoing ended = found->second;
    aborted_.erase(found);
    if (ended.has_batches) {
      index_.push_back(ended.transaction);
    }
    return !ended.has_batches;
  }
  if (type == ControlType::kCommit) {
    return committed_.erase(batch.producer_id) == 0;
  }
  return false;
}

AbortedTransactions CleanedTransactions::take_index() {
  return std::exchange(index_, {});
}

}  // namespace weir::log
