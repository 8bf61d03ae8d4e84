#pragma once

#include <weir/runtime/bytes.h>
#include <weir/runtime/file_system.h>
#include <weir/runtime/result.h>
#include <weir/runtime/types.h>

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace weir::state {

// Where a checkpoint stands in its changelog (DESIGN D5).
struct StorePosition {
  Uuid changelog_topic_id;  // zero: the backend has no topic ids
  Offset next_offset;       // the checkpoint holds everything below it
  LeaderEpoch leader_epoch = kNoLeaderEpoch;
  Timestamp time = kNoTimestamp;  // when it was made
  friend bool operator==(const StorePosition&, const StorePosition&) = default;
};

// One change; a null value deletes.
struct StoreChange {
  ByteView key;
  NullableBytes value;
};

// Ordered rows of one store partition's checkpoint. RocksDB's reads them in blocks and holds
// nothing in between, so an open iterator blocks nothing; a row is seen as of some moment between
// the opening of the scan and its turn. Threading: confined to its owner.
class CheckpointIterator {
 public:
  virtual ~CheckpointIterator() = default;
  virtual bool valid() const = 0;  // false at the end or after an error
  virtual ByteView key() const = 0;
  virtual ByteView value() const = 0;
  virtual void next() = 0;
  virtual Status status() const = 0;
};

// Port: the durable table behind one store partition. RocksDB (a column family), and memory.
// A change and the position it belongs to become visible together or not at all, also after a
// crash.
//
// Threading: reads and flush() are thread-safe; ingest/write/clear one at a time, beside them.
// After a failed ingest, write, flush or clear the next one starts from what is durable; kIo that
// asks to give the store up means that changes of write() were lost that flush() had not made
// durable.
class CheckpointStore {
 public:
  virtual ~CheckpointStore() = default;
  // nullopt: nothing was checkpointed yet.
  virtual Result<std::optional<StorePosition>> position() = 0;
  virtual Result<std::optional<std::string>> get(ByteView key) = 0;
  // In the order asked. Cheaper than get() for each.
  virtual Result<std::vector<std::optional<std::string>>> get_many(
      const std::vector<ByteView>& keys) = 0;
  // [from, to) in byte order; no `to`: to the end.
  virtual Result<std::unique_ptr<CheckpointIterator>> scan(ByteView from,
                                                           std::optional<ByteView> to) = 0;
  // Builds SST files from strictly ascending keys and ingests them with the position. `next`
  // returns false at the end. Durable when ok. For checkpoints.
  virtual Status ingest(const std::function<bool(StoreChange&)>& next,
                        const StorePosition& position) = 0;
  // One WriteBatch with the position; durable after flush() (there is no log: the changelog is it).
  // For mode `direct`.
  virtual Status write(const std::vector<StoreChange>& changes, const StorePosition& position) = 0;
  virtual Status flush() = 0;
  // Removes everything, the position too. Durable when ok.
  virtual Status clear() = 0;
  // Rough number of keys; 0 when nothing is stored.
  virtual std::uint64_t estimated_keys() = 0;
};

// All store partitions of one application instance. Threading: thread-safe.
class CheckpointDatabase {
 public:
  virtual ~CheckpointDatabase() = default;
  // Opens or makes. `name` is unique per store partition: "<store>-<partition>".
  virtual Result<std::unique_ptr<CheckpointStore>> open_store(const std::string& name) = 0;
  virtual Result<std::vector<std::string>> list_stores() = 0;
  virtual Status close() = 0;
};

struct CheckpointDatabaseOptions {
  bool read_only =
      false;  // beside a running owner: the last whole checkpoint, kept while it is open
  std::size_t block_cache_bytes = 32U << 20U;
};
// RocksDB in the folder `path`, on `files` (which outlives it). Errors: kLocked, kCorrupt, kIo,
// kNotFound.
Result<std::unique_ptr<CheckpointDatabase>> open_rocksdb_checkpoints(
    FileSystem& files, const std::string& path, const CheckpointDatabaseOptions& options);
// The in-memory twin; survives only as long as it lives.
std::unique_ptr<CheckpointDatabase> make_memory_checkpoints();

}  // namespace weir::state
