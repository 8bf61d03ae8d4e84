#pragma once

#include <weir/operators/internal/flow.h>
#include <weir/state/key_value_store.h>

#include <cstddef>
#include <optional>
#include <string>
#include <unordered_map>

namespace weir::internal {

// A thread's share of statestore.cache.max.bytes, used by all stores of its tasks.
// Threading: confined to the thread.
struct CacheBudget {
  std::size_t bytes_max = 0;  // 0: no caching, one result per update
  std::size_t bytes_used = 0;
};

// The record cache of one store partition (streams-features 2.16): results wait in the store's list
// of pending entries and leave in the order of their last change, one for each key, when the task
// commits or the thread's share is used up.
//
// Ownership: borrows all. Threading: confined to the task.
// Bounds:    the budget; a result over it flushes all waiting results of this store.
class StoreCache {
 public:
  using Entry = state::KeyValueStore::Entry;

  // The operator whose results wait.
  class Emission {
   public:
    virtual ~Emission() = default;
    // Forwards the entry's present value and, if the cache sends old values, the one that was
    // forwarded before it. flow.record: timestamp and headers of the last update.
    virtual void emit(const Entry& entry, NullableBytes old_value, Flow& flow) = 0;
  };

  StoreCache(state::KeyValueStore& store, TaskContext& task, CacheBudget& budget);
  StoreCache(const StoreCache&) = delete;
  StoreCache& operator=(const StoreCache&) = delete;
  ~StoreCache();

  state::KeyValueStore& store() { return store_; }
  TaskContext& task() { return task_; }
  // `can_delete`: the operator may delete entries.
  void set_emission(Emission& emission, bool can_delete, bool sends_old_values) {
    emission_ = &emission;
    can_delete_ = can_delete;
    sends_old_values_ = sends_old_values;
  }
  bool sends_old_values() const { return sends_old_values_; }
  // Whether updated() wants to know what was stored before.
  bool wants_old_value() const { return sends_old_values_ && budget_.bytes_max == 0; }

  // The entry was put: its result leaves now with `timestamp` (no cache), or waits and then leaves
  // with the entry's. `old_value`: see wants_old_value().
  void updated(Entry* entry, NullableBytes old_value, Timestamp timestamp, Flow& flow) {
    if (budget_.bytes_max == 0) {
      emit_now(*entry, old_value, timestamp, flow);
      return;
    }
    if (!flow.record.headers.empty() || !headers_.empty()) [[unlikely]] {
      keep_headers(entry, flow.record.headers);
    }
    if (store_.mark_pending(entry) || headers_bytes_ != 0) {
      account(flow);
    }
  }
  // All waiting results leave. `early`: before a commit, because the cache is full.
  void flush(Timestamp stream_time, bool early = false);
  // Behind promote().
  void committed() { emitted_early_.clear(); }

 private:
  void emit_now(const Entry& entry, NullableBytes old_value, Timestamp timestamp, Flow& flow);
  NullableBytes forwarded_value(const Entry& entry) const;
  void keep_headers(Entry* entry, HeadersView headers);
  void account(Flow& flow);
  bool is_needless_tombstone(const Entry& entry) const;

  state::KeyValueStore& store_;
  TaskContext& task_;
  CacheBudget& budget_;
  Emission* emission_ = nullptr;
  bool can_delete_ = false;
  bool sends_old_values_ = false;
  std::size_t counted_bytes_ = 0;  // our part of budget_.bytes_used
  // Only entries whose last update had headers.
  std::unordered_map<const Entry*, Headers> headers_;
  std::size_t headers_bytes_ = 0;
  // What left in an early flush, which the committed value does not tell yet. Kept only for those
  // who ask: deletes and old values.
  std::unordered_map<const Entry*, std::optional<std::string>> emitted_early_;
};

}  // namespace weir::internal
