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

// Calls `use(key, hash)` for the draws [begin, end), looking ahead as the operators do.
template <class F>
Status for_each_draw(const KeyValueStore& store, const StoreInput& input, std::size_t begin,
                     std::size_t end, const F& use) {
  std::array<std::uint64_t, kAhead> hashes{};
  const auto look = [&](std::size_t i) {
    hashes[i % kAhead] = KeyValueStore::hash(input.key(i));
    store.prefetch(hashes[i % kAhead]);
  };
  for (std::size_t i = begin; i < std::min(begin + kAhead, end); ++i) {
    look(i);
  }
  for (std::size_t i = begin; i < end; ++i) {
    if (i + kAhead / 2 < end) {
      store.prefetch_entry(hashes[(i + kAhead / 2) % kAhead]);
    }
    const std::uint64_t hash = hashes[i % kAhead];
    if (i + kAhead < end) {
      look(i + kAhead);
    }
    WEIR_TRY(use(input.key(i), hash));
  }
  return {};
}

// --- store-hot

// A commit every 100,000 updates: measured with them, or left out.
Status update_hot(Run& run, StoreInputs& inputs, bool with_commits) {
  const StoreInput& input = inputs.of(run.items());
  StoreFixture fixture;
  WEIR_TRY(fixture.open(run.folder()));
  WEIR_TRY(fill(fixture, input.keys));
  KeyValueStore& store = *fixture.store;
  for (std::size_t from = 0; from < input.draws.size(); from += kUpdatesPerCommit) {
    const std::size_t to = std::min<std::size_t>(input.draws.size(), from + kUpdatesPerCommit);
    run.start();
    WEIR_TRY(
        for_each_draw(store, input, from, to, [&store](ByteView key, std::uint64_t hash) -> Status {
          WEIR_TRY_ASSIGN(KeyValueStore::Entry * entry, store.find_or_load(key, hash));
          return add_one(store, entry);
        }));
    if (!with_commits) {
      run.stop();
    }
    WEIR_TRY(fixture.commit());
    if (with_commits) {
      run.stop();
    }
  }
  WEIR_TRY(verify_sum(store, input.keys.size(), input.keys.size() + input.draws.size()));
  return fixture.close();
}

Status update_only(Run& run, StoreInputs& inputs) {
  return update_hot(run, inputs, false);
}
Status update_and_commit(Run& run, StoreInputs& inputs) {
  return update_hot(run, inputs, true);
}

Status get_hot(Run& run, StoreInputs& inputs) {
  const StoreInput& input = inputs.of(run.items());
  StoreFixture fixture;
  WEIR_TRY(fixture.open(run.folder()));
  WEIR_TRY(fill(fixture, input.keys));
  KeyValueStore& store = *fixture.store;
  std::uint64_t sum = 0;
  run.start();
  WEIR_TRY(for_each_draw(
      store, input, 0, input.draws.size(), [&](ByteView key, std::uint64_t hash) -> Status {
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
  std::string key;
  for (std::size_t i = 0; i < input.draws.size(); ++i) {
    ++map[key.assign(input.key(i))];
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
  std::string key;
  for (std::size_t i = 0; i < input.draws.size(); ++i) {
    sum += static_cast<std::uint64_t>(map.find(key.assign(input.key(i)))->second);
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
    update.contenders = {with_inputs("weir", inputs, update_only),
                         with_inputs("std_unordered_map", inputs, update_std_map)};
    Case committed = update;
    committed.name = fmt::format("update_and_commit.{}", size.name);
    committed.budget_ns.reset();
    committed.contenders.front() = with_inputs("weir", inputs, update_and_commit);
    for (Case* one : {&get, &update, &committed}) {
      cases.push_back(std::move(*one));
    }
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
