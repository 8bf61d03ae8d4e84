#include "state/store/checkpoint_job.h"
#include "state/store/ordered_index.h"

#include <weir/state/key_value_store.h>

#include <fmt/core.h>

#include <algorithm>
#include <utility>

// The hash table of a store: slots, entries in pages, eviction.

namespace weir::state {
namespace {

constexpr std::size_t kSlotsMin = 64;

}  // namespace

KeyValueStore::KeyValueStore(const StoreOptions& options, CheckpointStore* checkpoints,
                             Executor* background, const Clock& clock)
    : options_(options),
      checkpoints_(checkpoints),
      background_(background),
      clock_(clock),
      index_(std::make_unique<OrderedIndex>()) {
  release_all();
}

KeyValueStore::~KeyValueStore() {
  abandon_checkpoint();
  release_all();
}

Result<std::unique_ptr<KeyValueStore>> KeyValueStore::open(const StoreOptions& options,
                                                           CheckpointStore* checkpoints,
                                                           Executor* background,
                                                           const Clock& clock) {
  if (options.mode != StoreMode::kMemory && checkpoints == nullptr) {
    return Error(Errc::kInvalidArgument,
                 fmt::format("store {} needs a checkpoint store; only weir.store.mode=memory works "
                             "without",
                             options.name));
  }
  std::unique_ptr<KeyValueStore> store(new KeyValueStore(
      options, options.mode == StoreMode::kMemory ? nullptr : checkpoints, background, clock));
  WEIR_TRY_ASSIGN(store->checkpointed_, store->checkpoint_position());
  store->position_ = store->checkpointed_;
  store->complete_ = !store->checkpointed_.has_value();
  if (store->checkpointed_.has_value()) {
    store->checkpoint_time_ = store->checkpointed_->time;
  }
  return store;
}

bool KeyValueStore::may_be_checkpointed() const {
  return options_.mode == StoreMode::kDirect || (options_.mode == StoreMode::kHot && !complete_);
}

std::size_t KeyValueStore::refuse_above() const {
  constexpr std::size_t kSlack = 1U << 20U;
  return options_.mode == StoreMode::kMemory ? options_.hot_bytes_max
                                             : 2 * options_.hot_bytes_max + kSlack;
}

Error KeyValueStore::no_space() const {
  const std::string_view advice =
      options_.mode == StoreMode::kMemory
          ? "raise weir.store.hot.max.bytes or use weir.store.mode=hot"
          : "commit more often, see why checkpoints fail, or raise weir.store.hot.max.bytes";
  return Error(Errc::kNoSpace,
               fmt::format("store {} holds {} bytes in memory, its bound is {}; {}", options_.name,
                           bytes_used(), options_.hot_bytes_max, advice));
}

Status KeyValueStore::check_room() {
  if (bytes_used() <= options_.hot_bytes_max) [[likely]] {
    return {};
  }
  // Once per scope: what is not evictable now stays so until the next promote().
  if (!early_commit_ && options_.mode != StoreMode::kDirect) {
    if (job_ != nullptr && job_->done()) {
      remember(settle());
    }
    evict();
  }
  if (bytes_used() <= options_.hot_bytes_max) {
    return {};
  }
  early_commit_ = true;
  if (bytes_used() > refuse_above()) {
    return no_space();
  }
  return {};
}

Result<KeyValueStore::Entry*> KeyValueStore::load(ByteView key, std::uint64_t hash) {
  WEIR_TRY(check_room());
  if (!may_be_checkpointed()) {
    return insert(key, hash);
  }
  metrics_.loads.add(1);
  Result<std::optional<std::string>> stored = checkpoints_->get(key);
  if (!stored.ok()) {
    return Error(stored.error()).with_context("load from store " + options_.name);
  }
  WEIR_TRY_ASSIGN(Entry * entry, insert(key, hash));
  WEIR_TRY(load_stored(*entry, *stored));
  return entry;
}

Status KeyValueStore::load_many(std::span<const ByteView> keys) {
  std::vector<ByteView> misses;
  for (const ByteView key : keys) {
    if (find(key, hash(key)) == nullptr) {
      misses.push_back(key);
    }
  }
  if (misses.empty() || !may_be_checkpointed()) {
    return {};
  }
  metrics_.loads.add(misses.size());
  Result<std::vector<std::optional<std::string>>> stored = checkpoints_->get_many(misses);
  if (!stored.ok()) {
    return Error(stored.error()).with_context("load from store " + options_.name);
  }
  for (std::size_t i = 0; i < misses.size(); ++i) {
    const std::uint64_t key_hash = hash(misses[i]);
    if (find(misses[i], key_hash) != nullptr) {
      continue;  // asked for twice
    }
    WEIR_TRY(check_room());
    WEIR_TRY_ASSIGN(Entry * entry, insert(misses[i], key_hash));
    WEIR_TRY(load_stored(*entry, (*stored)[i]));
  }
  return {};
}

// Requires: the key is not resident.
Result<KeyValueStore::Entry*> KeyValueStore::insert(ByteView key, std::uint64_t hash) {
  if (key.size() > UINT32_MAX || (free_.empty() && next_index_ == UINT32_MAX)) {
    return Error(Errc::kInvalidArgument,
                 fmt::format("store {} cannot hold a key of {} bytes beside {} others",
                             options_.name, key.size(), live_entries_));
  }
  if ((live_entries_ + 1) * 8 > (slot_mask_ + 1) * 5) {
    grow_slots();
  }
  std::uint32_t index = next_index_;
  if (free_.empty()) {
    if ((index & (kPageEntries - 1)) == 0 && (index >> kPageBits) == pages_.size()) {
      pages_.push_back(std::make_unique<Entry[]>(kPageEntries));
    }
    ++next_index_;
  } else {
    index = free_.back();
    free_.pop_back();
  }
  Entry* entry = entry_at(index);
  entry->tag = static_cast<std::uint32_t>(hash >> 32U);
  entry->committed_size = kNull;
  entry->committed.timestamp = kNoTimestamp;
  entry->open_size = kNone;
  entry->flags = kLive | kReferenced;
  entry->touched = scope_epoch_;
  set_key(*entry, key);
  place(entry->tag, index);
  ++live_entries_;
  if (index_->active()) {
    index_->add(entry);
  }
  return entry;
}

void KeyValueStore::grow_slots() {
  const std::size_t old_count = slot_mask_ + 1;
  std::unique_ptr<Slot[]> old = std::move(slots_);
  slots_ = std::make_unique<Slot[]>(old_count * 2);
  slot_mask_ = old_count * 2 - 1;
  slot_bytes_ = old_count * 2 * sizeof(Slot);
  for (std::size_t i = 0; i < old_count; ++i) {
    if (old[i].entry != 0) {
      place(old[i].tag, old[i].entry - 1);
    }
  }
}

void KeyValueStore::place(std::uint32_t tag, std::uint32_t index) {
  std::size_t i = tag & slot_mask_;
  while (slots_[i].entry != 0) {
    i = (i + 1) & slot_mask_;
  }
  slots_[i] = {.tag = tag, .entry = index + 1};
}

// Backward shift: no tombstones in the slots, probes stay short.
void KeyValueStore::unplace(std::uint32_t tag, std::uint32_t index) {
  std::size_t hole = tag & slot_mask_;
  while (slots_[hole].entry != index + 1) {
    WEIR_ASSERT(slots_[hole].entry != 0);
    hole = (hole + 1) & slot_mask_;
  }
  for (std::size_t i = (hole + 1) & slot_mask_; slots_[i].entry != 0; i = (i + 1) & slot_mask_) {
    const std::size_t home = slots_[i].tag & slot_mask_;
    // Whether the hole lies on the way from the slot's home to the slot.
    if (((i - home) & slot_mask_) >= ((i - hole) & slot_mask_)) {
      slots_[hole] = slots_[i];
      hole = i;
    }
  }
  slots_[hole] = Slot();
}

// The caller purges the index before the next insert().
void KeyValueStore::release(std::uint32_t index) {
  Entry& entry = *entry_at(index);
  unplace(entry.tag, index);
  free_value(entry.committed, entry.committed_size);
  free_value(entry.open, entry.open_size);
  if (entry.key_size == kHeapKey) {
    heap_bytes_ -= key_footprint(entry);
    ::operator delete(const_cast<char*>(heap_key(entry).data()));
  }
  entry.key_size = 0;
  std::memset(entry.key, 0, sizeof(entry.key));
  entry.open_size = kNone;
  entry.flags = 0;
  entry.dirty.store(kClean, std::memory_order_relaxed);
  free_.push_back(index);
  --live_entries_;
}

void KeyValueStore::release_entry(const Entry& entry) {
  std::size_t slot = entry.tag & slot_mask_;
  while (entry_at(slots_[slot].entry - 1) != &entry) {
    slot = (slot + 1) & slot_mask_;
  }
  release(slots_[slot].entry - 1);
}

void KeyValueStore::release_all() {
  index_->clear();
  for (std::uint32_t index = 0; index < next_index_; ++index) {
    if ((entry_at(index)->flags & kLive) != 0) {
      release(index);
    }
  }
  WEIR_ASSERT(live_entries_ == 0 && heap_bytes_ == 0);
  pages_.clear();
  free_.clear();
  next_index_ = 0;
  clock_hand_ = 0;
  slots_ = std::make_unique<Slot[]>(kSlotsMin);
  slot_mask_ = kSlotsMin - 1;
  slot_bytes_ = kSlotsMin * sizeof(Slot);
}

bool KeyValueStore::evictable(const Entry& entry) const {
  if ((entry.flags & (kLive | kPending)) != kLive || entry.open_size != kNone ||
      entry.touched == scope_epoch_ || entry.dirty.load(std::memory_order_acquire) != kClean) {
    return false;
  }
  // Without a checkpoint behind it only the memory of an absent key can go.
  return options_.mode == StoreMode::kHot || entry.committed_size == kNull;
}

// CLOCK: what was used since the hand last came by gets a second chance. Not while a checkpoint
// runs: what it has copied is clean but not in the checkpoint yet.
void KeyValueStore::evict() {
  if (job_ != nullptr) {
    return;
  }
  const std::size_t target = options_.hot_bytes_max - options_.hot_bytes_max / 8;
  std::size_t evicted = 0;
  for (std::uint64_t steps = 0; steps < 2ULL * next_index_ && bytes_used() > target; ++steps) {
    const std::uint32_t index = clock_hand_;
    clock_hand_ = clock_hand_ + 1 == next_index_ ? 0 : clock_hand_ + 1;
    Entry& entry = *entry_at(index);
    if (!evictable(entry)) {
      continue;
    }
    if ((entry.flags & kReferenced) != 0) {
      entry.flags &= static_cast<std::uint8_t>(~kReferenced);
      continue;
    }
    complete_ = complete_ && entry.committed_size == kNull;
    release(index);
    ++evicted;
  }
  if (evicted > 0) {
    metrics_.evictions.add(evicted);
    ++checkpoint_version_;
    index_->purge();
  }
}

void KeyValueStore::publish_metrics() {
  metrics_.entries.store(live_entries_, std::memory_order_relaxed);
  metrics_.bytes.store(bytes_used(), std::memory_order_relaxed);
}

}  // namespace weir::state
