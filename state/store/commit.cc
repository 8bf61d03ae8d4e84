#include "state/store/checkpoint_job.h"
#include "state/store/ordered_index.h"

#include <weir/runtime/endian.h>
#include <weir/state/key_value_store.h>

#include <fmt/core.h>

#include <algorithm>
#include <array>
#include <string>
#include <utility>

// The commit scope: plain reads and writes, emission, changelog, promote and drop.

namespace weir::state {
namespace {

constexpr std::size_t kChangelogBatch = 512;
constexpr std::size_t kPrefetchAhead = 8;

}  // namespace

Status KeyValueStore::put(ByteView key, NullableBytes value, Timestamp timestamp) {
  WEIR_TRY_ASSIGN(Entry * entry, find_or_load(key, hash(key)));
  return put(entry, value, timestamp);
}

Result<NullableValue> KeyValueStore::get(ByteView key) {
  WEIR_TRY_ASSIGN(const Entry* entry, find_or_load(key, hash(key)));
  const NullableBytes bytes = value(*entry);
  if (bytes.is_null()) {
    return NullableValue();
  }
  return NullableValue(ValueView{bytes.view(), timestamp(*entry)});
}

Result<std::optional<OwnedValue>> KeyValueStore::get_committed(ByteView key) {
  if (const Entry* entry = lookup(key, hash(key)); entry != nullptr) {
    const NullableBytes bytes = committed_value(*entry);
    if (bytes.is_null()) {
      return std::optional<OwnedValue>();
    }
    return std::optional<OwnedValue>(
        OwnedValue{std::string(bytes.view()), committed_timestamp(*entry)});
  }
  if (!may_be_checkpointed()) {
    return std::optional<OwnedValue>();
  }
  WEIR_TRY_ASSIGN(const std::optional<std::string> stored, checkpoints_->get(key));
  if (!stored.has_value()) {
    return std::optional<OwnedValue>();
  }
  if (stored->size() < sizeof(Timestamp)) {
    return short_value(stored->size());
  }
  return std::optional<OwnedValue>(
      OwnedValue{stored->substr(sizeof(Timestamp)), load_be<Timestamp>(stored->data())});
}

std::vector<KeyValueStore::Entry*> KeyValueStore::take_pending() {
  // Sorted beside the entries, which are all over memory.
  std::vector<std::pair<std::uint32_t, Entry*>> order;
  order.reserve(pending_.size());
  for (Entry* entry : pending_) {
    entry->flags &= static_cast<std::uint8_t>(~kPending);
    order.emplace_back(entry->last_change, entry);
  }
  std::sort(order.begin(), order.end());
  std::vector<Entry*> entries(order.size());
  std::transform(order.begin(), order.end(), entries.begin(),
                 [](const auto& item) { return item.second; });
  pending_.clear();
  pending_bytes_ = 0;
  change_sequence_ = 0;
  return entries;
}

void KeyValueStore::renumber_pending() {
  std::sort(pending_.begin(), pending_.end(),
            [](const Entry* a, const Entry* b) { return a->last_change < b->last_change; });
  change_sequence_ = 0;
  for (Entry* entry : pending_) {
    entry->last_change = ++change_sequence_;
  }
}

void KeyValueStore::forget_pending() {
  for (Entry* entry : pending_) {
    entry->flags &= static_cast<std::uint8_t>(~kPending);
  }
  pending_.clear();
  pending_bytes_ = 0;
  change_sequence_ = 0;
}

void KeyValueStore::order_changelog(const std::function<bool(ByteView key)>& is_last) {
  std::stable_partition(scope_.begin(), scope_.end(),
                        [&](const Entry* entry) { return !is_last(key(*entry)); });
}

Status KeyValueStore::write_changelog(RecordSink& sink, SinkTopic topic, PartitionId partition) {
  std::array<RecordRef, kChangelogBatch> batch;
  std::size_t filled = 0;
  for (std::size_t i = 0; i < scope_.size(); ++i) {
    if (i + kPrefetchAhead < scope_.size()) {
      __builtin_prefetch(scope_[i + kPrefetchAhead]);
    }
    const Entry& entry = *scope_[i];
    batch[filled++] = {.key = key(entry),
                       .value = view(entry.open, entry.open_size),
                       .timestamp = entry.open.timestamp,
                       .headers = {}};
    if (filled == batch.size() || i + 1 == scope_.size()) {
      // Before the call: a send that fails may have taken a part.
      changelog_begun_ = true;
      if (Status sent = sink.send(topic, partition, std::span(batch).first(filled)); !sent.ok()) {
        return std::move(sent).error().with_context("changelog of store " + options_.name);
      }
      metrics_.changelog_records.add(filled);
      filled = 0;
    }
  }
  changelog_current_ = true;
  return {};
}

Status KeyValueStore::promote(const StorePosition& after) {
  if (!pending_.empty()) {
    return Error(Errc::kInvalidArgument,
                 fmt::format("store {} has {} results that wait for emission; take_pending() comes "
                             "before promote()",
                             options_.name, pending_.size()));
  }
  if (changelog_begun_ && !changelog_current_) {
    return Error(Errc::kInvalidArgument,
                 fmt::format("store {} changed behind write_changelog(); write it again before "
                             "promote()",
                             options_.name));
  }
  if (options_.mode == StoreMode::kDirect) {
    return promote_direct(after);
  }
  bool has_dead = false;
  for (std::size_t i = 0; i < scope_.size(); ++i) {
    if (i + kPrefetchAhead < scope_.size()) {
      __builtin_prefetch(scope_[i + kPrefetchAhead], 1);
    }
    promote_entry(*scope_[i]);
    has_dead = has_dead || scope_[i]->committed_size == kNull;
  }
  if (has_dead && options_.mode == StoreMode::kMemory) {
    release_deleted(scope_);
  }
  position_ = after;
  promoted_at_ = clock_.now();
  caught_up_ = true;
  metrics_.promotes.add(1);
  close_scope();
  return {};
}

void KeyValueStore::promote_entry(Entry& entry) {
  preserve_frozen(entry);
  const bool is_dirty = entry.dirty.load(std::memory_order_acquire) != kClean;
  if (is_dirty) {
    dirty_bytes_ -= footprint(entry);
  }
  free_value(entry.committed, entry.committed_size);
  entry.committed = entry.open;
  entry.committed_size = entry.open_size;
  entry.open_size = kNone;
  if (is_dirty) {
    dirty_bytes_ += footprint(entry);
  } else {
    mark_dirty(entry);
  }
}

Status KeyValueStore::promote_direct(const StorePosition& after) {
  std::vector<StoreChange> changes;
  changes.reserve(scope_.size());
  std::vector<std::string> stored(scope_.size());
  for (std::size_t i = 0; i < scope_.size(); ++i) {
    const Entry& entry = *scope_[i];
    const NullableBytes bytes = view(entry.open, entry.open_size);
    StoreChange change{.key = key(entry), .value = {}};
    if (!bytes.is_null()) {
      stored[i].resize(sizeof(Timestamp));
      store_be(stored[i].data(), entry.open.timestamp);
      stored[i] += bytes.view();
      change.value = ByteView(stored[i]);
    }
    changes.push_back(change);
  }
  std::sort(changes.begin(), changes.end(),
            [](const StoreChange& a, const StoreChange& b) { return a.key < b.key; });
  StorePosition position = after;
  position.time = clock_.now();
  if (Status written = checkpoints_->write(changes, position); !written.ok()) {
    return std::move(written).error().with_context("commit store " + options_.name);
  }
  position_ = after;
  promoted_at_ = clock_.now();
  caught_up_ = true;
  metrics_.promotes.add(1);
  close_scope();
  return {};
}

Status KeyValueStore::drop() {
  if (changelog_begun_) {
    return Error(Errc::kInvalidArgument,
                 fmt::format("store {}: its changelog may hold this scope already; commit again or "
                             "give the store up, its next owner restores it",
                             options_.name));
  }
  forget_pending();
  for (Entry* entry : scope_) {
    free_value(entry->open, entry->open_size);
    entry->open_size = kNone;
  }
  close_scope();
  return {};
}

// Behind promote() or drop(): nothing points to entries any more.
void KeyValueStore::close_scope() {
  scope_.clear();
  scope_bytes_ = 0;
  changelog_begun_ = false;
  changelog_current_ = false;
  early_commit_ = false;
  ++scope_epoch_;
  if (options_.mode == StoreMode::kDirect) {
    release_all();
    ++checkpoint_version_;
  }
  relieve();
  publish_metrics();
}

// Keeps the hot tier within its bound: first by evicting, then by a checkpoint that makes entries
// clean, waited for only above the bound.
void KeyValueStore::relieve() {
  if (options_.mode != StoreMode::kHot) {
    return;
  }
  const std::size_t bound = options_.hot_bytes_max;
  if (bytes_used() <= bound) {
    if (dirty_bytes_ > bound / 2) {
      remember(start_checkpoint());
    }
    return;
  }
  finish_checkpoint();
  evict();
  if (bytes_used() > bound) {
    remember(start_checkpoint());
    finish_checkpoint();
    evict();
  }
}

AttemptScope KeyValueStore::open_attempt() {
  return AttemptScope(this);
}

}  // namespace weir::state
