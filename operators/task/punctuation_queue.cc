#include "operators/task/punctuation_queue.h"

#include <weir/runtime/assert.h>

#include <algorithm>
#include <utility>

namespace weir::internal {

void PunctuationQueue::schedule(std::uint64_t id, Timestamp first, std::int64_t interval,
                                Function function) {
  WEIR_ASSERT(interval >= 1);
  entries_.push_back({id, first, interval, std::make_shared<Function>(std::move(function))});
}

void PunctuationQueue::cancel(std::uint64_t id) {
  std::erase_if(entries_, [id](const Entry& entry) { return entry.id == id; });
}

std::vector<PunctuationQueue::Entry>::iterator PunctuationQueue::earliest() {
  return std::min_element(entries_.begin(), entries_.end(),
                          [](const Entry& a, const Entry& b) { return a.due < b.due; });
}

Timestamp PunctuationQueue::next_due() const {
  Timestamp due = INT64_MAX;
  for (const Entry& entry : entries_) {
    due = std::min(due, entry.due);
  }
  return due;
}

bool PunctuationQueue::punctuate(Timestamp now) {
  bool ran = false;
  for (auto next = earliest(); next != entries_.end() && next->due <= now && next->due != INT64_MAX;
       next = earliest()) {
    const Timestamp first = next->due;
    const std::int64_t missed = (now - first) / next->interval;
    if (__builtin_mul_overflow(missed + 1, next->interval, &next->due) ||
        __builtin_add_overflow(first, next->due, &next->due)) {
      next->due = INT64_MAX;  // never again
    }
    // Kept: the function may cancel itself or schedule others.
    const std::shared_ptr<Function> function = next->function;
    (*function)(now);
    ran = true;
  }
  return ran;
}

}  // namespace weir::internal
