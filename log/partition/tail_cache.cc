#include "log/partition/tail_cache.h"

#include <algorithm>

namespace weir::log {
namespace {

// Above this share of unused capacity a copy is cheaper than the memory it keeps.
constexpr std::size_t kWasteMax = 4;

}  // namespace

void TailCache::push(SharedBytes batch, const BatchHeader& header) {
  if (batch.capacity() / kWasteMax > batch.size()) {
    batch = SharedBytes::copy_of(batch.view());
  }
  bytes_ += batch.capacity();
  if (!entries_) {
    entries_.emplace();
  }
  entries_->push_back({std::move(batch), header});
  while (bytes_ > bytes_max_ && !entries_->empty()) {
    bytes_ -= entries_->front().bytes.capacity();
    entries_->pop_front();
  }
}

bool TailCache::collect(Offset from, Offset limit, std::size_t bytes_max,
                        std::vector<FetchedBatch>& out) const {
  if (!entries_ || entries_->empty() || from < entries_->front().header.base_offset) {
    return false;
  }
  auto next = std::upper_bound(
      entries_->begin(), entries_->end(), from,
      [](Offset value, const Entry& entry) { return value < entry.header.base_offset; });
  std::size_t bytes = 0;
  for (--next; next != entries_->end(); ++next) {
    bytes += next->bytes.size();
    if (next->header.next_offset() > limit || (!out.empty() && bytes > bytes_max)) {
      break;
    }
    out.push_back({{next->bytes, next->bytes.view()}, next->header, true});
  }
  return true;
}

void TailCache::drop_below(Offset end) {
  while (!entries_.empty() && entries_.front().header.next_offset() <= end) {
    bytes_ -= entries_.front().bytes.capacity();
    entries_.pop_front();
  }
}

void TailCache::clear() {
  entries_.reset();
  bytes_ = 0;
}

}  // namespace weir::log
