#include <weir/operators/internal/store_cache.h>
#include <weir/runtime/assert.h>

#include <utility>
#include <vector>

namespace weir::internal {

namespace {

constexpr std::size_t kPrefetchAhead = 8;

// Restores what a result changes in the flow of the record that caused it.
class FlowScope {
 public:
  explicit FlowScope(Flow& flow) : flow_(flow), saved_(flow) {}
  FlowScope(const FlowScope&) = delete;
  FlowScope& operator=(const FlowScope&) = delete;
  ~FlowScope() { flow_ = saved_; }

 private:
  Flow& flow_;
  Flow saved_;
};

}  // namespace

StoreCache::StoreCache(state::KeyValueStore& store, TaskContext& task, CacheBudget& budget)
    : store_(store), task_(task), budget_(budget) {}

StoreCache::~StoreCache() {
  budget_.bytes_used -= counted_bytes_;
}

void StoreCache::emit_now(const Entry& entry, NullableBytes old_value, Timestamp timestamp,
                          Flow& flow) {
  const FlowScope scope(flow);
  flow.record.timestamp = timestamp;
  emission_->emit(entry, old_value, flow);
}

void StoreCache::keep_headers(Entry* entry, HeadersView headers) {
  if (const auto before = headers_.find(entry); before != headers_.end()) {
    headers_bytes_ -= before->second.view().encoded().size();
    headers_.erase(before);
  }
  if (!headers.empty()) {
    headers_bytes_ += headers.encoded().size();
    headers_.emplace(entry, Headers(headers));
  }
}

void StoreCache::account(Flow& flow) {
  const std::size_t now = store_.pending_bytes() + headers_bytes_;
  budget_.bytes_used += now - counted_bytes_;
  counted_bytes_ = now;
  if (budget_.bytes_used > budget_.bytes_max) {
    flush(flow.record.stream_time, true);
  }
}

// What those downstream hold of the entry.
NullableBytes StoreCache::forwarded_value(const Entry& entry) const {
  if (const auto early = emitted_early_.find(&entry); early != emitted_early_.end()) {
    return early->second.has_value() ? NullableBytes(*early->second) : NullableBytes();
  }
  return store_.committed_value(entry);
}

bool StoreCache::is_needless_tombstone(const Entry& entry) const {
  return store_.value(entry).is_null() && forwarded_value(entry).is_null();
}

void StoreCache::flush(Timestamp stream_time, bool early) {
  if (store_.pending_count() == 0) {
    return;
  }
  const std::vector<Entry*> pending = store_.take_pending();
  budget_.bytes_used -= counted_bytes_;
  counted_bytes_ = 0;
  const std::unordered_map<const Entry*, Headers> headers = std::exchange(headers_, {});
  headers_bytes_ = 0;
  for (std::size_t i = 0; i < pending.size(); ++i) {
    // In order of their last change the entries lie all over memory.
    if (i + kPrefetchAhead < pending.size()) {
      __builtin_prefetch(pending[i + kPrefetchAhead]);
    }
    Entry* entry = pending[i];
    if (task_.failed()) {
      return;
    }
    if (is_needless_tombstone(*entry)) {
      continue;
    }
    Flow flow;
    flow.record.timestamp = store_.timestamp(*entry);
    flow.record.stream_time = stream_time;
    if (const auto found = headers.find(entry); found != headers.end()) [[unlikely]] {
      flow.record.headers = found->second.view();
    }
    emission_->emit(*entry, sends_old_values_ ? forwarded_value(*entry) : NullableBytes(), flow);
    if (early && (can_delete_ || sends_old_values_)) {
      emitted_early_.insert_or_assign(entry, store_.value(*entry).to_owned());
    }
  }
}

}  // namespace weir::internal
