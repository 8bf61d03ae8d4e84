#include "log/stored/transaction_ends.h"

#include <algorithm>

namespace weir::log {

void TransactionEnds::know_aborted(ProducerId producer, Span span) {
  known_[producer].push_back(span);
}

void TransactionEnds::add_data(const BatchHeader& header) {
  if (header.records_count == 0) {
    return;
  }
  const auto [open, is_new] =
      open_.try_emplace(header.producer_id, Open{header.base_offset, header.producer_epoch});
  // Under transaction version 2 every end raises the epoch; else a fence does.
  if (!is_new && open->second.may_have_ended && header.producer_epoch > open->second.epoch) {
    leave_unknown(header.producer_id, open->second);
    open->second = Open{header.base_offset, header.producer_epoch};
  }
}

void TransactionEnds::add_marker(ProducerId producer, Offset at, bool is_commit) {
  const auto open = open_.find(producer);
  if (open == open_.end()) {
    return;  // nothing of it is here, or the transaction was empty
  }
  if (!is_commit) {
    Span span{open->second.first, at};
    for (const Span& known : known_[producer]) {
      if (known.last == at) {  // knows better where it began: an earlier end may be lost
        if (known.first > span.first) {
          leave_unknown(producer, open->second);
        }
        span.first = known.first;
      }
    }
    aborted_[producer].push_back(span);
  }
  open_.erase(open);
}

void TransactionEnds::add_loss(Offset from, Offset to) {
  for (const auto& [producer, spans] : known_) {
    for (const Span& span : spans) {
      if (span.last >= from && span.last < to) {
        aborted_[producer].push_back(span);
        open_.erase(producer);
      }
    }
  }
  for (auto& [producer, open] : open_) {
    open.may_have_ended = true;
  }
}

void TransactionEnds::leave_unknown(ProducerId producer, const Open& open) {
  unknown_ends_.emplace_back(producer, open.first);
}

void TransactionEnds::finish() {
  for (auto open = open_.begin(); open != open_.end();) {
    if (!open->second.may_have_ended) {
      ++open;
      continue;
    }
    leave_unknown(open->first, open->second);
    open = open_.erase(open);
  }
  for (auto& [producer, spans] : aborted_) {
    std::sort(spans.begin(), spans.end());
  }
}

bool TransactionEnds::is_aborted(const BatchHeader& header) const {
  if (!header.is_transactional() || header.is_control()) {
    return false;
  }
  const auto spans = aborted_.find(header.producer_id);
  if (spans == aborted_.end()) {
    return false;
  }
  const auto behind =
      std::upper_bound(spans->second.begin(), spans->second.end(), header.base_offset,
                       [](Offset offset, const Span& span) { return offset < span.first; });
  return behind != spans->second.begin() && header.base_offset <= std::prev(behind)->last;
}

Offset TransactionEnds::last_stable(Offset end) const {
  for (const auto& [producer, open] : open_) {
    end = std::min(end, open.first);
  }
  return end;
}

}  // namespace weir::log
