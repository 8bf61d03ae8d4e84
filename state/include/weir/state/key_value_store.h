#pragma once

#include <weir/runtime/backend.h>
#include <weir/runtime/clock.h>
#include <weir/runtime/executor.h>
#include <weir/state/checkpoint_store.h>
#include <weir/state/store_iterator.h>
#include <weir/state/store_metrics.h>

#include <atomic>
#include <cstdint>
#include <cstring>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

namespace weir::state {

// weir.store.mode
enum class StoreMode {
  kHot,     // hash table in memory, RocksDB is its checkpoint (default)
  kDirect,  // RocksDB is read and written, one WriteBatch with the position per commit
  kMemory,  // hash table only; restored from the changelog
};

struct StoreOptions {
  std::string name;
  StoreMode mode = StoreMode::kHot;
  std::size_t hot_bytes_max = 1ULL << 30;  // weir.store.hot.max.bytes, per store partition
};

struct ValueView {
  ByteView value;
  Timestamp timestamp = kNoTimestamp;
};
using NullableValue = std::optional<ValueView>;

struct OwnedValue {
  std::string value;
  Timestamp timestamp = kNoTimestamp;
  friend bool operator==(const OwnedValue&, const OwnedValue&) = default;
};

class AttemptScope;
class CheckpointJob;
class OrderedIndex;

// One partition of a key-value store: bytes to bytes with a timestamp (DESIGN D5; Kafka's
// TimestampedKeyValueStore, streams-features 2.19 STO-1: stored value = int64 timestamp | value,
// changelog record = value alone with the record's timestamp, a delete = a tombstone).
//
// Writes go through the commit scope (one per commit interval). Life of a scope:
//   put(...)*  ->  write_changelog(sink)  ->  [sink flushed, offsets committed]  ->  promote()
// or drop() when nothing of it was appended. Attempt scopes (one per attempt of a lane) collect
// writes of their own and are promoted into the commit scope or discarded.
//
// Hot path: nothing is virtual and nothing is allocated for keys of at most 16 bytes and values of
// at most 8 (the table grows now and then). Typical use, batched:
//   for each record i: prefetch(hash[i + 16]); prefetch_entry(hash[i + 8]);
//                      WEIR_TRY_ASSIGN(Entry* entry, store.find_or_load(key[i], hash[i]));
//                      store.put(entry, value, timestamp);
//
// Threading: confined to its task's thread; checkpoints are built on the executor's.
// Ownership: borrows checkpoints, executor and clock; they outlive it. The destructor waits for a
//            checkpoint that runs and takes no other: destroying is a crash as far as data goes.
//            For a clean close call begin_checkpoint() and wait_checkpoint() behind the last
//            promote().
// Bounds:    hot_bytes_max. Above it clean entries are evicted (kHot); when too few are clean
//            needs_early_commit() turns true and promote() forces a checkpoint. At twice the bound
//            plus 1 MiB (kMemory: at the bound) find_or_load() refuses new keys with kNoSpace. A
//            running checkpoint holds a copy of the values that it writes besides.
class KeyValueStore {
 public:
  // One key. One cache line; its address is stable. Opaque: read it through the store's functions.
  // A pointer stays valid until the next promote(), drop(), restore() or clear().
  struct alignas(64) Entry {
    // Timestamp and bytes of a value; `bytes` holds the value itself or a pointer to a HeapValue.
    struct Value {
      Timestamp timestamp = kNoTimestamp;
      char bytes[8] = {};
    };

    char key[16] = {};              // inline (zeros behind it), or pointer and 32-bit size
    Value committed;                // read by the checkpoint's thread under `dirty`
    Value open;                     // the commit scope's
    std::uint32_t tag = 0;          // high half of the hash
    std::uint32_t last_change = 0;  // sequence of mark_pending()
    std::uint8_t key_size = 0;
    std::uint8_t committed_size = 0;
    std::uint8_t open_size = 0;
    std::uint8_t flags = 0;
    std::uint8_t touched = 0;  // low bits of the scope that last used it
    std::atomic<std::uint8_t> dirty{0};
  };
  static_assert(sizeof(Entry) == 64);

  // `checkpoints` is null in kMemory and required otherwise; `background` may be null (checkpoints
  // are then built by the caller of begin_checkpoint()).
  // Errors: kInvalidArgument (options contradict), those of CheckpointStore::position().
  static Result<std::unique_ptr<KeyValueStore>> open(const StoreOptions& options,
                                                     CheckpointStore* checkpoints,
                                                     Executor* background, const Clock& clock);
  ~KeyValueStore();
  KeyValueStore(const KeyValueStore&) = delete;
  KeyValueStore& operator=(const KeyValueStore&) = delete;

  const StoreOptions& options() const { return options_; }

  // --- reading and writing through the commit scope -------------------------------------------

  static std::uint64_t hash(ByteView key);
  // Pulls the key's slot into the cache; a miss in flight while other records are worked on.
  void prefetch(std::uint64_t hash) const;
  // Pulls the entry; some records after prefetch(), when the slot has arrived.
  void prefetch_entry(std::uint64_t hash) const;

  // Null when the key is not resident; asks nobody.
  Entry* find(ByteView key, std::uint64_t hash);
  // Finds or makes the entry. On a miss asks the checkpoint, unless every key is resident.
  // Requires: hash == hash(key).
  // Errors: kNoSpace (see Bounds), kIo, kCorrupt.
  Result<Entry*> find_or_load(ByteView key, std::uint64_t hash);
  // Makes the keys resident with one batched question to the checkpoint for all misses.
  Status load_many(std::span<const ByteView> keys);

  // Through the commit scope. Views stay valid until the next put() of the key, promote() or
  // drop().
  static NullableBytes value(const Entry& entry);
  static Timestamp timestamp(const Entry& entry);  // kNoTimestamp when absent
  // As of the last promote().
  static NullableBytes committed_value(const Entry& entry);
  static Timestamp committed_timestamp(const Entry& entry);
  static ByteView key(const Entry& entry);

  // Writes into the commit scope; null deletes. Errors of the first form: none today, but kNoSpace
  // is allowed; of the second: those of find_or_load().
  Status put(Entry* entry, NullableBytes value, Timestamp timestamp);
  Status put(ByteView key, NullableBytes value, Timestamp timestamp);
  // nullopt when absent. Makes the key resident.
  Result<NullableValue> get(ByteView key);
  // Committed value for queries; does not disturb the hot tier.
  Result<std::optional<OwnedValue>> get_committed(ByteView key);

  // Keys of [from, to) (no `to`: to the end), or all that start with `prefix`.
  Result<std::unique_ptr<StoreIterator>> scan(ByteView from, std::optional<ByteView> to,
                                              ReadView view = ReadView::kOpenScope);
  Result<std::unique_ptr<StoreIterator>> scan_prefix(ByteView prefix,
                                                     ReadView view = ReadView::kOpenScope);

  // --- emission (record cache, streams-features 2.16 CACHE-2, CACHE-3) -------------------------

  // The entry's result waits for emission. True when it was not waiting before. Each call moves it
  // to the end of the order.
  bool mark_pending(Entry* entry);
  // The waiting entries in order of their last mark_pending(); none waits any more.
  std::vector<Entry*> take_pending();
  // Keys and values that wait; to be compared with the cache's bound.
  std::size_t pending_bytes() const { return pending_bytes_; }
  std::size_t pending_count() const { return pending_.size(); }

  // --- commit ---------------------------------------------------------------------------------

  bool scope_empty() const { return scope_.empty(); }
  // Sends each key of the commit scope once, in the order of first change: its last value (null: a
  // tombstone) with its timestamp. May be called again: the commit is tried again.
  // Errors: those of RecordSink::send(). The scope may be in the log then and cannot be dropped.
  Status write_changelog(RecordSink& sink, SinkTopic topic, PartitionId partition);
  // Has the keys of which `is_last` is true follow all others in the next write_changelog(): a
  // crash may keep a prefix of it.
  void order_changelog(const std::function<bool(ByteView key)>& is_last);
  // The scope becomes the committed state; `after` is the end of the changelog that holds it.
  // Errors: kInvalidArgument when results still wait for emission, or when keys changed behind
  //         write_changelog(); kDirect: those of CheckpointStore::write(). Then nothing changed.
  Status promote(const StorePosition& after);
  // Forgets the scope. Attempt scopes are not touched.
  // Errors: kInvalidArgument when write_changelog() was called for it: at least once, such a scope
  //         is promoted or the store is given up.
  Status drop();
  // Bytes of entries that are not checkpointed, the commit scope's included.
  std::size_t dirty_bytes() const { return dirty_bytes_ + frozen_bytes_ + scope_bytes_; }
  // Bytes of everything in memory.
  std::size_t bytes_used() const {
    return live_entries_ * sizeof(Entry) + slot_bytes_ + heap_bytes_;
  }
  std::size_t entries() const { return live_entries_; }
  // The hot tier is over its bound and cannot shrink before the next promote().
  bool needs_early_commit() const { return early_commit_; }

  // Several may be open at once; also across promote() and drop().
  AttemptScope open_attempt();

  // --- checkpoints ----------------------------------------------------------------------------

  // Freezes the committed values as of the last promote() in O(1) and has them written with its
  // position; the open scope is not concerned. Does nothing when one runs or nothing changed.
  // kDirect: flushes. kMemory: does nothing.
  Status begin_checkpoint();
  bool checkpoint_running() const { return job_ != nullptr; }
  // Ends the bookkeeping of a checkpoint that is done; never blocks. Call it now and then.
  // Errors: a failed checkpoint is reported once; its keys are dirty again and nothing is lost.
  Status poll_checkpoint();
  // Waits for it (builds it on this thread when no other has begun) and polls.
  Status wait_checkpoint();

  // --- restore --------------------------------------------------------------------------------

  // Where the durable checkpoint stands; nullopt: there is none.
  Result<std::optional<StorePosition>> checkpoint_position();
  // The last promoted (or restored) position.
  const std::optional<StorePosition>& position() const { return position_; }
  // Loads the checkpoint into the hot tier in key order while it fits. Once everything is resident
  // a miss asks nobody. kDirect, kMemory: does nothing.
  Status warm();
  // Applies changelog records, in order, to the committed state; `after` is the position behind
  // them. Requires: an empty commit scope. When the hot tier is full it checkpoints at `after`.
  // Errors: kInvalidArgument (a record without key), those of the checkpoint; kMemory: kNoSpace.
  Status restore(std::span<const RecordView> records, const StorePosition& after);
  // The changelog was applied up to `at`.
  Status finish_restore(const StorePosition& at);
  // Sends the whole committed state, in key order: a changelog that was lost is made again from the
  // checkpoint. Then flush, and finish_restore() with the new position.
  Status rewrite_changelog(RecordSink& sink, SinkTopic topic, PartitionId partition);
  // Empties the store, its checkpoint and position too.
  Status clear();

  const StoreMetrics& metrics() const { return metrics_; }

 private:
  friend class AttemptScope;
  friend class CheckpointJob;
  friend class OrderedIndex;
  friend class MergingIterator;

  struct Slot {
    std::uint32_t tag = 0;
    std::uint32_t entry = 0;  // index + 1; 0: empty
  };
  // A value of more than 8 bytes.
  struct HeapValue {
    std::uint32_t size;
    std::uint32_t capacity;
  };

  static constexpr std::uint32_t kPageBits = 10;
  static constexpr std::uint32_t kPageEntries = 1U << kPageBits;
  static constexpr std::size_t kInlineKey = 16;
  static constexpr std::size_t kInlineValue = 8;
  // Sizes above the inline ones.
  static constexpr std::uint8_t kHeapKey = 255;
  static constexpr std::uint8_t kHeap = 253;
  static constexpr std::uint8_t kNull = 254;
  static constexpr std::uint8_t kNone = 255;  // the scope says nothing about the key
  // Entry::flags
  static constexpr std::uint8_t kPending = 1;
  static constexpr std::uint8_t kReferenced = 2;
  static constexpr std::uint8_t kLive = 4;
  // Entry::dirty: at most two generations are alive, the frozen one and the present one.
  static constexpr std::uint8_t kClean = 0;
  static constexpr std::uint8_t kDirtyEven = 1;
  static constexpr std::uint8_t kDirtyOdd = 2;
  static constexpr std::uint8_t kBusy = 3;  // somebody copies the committed value

  KeyValueStore(const StoreOptions& options, CheckpointStore* checkpoints, Executor* background,
                const Clock& clock);

  static bool keys_equal(const char* a, const char* b, std::size_t size);
  static const HeapValue* heap_value(const Entry::Value& value);
  static NullableBytes view(const Entry::Value& value, std::uint8_t size);
  static ByteView heap_key(const Entry& entry);
  static bool matches(const Entry& entry, ByteView key);
  Entry* lookup(ByteView key, std::uint64_t hash) const;
  Entry* entry_at(std::uint32_t index) const;
  void touch(Entry& entry) const;

  // table.cc
  Result<Entry*> load(ByteView key, std::uint64_t hash);
  Result<Entry*> insert(ByteView key, std::uint64_t hash);
  bool may_be_checkpointed() const;
  std::size_t refuse_above() const;
  Status check_room();
  Error no_space() const;
  void grow_slots();
  void place(std::uint32_t tag, std::uint32_t index);
  void unplace(std::uint32_t tag, std::uint32_t index);
  void release(std::uint32_t index);
  void release_entry(const Entry& entry);
  void release_all();
  void evict();
  bool evictable(const Entry& entry) const;
  void publish_metrics();

  // entry.cc
  void set_key(Entry& entry, ByteView key);
  void set_value(Entry::Value& slot, std::uint8_t& size, NullableBytes value, Timestamp timestamp);
  void free_value(Entry::Value& slot, std::uint8_t& size);
  Status load_stored(Entry& entry, const std::optional<std::string>& stored);
  void join_scope(Entry* entry);
  Status put_slow(Entry* entry, NullableBytes value, Timestamp timestamp);
  Status room_for(std::size_t bytes);
  void write_open(Entry* entry, NullableBytes value, Timestamp timestamp);
  static std::size_t heap_footprint(const Entry::Value& value, std::uint8_t size);
  static std::size_t key_footprint(const Entry& entry);
  static std::size_t footprint(const Entry& entry);  // key and committed value

  // commit.cc
  Status promote_direct(const StorePosition& after);
  void promote_entry(Entry& entry);
  void close_scope();
  void release_deleted(const std::vector<Entry*>& entries);
  void relieve();
  void renumber_pending();
  void forget_pending();

  // checkpointing.cc
  std::uint8_t dirty_generation() const { return odd_generation_ ? kDirtyOdd : kDirtyEven; }
  // Makes the committed value free to change although a checkpoint runs.
  void preserve_frozen(Entry& entry);
  void mark_dirty(Entry& entry);
  Status settle();
  Timestamp checkpoint_time() const;
  void abandon_checkpoint();
  Status start_checkpoint();
  bool checkpoint_is_current() const;
  void finish_checkpoint();
  void remember(Status failure);

  // restore.cc
  Status restore_direct(std::span<const RecordView> records, const StorePosition& after);
  Status apply_restored(const RecordView& record, std::uint64_t hash);
  Error missing_key(const RecordView& record) const;
  Error short_value(std::size_t size) const;

  StoreOptions options_;
  CheckpointStore* checkpoints_;
  Executor* background_;
  const Clock& clock_;

  // The table: open addressing with linear probing over 8-byte slots, entries in pages.
  std::unique_ptr<Slot[]> slots_;
  std::size_t slot_mask_ = 0;
  std::vector<std::unique_ptr<Entry[]>> pages_;
  std::uint32_t next_index_ = 0;
  std::vector<std::uint32_t> free_;
  std::size_t live_entries_ = 0;
  std::size_t slot_bytes_ = 0;
  std::size_t heap_bytes_ = 0;
  bool complete_ = true;  // no key is in the checkpoint alone
  std::uint32_t clock_hand_ = 0;

  // The commit scope.
  std::vector<Entry*> scope_;  // in order of first change
  std::size_t scope_bytes_ = 0;
  std::uint8_t scope_epoch_ = 1;
  bool changelog_begun_ = false;    // something of the scope may be in the log
  bool changelog_current_ = false;  // all of it is
  bool early_commit_ = false;

  std::vector<Entry*> pending_;
  std::size_t pending_bytes_ = 0;
  std::uint32_t change_sequence_ = 0;

  // Checkpoints.
  std::optional<StorePosition> position_;
  std::optional<StorePosition> checkpointed_;
  Timestamp checkpoint_time_ = kNoTimestamp;  // of the last written position
  Timestamp promoted_at_ = kNoTimestamp;
  bool caught_up_ = false;     // position_ was the changelog's end at promoted_at_
  std::vector<Entry*> dirty_;  // committed, of the present generation
  std::size_t dirty_bytes_ = 0;
  std::size_t frozen_bytes_ = 0;
  bool odd_generation_ = false;
  std::shared_ptr<CheckpointJob>
      job_;         // shared with the executor's queue, which may keep it longer
  Status failure_;  // of a checkpoint that nobody polled

  // Scans.
  std::unique_ptr<OrderedIndex> index_;   // filled by the first scan
  std::uint64_t checkpoint_version_ = 0;  // changes when an open scan must look at it anew

  StoreMetrics metrics_;
};

// Writes of one attempt of a lane. Dropping the object discards them.
// Threading: the store's. Ownership: must not outlive the store. Bounds: what the attempt writes.
class AttemptScope {
 public:
  AttemptScope(AttemptScope&& other) noexcept = default;
  AttemptScope& operator=(AttemptScope&& other) noexcept = default;

  // The attempt's own write, else the value through the commit scope. Valid until the next call.
  Result<NullableValue> get(ByteView key);
  // Null deletes.
  Status put(ByteView key, NullableBytes value, Timestamp timestamp);
  // Makes sure that promote(), called next, cannot fail. Errors: those of KeyValueStore::put().
  Status reserve();
  // Moves the writes into the commit scope, in order of first change; the attempt is empty then.
  // Errors: as reserve(), without one before it; then nothing was moved.
  Status promote();
  void discard() {
    writes_.clear();
    entries_.clear();
  }
  std::size_t size() const { return writes_.size(); }

 private:
  friend class KeyValueStore;
  struct Write {
    std::uint64_t hash = 0;
    std::string key;
    std::optional<std::string> value;
    Timestamp timestamp = kNoTimestamp;
  };
  explicit AttemptScope(KeyValueStore* store) : store_(store) {}
  Write* find(ByteView key, std::uint64_t hash);

  KeyValueStore* store_;
  std::vector<Write> writes_;                   // few: searched from the front
  std::vector<KeyValueStore::Entry*> entries_;  // of the writes, once they are reserved
};

// --- the hot path -------------------------------------------------------------------------------

namespace internal {
inline std::uint64_t load64(const char* bytes) {
  std::uint64_t word = 0;
  std::memcpy(&word, bytes, sizeof(word));
  return word;
}
inline std::uint64_t load32(const char* bytes) {
  std::uint32_t word = 0;
  std::memcpy(&word, bytes, sizeof(word));
  return word;
}
// Product of 64 x 64 bits, folded.
inline std::uint64_t fold_multiply(std::uint64_t a, std::uint64_t b) {
  __extension__ using Wide = unsigned __int128;
  const Wide product = static_cast<Wide>(a) * b;
  return static_cast<std::uint64_t>(product) ^ static_cast<std::uint64_t>(product >> 64U);
}
}  // namespace internal

// After wyhash (Wang Yi, public domain): overlapping loads and folded multiplications.
inline std::uint64_t KeyValueStore::hash(ByteView key) {
  constexpr std::uint64_t kA = 0xa0761d6478bd642fULL;
  constexpr std::uint64_t kB = 0xe7037ed1a0b428dbULL;
  const char* bytes = key.data();
  std::size_t size = key.size();
  std::uint64_t seed = kA ^ size;
  std::uint64_t a = 0;
  std::uint64_t b = 0;
  while (size > 16) {
    seed =
        internal::fold_multiply(internal::load64(bytes) ^ kB, internal::load64(bytes + 8) ^ seed);
    bytes += 16;
    size -= 16;
  }
  if (size >= 8) {
    a = internal::load64(bytes);
    b = internal::load64(bytes + size - 8);
  } else if (size >= 4) {
    a = internal::load32(bytes);
    b = internal::load32(bytes + size - 4);
  } else if (size > 0) {
    a = static_cast<unsigned char>(bytes[0]) |
        static_cast<std::uint64_t>(static_cast<unsigned char>(bytes[size / 2])) << 8U |
        static_cast<std::uint64_t>(static_cast<unsigned char>(bytes[size - 1])) << 16U;
  }
  return internal::fold_multiply(internal::fold_multiply(a ^ kB, b ^ seed), kA);
}

inline void KeyValueStore::prefetch(std::uint64_t hash) const {
  __builtin_prefetch(&slots_[(hash >> 32U) & slot_mask_]);
}

inline void KeyValueStore::prefetch_entry(std::uint64_t hash) const {
  const auto tag = static_cast<std::uint32_t>(hash >> 32U);
  for (std::size_t i = tag & slot_mask_;; i = (i + 1) & slot_mask_) {
    const Slot slot = slots_[i];
    if (slot.entry == 0) {
      return;
    }
    if (slot.tag == tag) {
      __builtin_prefetch(entry_at(slot.entry - 1), 1);
      return;
    }
  }
}

inline KeyValueStore::Entry* KeyValueStore::entry_at(std::uint32_t index) const {
  return &pages_[index >> kPageBits][index & (kPageEntries - 1)];
}

inline bool KeyValueStore::keys_equal(const char* a, const char* b, std::size_t size) {
  if (size >= 8) {
    return internal::load64(a) == internal::load64(b) &&
           internal::load64(a + size - 8) == internal::load64(b + size - 8);
  }
  if (size >= 4) {
    return internal::load32(a) == internal::load32(b) &&
           internal::load32(a + size - 4) == internal::load32(b + size - 4);
  }
  for (std::size_t i = 0; i < size; ++i) {
    if (a[i] != b[i]) {
      return false;
    }
  }
  return true;
}

inline ByteView KeyValueStore::heap_key(const Entry& entry) {
  const char* bytes = nullptr;
  std::uint32_t size = 0;
  std::memcpy(&bytes, entry.key, sizeof(bytes));
  std::memcpy(&size, entry.key + sizeof(bytes), sizeof(size));
  return {bytes, size};
}

inline ByteView KeyValueStore::key(const Entry& entry) {
  return entry.key_size == kHeapKey ? heap_key(entry) : ByteView(entry.key, entry.key_size);
}

inline bool KeyValueStore::matches(const Entry& entry, ByteView key) {
  if (key.size() <= kInlineKey) [[likely]] {
    return entry.key_size == key.size() && keys_equal(entry.key, key.data(), key.size());
  }
  return entry.key_size == kHeapKey && heap_key(entry) == key;
}

// Keeps the entry from being evicted before the next promote() or drop().
inline void KeyValueStore::touch(Entry& entry) const {
  if (entry.touched != scope_epoch_) {
    entry.touched = scope_epoch_;
    entry.flags |= kReferenced;
  }
}

inline KeyValueStore::Entry* KeyValueStore::lookup(ByteView key, std::uint64_t hash) const {
  const auto tag = static_cast<std::uint32_t>(hash >> 32U);
  for (std::size_t i = tag & slot_mask_;; i = (i + 1) & slot_mask_) {
    const Slot slot = slots_[i];
    if (slot.entry == 0) {
      return nullptr;
    }
    if (slot.tag == tag) [[likely]] {
      Entry* entry = entry_at(slot.entry - 1);
      if (matches(*entry, key)) [[likely]] {
        return entry;
      }
    }
  }
}

inline KeyValueStore::Entry* KeyValueStore::find(ByteView key, std::uint64_t hash) {
  Entry* entry = lookup(key, hash);
  if (entry != nullptr) [[likely]] {
    touch(*entry);
  }
  return entry;
}

inline Result<KeyValueStore::Entry*> KeyValueStore::find_or_load(ByteView key, std::uint64_t hash) {
  if (Entry* entry = find(key, hash); entry != nullptr) [[likely]] {
    return entry;
  }
  return load(key, hash);
}

inline const KeyValueStore::HeapValue* KeyValueStore::heap_value(const Entry::Value& value) {
  const HeapValue* heap = nullptr;
  std::memcpy(&heap, value.bytes, sizeof(heap));
  return heap;
}

inline NullableBytes KeyValueStore::view(const Entry::Value& value, std::uint8_t size) {
  if (size <= kInlineValue) [[likely]] {
    return ByteView(value.bytes, size);
  }
  if (size == kHeap) {
    const HeapValue* heap = heap_value(value);
    return ByteView(reinterpret_cast<const char*>(heap + 1), heap->size);
  }
  return {};
}

inline NullableBytes KeyValueStore::value(const Entry& entry) {
  return entry.open_size == kNone ? view(entry.committed, entry.committed_size)
                                  : view(entry.open, entry.open_size);
}

inline Timestamp KeyValueStore::timestamp(const Entry& entry) {
  return entry.open_size == kNone ? entry.committed.timestamp : entry.open.timestamp;
}

inline NullableBytes KeyValueStore::committed_value(const Entry& entry) {
  return view(entry.committed, entry.committed_size);
}

inline Timestamp KeyValueStore::committed_timestamp(const Entry& entry) {
  return entry.committed.timestamp;
}

inline Status KeyValueStore::put(Entry* entry, NullableBytes value, Timestamp timestamp) {
  if (value.size() == sizeof(std::uint64_t) && entry->open_size != kHeap) [[likely]] {
    if (entry->open_size == kNone) {
      join_scope(entry);
    }
    changelog_current_ = false;
    entry->open.timestamp = timestamp;
    std::memmove(entry->open.bytes, value.view().data(), sizeof(std::uint64_t));
    entry->open_size = sizeof(std::uint64_t);
    return {};
  }
  return put_slow(entry, value, timestamp);
}

inline bool KeyValueStore::mark_pending(Entry* entry) {
  if (change_sequence_ == UINT32_MAX) [[unlikely]] {
    renumber_pending();
  }
  entry->last_change = ++change_sequence_;
  if ((entry->flags & kPending) != 0) {
    return false;
  }
  entry->flags |= kPending;
  pending_.push_back(entry);
  pending_bytes_ += sizeof(Entry) + key(*entry).size() + value(*entry).size();
  return true;
}

}  // namespace weir::state
