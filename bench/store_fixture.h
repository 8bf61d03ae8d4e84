#pragma once

#include "bench/corpus.h"
#include "bench/harness.h"
#include "bench/log_fixture.h"
#include "bench/rocksdb_table.h"

#include <weir/runtime/endian.h>
#include <weir/state/checkpoint_store.h>
#include <weir/state/key_value_store.h>

#include <array>
#include <memory>
#include <string>
#include <vector>

// What the store jobs share: 16-byte keys, values of eight bytes that count how often the key was
// updated, uniform draws.

namespace weir::bench {

inline constexpr std::uint64_t kUpdatesPerCommit = 100'000;
inline constexpr std::size_t kKeyBytes = 16;
inline constexpr std::size_t kHotBytes = 1ULL << 30U;
inline constexpr Timestamp kStoreTime = 1'700'000'000'000;

struct StoreInput {
  std::vector<std::string> keys;
  std::vector<std::uint32_t> draws;  // as many as a run has items
  std::string drawn;                 // their keys one behind the other, as in a batch

  ByteView key(std::size_t draw) const { return {drawn.data() + draw * kKeyBytes, kKeyBytes}; }
};

// The input of a case, kept from run to run.
class StoreInputs {
 public:
  explicit StoreInputs(std::uint32_t keys) : keys_(keys) {}
  const StoreInput& of(std::uint64_t items);

 private:
  std::uint32_t keys_;
  std::unique_ptr<const StoreInput> input_;
};

// A store on RocksDB in the run's folder.
struct StoreFixture {
  std::unique_ptr<state::CheckpointDatabase> database;
  std::unique_ptr<state::CheckpointStore> checkpoint;
  std::unique_ptr<state::KeyValueStore> store;
  NullSink sink;
  std::int64_t commits = 0;

  Status open(const std::string& folder, std::size_t hot_bytes_max = kHotBytes);
  Status close();
  Status commit();
  Status checkpoint_now();
};

inline std::int64_t count_in(NullableBytes value) {
  return value.is_null() ? 0 : load_be<std::int64_t>(value.view().data());
}

inline Status add_one(state::KeyValueStore& store, state::KeyValueStore::Entry* entry) {
  char bytes[sizeof(std::int64_t)];
  store_be(bytes, count_in(state::KeyValueStore::value(*entry)) + 1);
  return store.put(entry, ByteView(bytes, sizeof(bytes)), kStoreTime);
}

// Every key once, committed.
Status fill(StoreFixture& fixture, const std::vector<std::string>& keys);
// Through a scan: what was written and nothing else is there.
Status verify_sum(state::KeyValueStore& store, std::uint64_t keys, std::uint64_t sum);
// The same keys in RocksDB, flushed.
Result<std::unique_ptr<RocksDbTable>> filled_rocksdb(const std::string& folder,
                                                     const std::vector<std::string>& keys);

using StoreContest = Status (*)(Run&, StoreInputs&);
Contender with_inputs(std::string name, const std::shared_ptr<StoreInputs>& inputs,
                      StoreContest contest, double share = 1);

struct StoreSize {
  const char* name;
  std::uint32_t keys;
};
inline constexpr std::array kStoreSizes{StoreSize{"20k", 20'000}, StoreSize{"1M", 1'000'000}};

}  // namespace weir::bench
