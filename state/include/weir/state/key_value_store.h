#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include <weir/runtime/backend.h>
#include <weir/runtime/executor.h>
#include <weir/state/checkpoint_store.h>

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

// One partition of a key-value store: bytes to bytes with a timestamp (DESIGN D5, Kafka's
// TimestampedKeyValueStore; stored value = int64 timestamp | value).
//
// Writes go through the commit scope (one per commit interval). Life of a scope:
//   write(...)*  ->  write_changelog(sink)  ->  [sink flushed, offsets committed]  ->  promote()
// or drop() when nothing of it was appended. Attempt scopes (one per attempt of a lane) collect writes
// of their own and are promoted into the commit scope or dropped.
//
// Threading: confined to its task's thread; checkpoints are built on the executor's.
// The hot path is not virtual: a reference to an Entry stays valid until the next promote() or drop().
class KeyValueStore;  // declared below its Entry in the implementation of this header

}  // namespace weir::state
