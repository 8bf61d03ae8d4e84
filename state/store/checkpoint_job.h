#pragma once

#include <weir/runtime/thread_annotations.h>
#include <weir/state/key_value_store.h>

#include <atomic>
#include <string>
#include <vector>

namespace weir::state {

// One checkpoint: the committed values of a frozen generation, copied, sorted and ingested.
//
// Who may touch an entry's committed value while it is frozen is decided by its `dirty` byte:
//   frozen -> busy -> clean   by the builder, which copies the value for the SST file;
//   frozen -> busy -> clean   by the store's thread in promote(), which preserves it here first.
// Whoever takes `frozen` to busy copies; the other side waits for the few nanoseconds.
//
// Threading: made, preserve() and settled by the store's thread; run by whoever comes first.
class CheckpointJob {
 public:
  using Entry = KeyValueStore::Entry;

  // `generation`: the value of Entry::dirty in all of `entries`.
  CheckpointJob(CheckpointStore& store, std::vector<Entry*> entries, std::uint8_t generation,
                const StorePosition& position, bool flush_only);

  // Runs the job unless somebody has begun it.
  void run_if_waiting();
  // True when nobody had begun it: nobody ever will.
  bool cancel();
  bool done() const { return stage_.load(std::memory_order_acquire) == Stage::kDone; }
  // Requires: begun.
  void wait();

  // Store's thread: copies the committed value if it is still frozen; afterwards it may change.
  void preserve(Entry& entry);

  std::uint8_t generation() const { return generation_; }
  const std::vector<Entry*>& entries() const { return entries_; }
  const StorePosition& position() const { return position_; }
  // Requires: done().
  const Status& result() const { return result_; }

 private:
  enum class Stage : std::uint8_t { kWaiting, kRunning, kDone, kCancelled };
  // A copied value; 32 bytes, so that sorting stays in the cache.
  struct Frozen {
    std::uint64_t prefix = 0;  // first 8 bytes of the key, big-endian
    const Entry* entry = nullptr;
    std::size_t offset = 0;  // of the stored value in the buffer
    std::uint32_t size = 0;  // kDeleted: a tombstone
    std::uint32_t buffer = 0;
  };
  static constexpr std::uint32_t kDeleted = UINT32_MAX;

  // Values copied by one thread.
  struct Copies {
    std::vector<Frozen> frozen;
    std::string values;
    void add(const Entry& entry, std::uint32_t buffer);
  };

  Status build();
  void copy_frozen();
  static bool before(const Frozen& a, const Frozen& b);

  CheckpointStore& store_;
  std::vector<Entry*> entries_;
  std::uint8_t generation_;
  StorePosition position_;
  bool flush_only_;

  Copies built_;
  Copies preserved_;  // by the store's thread; read by the builder once no entry is frozen
  Status result_;
  std::atomic<Stage> stage_{Stage::kWaiting};
  Mutex mutex_;
  CondVar finished_;
};

}  // namespace weir::state
