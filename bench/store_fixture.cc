#include "bench/store_fixture.h"

#include <weir/runtime/clock.h>

#include <utility>

namespace weir::bench {

const StoreInput& StoreInputs::of(std::uint64_t items) {
  if (!input_ || input_->draws.size() != items) {
    auto input = std::make_unique<StoreInput>();
    input->keys = make_keys(keys_);
    input->draws = make_draws(keys_, items);
    for (const std::uint32_t draw : input->draws) {
      input->drawn += input->keys[draw];
    }
    input_ = std::move(input);
  }
  return *input_;
}

Status StoreFixture::open(const std::string& folder, std::size_t hot_bytes_max) {
  WEIR_TRY_ASSIGN(database, state::open_rocksdb_checkpoints(posix_file_system(),
                                                            join_path(folder, "rocksdb"), {}));
  WEIR_TRY_ASSIGN(checkpoint, database->open_store("store-0"));
  WEIR_TRY_ASSIGN(store,
                  state::KeyValueStore::open({.name = "store", .hot_bytes_max = hot_bytes_max},
                                             checkpoint.get(), nullptr, system_clock()));
  return {};
}

Status StoreFixture::close() {
  store.reset();
  checkpoint.reset();
  return database->close();
}

Status StoreFixture::commit() {
  WEIR_TRY(store->write_changelog(sink, 0, PartitionId(0)));
  return store->promote({Uuid{}, Offset(++commits), LeaderEpoch(0), kStoreTime});
}

Status StoreFixture::checkpoint_now() {
  WEIR_TRY(store->begin_checkpoint());
  return store->wait_checkpoint();
}

Status fill(StoreFixture& fixture, const std::vector<std::string>& keys) {
  std::uint64_t written = 0;
  for (const std::string& key : keys) {
    WEIR_TRY_ASSIGN(state::KeyValueStore::Entry * entry,
                    fixture.store->find_or_load(key, state::KeyValueStore::hash(key)));
    WEIR_TRY(add_one(*fixture.store, entry));
    if (++written % kUpdatesPerCommit == 0) {
      WEIR_TRY(fixture.commit());
    }
  }
  return fixture.commit();
}

Status verify_sum(state::KeyValueStore& store, std::uint64_t keys, std::uint64_t sum) {
  WEIR_TRY_ASSIGN(const std::unique_ptr<state::StoreIterator> rows,
                  store.scan({}, std::nullopt, state::ReadView::kCommitted));
  std::uint64_t seen = 0;
  std::uint64_t total = 0;
  for (; rows->valid(); rows->next()) {
    ++seen;
    total += static_cast<std::uint64_t>(count_in(rows->value()));
  }
  WEIR_TRY(rows->status());
  WEIR_TRY(expect_equal(seen, keys, "number of keys"));
  return expect_equal(total, sum, "sum of the values");
}

Result<std::unique_ptr<RocksDbTable>> filled_rocksdb(const std::string& folder,
                                                     const std::vector<std::string>& keys) {
  WEIR_TRY_ASSIGN(std::unique_ptr<RocksDbTable> table, RocksDbTable::open(folder));
  for (const std::string& key : keys) {
    WEIR_TRY(table->put(key, 1));
  }
  WEIR_TRY(table->flush());
  return table;
}

Contender with_inputs(std::string name, const std::shared_ptr<StoreInputs>& inputs,
                      StoreContest contest, double share) {
  return {std::move(name), [inputs, contest](Run& run) { return contest(run, *inputs); }, share};
}

}  // namespace weir::bench
