#include "bench/jobs.h"
#include "bench/store_fixture.h"

#include <fmt/core.h>

#include <algorithm>
#include <array>
#include <memory>
#include <numeric>
#include <unordered_map>

// store-hot and scan: keys in memory.

namespace weir::bench {
namespace {

using state::KeyValueStore;

constexpr std::size_t kAhead = 16;

// Calls `use(key, hash)` for each draw, looking ahead as the operators do.
template <class F>
Status for_each_draw(const KeyValueStore& store, const StoreInput& input,
                     std::span<const std::uint32_t> draws, const F& use) {
  std::array<std::uint64_t, kAhead> hashes{};
  const auto look = [&](std::size_t i) {
    hashes[i % kAhead] = KeyValueStore::hash(input.keys[draws[i]]);
    store.prefetch(hashes[i % kAhead]);
  };
  for (std::size_t i = 0; i < std::min(kAhead, draws.size()); ++i) {
    look(i);
  }
  for (std::size_t i = 0; i < draws.size(); ++i) {
    if (i + kAhead / 2 < draws.size()) {
      store.prefetch_entry(hashes[(i + kAhead / 2) % kAhead]);
    }
    const std::uint64_t hash = hashes[i % kAhead];
    if (i + kAhead < draws.size()) {
      look(i + kAhead);
    }
    WEIR_TRY(use(ByteView(input.keys[draws[i]]), hash));
  }
  return {};
}

// --- store-hot

Status update_hot(Run& run, StoreInputs& inputs) {
  const StoreInput& input = inputs.of(run.items());
  StoreFixture fixture;
  WEIR_TRY(fixture.open(run.folder()));
  WEIR_TRY(fill(fixture, input.keys));
  KeyValueStore& store = *fixture.store;
  run.start();
  for (std::size_t from = 0; from < input.draws.size(); from += kUpdatesPerCommit) {
    const auto draws = std::span(input.draws).subspan(from);
    WEIR_TRY(for_each_draw(
        store, input, draws.first(std::min<std::size_t>(draws.size(), kUpdatesPerCommit)),
        [&store](ByteView key, std::uint64_t hash) -> Status {
          WEIR_TRY_ASSIGN(KeyValueStore::Entry * entry, store.find_or_load(key, hash));
          return add_one(store, entry);
        }));
    WEIR_TRY(fixture.commit());
  }
  run.stop();
  WEIR_TRY(verify_sum(store, input.keys.size(), input.keys.size() + input.draws.size()));
  return fixture.close();
}

Status get_hot(Run& run, StoreInputs& inputs) {
  const StoreInput& input = inputs.of(run.items());
  StoreFixture fixture;
  WEIR_TRY(fixture.open(run.folder()));
  WEIR_TRY(fill(fixture, input.keys));
  KeyValueStore& store = *fixture.store;
  std::uint64_t sum = 0;
  run.start();
  WEIR_TRY(
      for_each_draw(store, input, input.draws, [&](ByteView key, std::uint64_t hash) -> Status {
        WEIR_TRY_ASSIGN(const KeyValueStore::Entry* entry, store.find_or_load(key, hash));
        sum += static_cast<std::uint64_t>(count_in(KeyValueStore::value(*entry)));
        return {};
      }));
  run.stop();
  WEIR_TRY(expect_equal(sum, input.draws.size(), "sum of the values"));
  return fixture.close();
}

using StdMap = std::unordered_map<std::string, std::int64_t>;

StdMap filled_map(const std::vector<std::string>& keys) {
  StdMap map;
  for (const std::string& key : keys) {
    map.emplace(key, 1);
  }
  return map;
}

Status update_std_map(Run& run, StoreInputs& inputs) {
  const StoreInput& input = inputs.of(run.items());
  StdMap map = filled_map(input.keys);
  run.start();
  for (const std::uint32_t draw : input.draws) {
    ++map[input.keys[draw]];
  }
  run.stop();
  const std::int64_t sum =
      std::accumulate(map.begin(), map.end(), std::int64_t{0},
                      [](std::int64_t total, const auto& row) { return total + row.second; });
  return expect_equal(static_cast<std::uint64_t>(sum), input.keys.size() + run.items(),
                      "sum of the values");
}

Status get_std_map(Run& run, StoreInputs& inputs) {
  const StoreInput& input = inputs.of(run.items());
  const StdMap map = filled_map(input.keys);
  std::uint64_t sum = 0;
  run.start();
  for (const std::uint32_t draw : input.draws) {
    sum += static_cast<std::uint64_t>(map.find(input.keys[draw])->second);
  }
  run.stop();
  return expect_equal(sum, run.items(), "sum of the values");
}

// --- scan

Status scan_store(Run& run, bool resident) {
  const std::vector<std::string> keys = make_keys(static_cast<std::uint32_t>(run.items()));
  StoreFixture fixture;
  WEIR_TRY(fixture.open(run.folder()));
  WEIR_TRY(fill(fixture, keys));
  if (!resident) {
    WEIR_TRY(fixture.checkpoint_now());
    WEIR_TRY(fixture.close());
    WEIR_TRY(fixture.open(run.folder()));
  }
  // The first scan of a store makes its index of resident keys.
  WEIR_TRY(fixture.store->scan({}, std::nullopt).status());
  run.start();
  WEIR_TRY(verify_sum(*fixture.store, keys.size(), keys.size()));
  run.stop();
  return fixture.close();
}

Status scan_rocksdb(Run& run) {
  const std::vector<std::string> keys = make_keys(static_cast<std::uint32_t>(run.items()));
  WEIR_TRY_ASSIGN(const std::unique_ptr<RocksDbTable> table, filled_rocksdb(run.folder(), keys));
  run.start();
  WEIR_TRY_ASSIGN(const RocksDbTable::Totals totals, table->scan());
  run.stop();
  return expect_equal(totals.keys, keys.size(), "number of keys");
}

}  // namespace

std::vector<Case> store_hot_cases() {
  std::vector<Case> cases;
  for (const StoreSize& size : kStoreSizes) {
    const double budget = size.keys == kStoreSizes[0].keys ? 25 : 100;
    const auto inputs = std::make_shared<StoreInputs>(size.keys);
    Case get;
    get.name = fmt::format("get.{}", size.name);
    get.unit = "record";
    get.items = 5'000'000;
    get.counted = 1'000'000;
    get.budget_ns = budget;
    get.contenders = {with_inputs("weir", inputs, get_hot),
                      with_inputs("std_unordered_map", inputs, get_std_map)};
    Case update = get;
    update.name = fmt::format("update.{}", size.name);
    update.contenders = {with_inputs("weir", inputs, update_hot),
                         with_inputs("std_unordered_map", inputs, update_std_map)};
    cases.push_back(std::move(get));
    cases.push_back(std::move(update));
  }
  return cases;
}

std::vector<Case> scan_cases() {
  std::vector<Case> cases;
  for (const bool resident : {true, false}) {
    Case& one = cases.emplace_back();
    one.name = resident ? "resident" : "checkpoint";
    one.unit = "record";
    one.items = 500'000;
    one.contenders = {{"weir", [resident](Run& run) { return scan_store(run, resident); }},
                      {"rocksdb_iterator", scan_rocksdb}};
  }
  return cases;
}

}  // namespace weir::bench
