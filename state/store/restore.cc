#include "state/store/checkpoint_job.h"
#include "state/store/ordered_index.h"

#include <weir/runtime/endian.h>
#include <weir/runtime/logger.h>
#include <weir/state/key_value_store.h>

#include <fmt/core.h>

#include <array>
#include <map>
#include <string>
#include <utility>

// Bringing a store back: warm from the checkpoint, apply the changelog's tail, or give the
// changelog back what it lost.

namespace weir::state {
namespace {

constexpr std::size_t kPrefetchAhead = 16;
constexpr std::size_t kRewriteBatch = 256;

}  // namespace

Error KeyValueStore::missing_key(const RecordView& record) const {
  return Error(Errc::kInvalidArgument,
               fmt::format("changelog of store {} has a record without key at offset {}; is the "
                           "topic written by something else?",
                           options_.name, record.offset.value()));
}

Error KeyValueStore::short_value(std::size_t size) const {
  return Error(Errc::kCorrupt,
               fmt::format("checkpoint of store {} has a value of {} bytes, shorter than its "
                           "timestamp; remove the store's state directory to rebuild it from the "
                           "changelog",
                           options_.name, size));
}

Status KeyValueStore::warm() {
  if (options_.mode != StoreMode::kHot || complete_) {
    return {};
  }
  const std::size_t stop_above = options_.hot_bytes_max - options_.hot_bytes_max / 8;
  WEIR_TRY_ASSIGN(std::unique_ptr<CheckpointIterator> all,
                  checkpoints_->scan(ByteView(), std::nullopt));
  for (; all->valid(); all->next()) {
    if (bytes_used() > stop_above) {
      WEIR_INFO("store does not fit in memory store={} bytes={} bound={}", options_.name,
                bytes_used(), options_.hot_bytes_max);
      return {};
    }
    const ByteView key = all->key();
    const std::uint64_t key_hash = hash(key);
    if (find(key, key_hash) != nullptr) {
      continue;  // restored already, and newer
    }
    const ByteView stored = all->value();
    if (stored.size() < sizeof(Timestamp)) {
      return short_value(stored.size());
    }
    WEIR_TRY_ASSIGN(Entry * entry, insert(key, key_hash));
    set_value(entry->committed, entry->committed_size, stored.substr(sizeof(Timestamp)),
              load_be<Timestamp>(stored.data()));
  }
  WEIR_TRY(all->status());
  complete_ = true;
  ++scope_epoch_;
  publish_metrics();
  return {};
}

Status KeyValueStore::restore(std::span<const RecordView> records, const StorePosition& after) {
  if (!scope_.empty()) {
    return Error(Errc::kInvalidArgument,
                 fmt::format("store {} is restored while its commit scope is open", options_.name));
  }
  if (caught_up_) {
    checkpoint_time_ = promoted_at_;
    caught_up_ = false;
  }
  if (options_.mode == StoreMode::kDirect) {
    return restore_direct(records, after);
  }
  std::array<std::uint64_t, kPrefetchAhead> hashes{};
  const std::size_t count = records.size();
  for (std::size_t i = 0; i < count + kPrefetchAhead; ++i) {
    if (i >= kPrefetchAhead) {
      WEIR_TRY(apply_restored(records[i - kPrefetchAhead], hashes[i % kPrefetchAhead]));
    }
    if (i < count) {
      hashes[i % kPrefetchAhead] = hash(records[i].key.view_or_empty());
      prefetch(hashes[i % kPrefetchAhead]);
    }
    if (i >= kPrefetchAhead / 2 && i < count + kPrefetchAhead / 2) {
      prefetch_entry(hashes[(i - kPrefetchAhead / 2) % kPrefetchAhead]);
    }
  }
  position_ = after;
  close_scope();
  if (options_.mode == StoreMode::kMemory && bytes_used() > options_.hot_bytes_max) {
    return no_space();
  }
  return std::exchange(failure_, Status());
}

Status KeyValueStore::apply_restored(const RecordView& record, std::uint64_t key_hash) {
  if (record.key.is_null()) {
    return missing_key(record);
  }
  Entry* entry = find(record.key.view(), key_hash);
  if (entry == nullptr) {
    if (options_.mode == StoreMode::kMemory && record.value.is_null()) {
      return {};
    }
    WEIR_TRY_ASSIGN(entry, insert(record.key.view(), key_hash));
  }
  preserve_frozen(*entry);
  const bool is_dirty = entry->dirty.load(std::memory_order_acquire) != kClean;
  if (is_dirty) {
    dirty_bytes_ -= footprint(*entry);
  }
  set_value(entry->committed, entry->committed_size, record.value, record.timestamp);
  if (is_dirty) {
    dirty_bytes_ += footprint(*entry);
  } else {
    mark_dirty(*entry);
  }
  if (options_.mode == StoreMode::kMemory && record.value.is_null()) {
    release_deleted({entry});
  }
  return {};
}

Status KeyValueStore::restore_direct(std::span<const RecordView> records,
                                     const StorePosition& after) {
  // The last value of a key wins; sorted, as RocksDB likes it.
  std::map<ByteView, const RecordView*> last;
  for (const RecordView& record : records) {
    if (record.key.is_null()) {
      return missing_key(record);
    }
    last[record.key.view()] = &record;
  }
  std::vector<StoreChange> changes;
  std::vector<std::string> stored(last.size());
  for (const auto& [key, record] : last) {
    StoreChange change{.key = key, .value = {}};
    if (!record->value.is_null()) {
      std::string& bytes = stored[changes.size()];
      bytes.resize(sizeof(Timestamp));
      store_be(bytes.data(), record->timestamp);
      bytes += record->value.view();
      change.value = ByteView(bytes);
    }
    changes.push_back(change);
  }
  StorePosition position = after;
  position.time = checkpoint_time();
  WEIR_TRY(checkpoints_->write(changes, position));
  position_ = after;
  close_scope();
  return {};
}

Status KeyValueStore::finish_restore(const StorePosition& at) {
  if (options_.mode == StoreMode::kDirect) {
    StorePosition position = at;
    position.time = clock_.now();
    WEIR_TRY(checkpoints_->write({}, position));
  }
  position_ = at;
  promoted_at_ = clock_.now();
  caught_up_ = true;
  return {};
}

Status KeyValueStore::rewrite_changelog(RecordSink& sink, SinkTopic topic, PartitionId partition) {
  WEIR_TRY_ASSIGN(std::unique_ptr<StoreIterator> all,
                  scan(ByteView(), std::nullopt, ReadView::kCommitted));
  std::vector<std::pair<std::string, std::string>> owned;
  std::vector<RecordRef> batch;
  std::vector<Timestamp> timestamps;
  while (all->valid()) {
    owned.clear();
    timestamps.clear();
    for (; all->valid() && owned.size() < kRewriteBatch; all->next()) {
      owned.emplace_back(all->key(), all->value());
      timestamps.push_back(all->timestamp());
    }
    batch.clear();
    for (std::size_t i = 0; i < owned.size(); ++i) {
      batch.push_back({.key = ByteView(owned[i].first),
                       .value = ByteView(owned[i].second),
                       .timestamp = timestamps[i],
                       .headers = {}});
    }
    WEIR_TRY(sink.send(topic, partition, batch));
    metrics_.changelog_records.add(batch.size());
  }
  return all->status();
}

Status KeyValueStore::clear() {
  finish_checkpoint();
  if (checkpoints_ != nullptr) {
    // First: what is in memory would otherwise hide what is still there.
    WEIR_TRY(checkpoints_->clear());
  }
  forget_pending();
  scope_.clear();
  release_all();
  dirty_.clear();
  dirty_bytes_ = 0;
  frozen_bytes_ = 0;
  position_.reset();
  checkpointed_.reset();
  complete_ = true;
  checkpoint_time_ = kNoTimestamp;
  caught_up_ = false;
  failure_ = Status();
  close_scope();
  ++checkpoint_version_;
  return {};
}

}  // namespace weir::state
