#include "bench/corpus.h"
#include "bench/jobs.h"
#include "bench/log_fixture.h"
#include "bench/rocksdb_table.h"

#include <weir/runtime/clock.h>
#include <weir/runtime/endian.h>
#include <weir/state/checkpoint_store.h>
#include <weir/state/key_value_store.h>

#include <fmt/core.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <memory>
#include <numeric>
#include <unordered_map>

// store-hot, store-cold, store-big, scan and restore: 16-byte keys, values of eight bytes that
// count how often the key was updated.

namespace weir::bench {
namespace {

using state::KeyValueStore;

constexpr std::size_t kAhead = 16;
constexpr std::uint64_t kUpdatesPerCommit = 100'000;
constexpr Timestamp kTime = 1'700'000'000'000;

// What is drawn once for all runs of a case.
struct Input {
  std::vector<std::string> keys;
  std::vector<std::uint32_t> draws;  // as many as a run has items
};

std::shared_ptr<const Input> make_input(std::uint32_t keys, std::uint64_t items) {
  auto input = std::make_shared<Input>();
  input->keys = make_keys(keys);
  input->draws = make_draws(keys, items);
  return input;
}

// The inputs of a case, kept from run to run.
class Inputs {
 public:
  explicit Inputs(std::uint32_t keys) : keys_(keys) {}
  const Input& of(std::uint64_t items) {
    if (!input_ || input_->draws.size() != items) {
      input_ = make_input(keys_, items);
    }
    return *input_;
  }

 private:
  std::uint32_t keys_;
  std::shared_ptr<const Input> input_;
};

// A store on RocksDB in the run's folder.
struct Fixture {
  std::unique_ptr<state::CheckpointDatabase> database;
  std::unique_ptr<state::CheckpointStore> checkpoint;
  std::unique_ptr<KeyValueStore> store;
  NullSink sink;
  std::int64_t commits = 0;

  Status open(const std::string& folder, std::size_t hot_bytes_max) {
    WEIR_TRY_ASSIGN(database, state::open_rocksdb_checkpoints(posix_file_system(),
                                                              join_path(folder, "rocksdb"), {}));
    WEIR_TRY_ASSIGN(checkpoint, database->open_store("store-0"));
    WEIR_TRY_ASSIGN(store, KeyValueStore::open({.name = "store", .hot_bytes_max = hot_bytes_max},
                                               checkpoint.get(), nullptr, system_clock()));
    return {};
  }
  Status close() {
    store.reset();
    checkpoint.reset();
    return database->close();
  }
  Status commit() {
    WEIR_TRY(store->write_changelog(sink, 0, PartitionId(0)));
    return store->promote({Uuid{}, Offset(++commits), LeaderEpoch(0), kTime});
  }
  Status checkpoint_now() {
    WEIR_TRY(store->begin_checkpoint());
    return store->wait_checkpoint();
  }
};

std::int64_t count_in(NullableBytes value) {
  return value.is_null() ? 0 : load_be<std::int64_t>(value.view().data());
}

Status add_one(KeyValueStore& store, KeyValueStore::Entry* entry) {
  char bytes[sizeof(std::int64_t)];
  store_be(bytes, count_in(KeyValueStore::value(*entry)) + 1);
  return store.put(entry, ByteView(bytes, sizeof(bytes)), kTime);
}

// Calls `use(key, hash)` for each draw, looking ahead as the operators do.
template <class F>
Status for_each_draw(const KeyValueStore& store, const Input& input,
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

// Every key once, committed.
Status fill(Fixture& fixture, const std::vector<std::string>& keys) {
  std::uint64_t written = 0;
  for (const std::string& key : keys) {
    WEIR_TRY_ASSIGN(KeyValueStore::Entry * entry,
                    fixture.store->find_or_load(key, KeyValueStore::hash(key)));
    WEIR_TRY(add_one(*fixture.store, entry));
    if (++written % kUpdatesPerCommit == 0) {
      WEIR_TRY(fixture.commit());
    }
  }
  return fixture.commit();
}

// The sum over all keys, through scans: what was written and nothing else is there.
Status verify_sum(KeyValueStore& store, std::uint64_t keys, std::uint64_t sum) {
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

// --- store-hot

Status update_hot(Run& run, Inputs& inputs) {
  const Input& input = inputs.of(run.items());
  Fixture fixture;
  WEIR_TRY(fixture.open(run.folder(), 1ULL << 30U));
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

Status get_hot(Run& run, Inputs& inputs) {
  const Input& input = inputs.of(run.items());
  Fixture fixture;
  WEIR_TRY(fixture.open(run.folder(), 1ULL << 30U));
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

Status update_std_map(Run& run, Inputs& inputs) {
  const Input& input = inputs.of(run.items());
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

Status get_std_map(Run& run, Inputs& inputs) {
  const Input& input = inputs.of(run.items());
  const StdMap map = filled_map(input.keys);
  std::uint64_t sum = 0;
  run.start();
  for (const std::uint32_t draw : input.draws) {
    sum += static_cast<std::uint64_t>(map.find(input.keys[draw])->second);
  }
  run.stop();
  return expect_equal(sum, run.items(), "sum of the values");
}

// --- store-cold

Status get_cold(Run& run, Inputs& inputs, std::size_t batch) {
  const Input& input = inputs.of(run.items());
  {
    Fixture before;
    WEIR_TRY(before.open(run.folder(), 1ULL << 30U));
    WEIR_TRY(fill(before, input.keys));
    WEIR_TRY(before.checkpoint_now());
    WEIR_TRY(before.close());
  }
  Fixture fixture;
  WEIR_TRY(fixture.open(run.folder(), 1ULL << 30U));
  std::vector<ByteView> asked;
  std::uint64_t sum = 0;
  run.start();
  for (std::size_t i = 0; i < input.draws.size(); ++i) {
    if (batch > 1 && i % batch == 0) {
      asked.clear();
      for (std::size_t j = i; j < std::min(input.draws.size(), i + batch); ++j) {
        asked.emplace_back(input.keys[input.draws[j]]);
      }
      WEIR_TRY(fixture.store->load_many(asked));
    }
    WEIR_TRY_ASSIGN(const state::NullableValue value,
                    fixture.store->get(input.keys[input.draws[i]]));
    sum += value ? static_cast<std::uint64_t>(count_in(value->value)) : 0U;
  }
  run.stop();
  WEIR_TRY(expect_equal(sum, run.items(), "sum of the values"));
  return fixture.close();
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

Status get_rocksdb(Run& run, Inputs& inputs) {
  const Input& input = inputs.of(run.items());
  WEIR_TRY(filled_rocksdb(run.folder(), input.keys).status());  // and closed
  WEIR_TRY_ASSIGN(const std::unique_ptr<RocksDbTable> table, RocksDbTable::open(run.folder()));
  std::uint64_t sum = 0;
  run.start();
  for (const std::uint32_t draw : input.draws) {
    WEIR_TRY_ASSIGN(const std::optional<std::int64_t> value, table->get(input.keys[draw]));
    sum += static_cast<std::uint64_t>(value.value_or(0));
  }
  run.stop();
  return expect_equal(sum, run.items(), "sum of the values");
}

// --- store-big

// Memory for a tenth of the keys: 64 bytes an entry, 12 of slots, as the store counts them.
std::size_t tenth_of(std::size_t keys) {
  return std::max<std::size_t>(keys / 10 * 76, 1U << 16U);
}

Status update_big(Run& run, Inputs& inputs) {
  constexpr std::size_t kCommit = 10'000;
  const Input& input = inputs.of(run.items());
  Fixture fixture;
  WEIR_TRY(fixture.open(run.folder(), 1ULL << 30U));
  WEIR_TRY(fill(fixture, input.keys));
  WEIR_TRY(fixture.checkpoint_now());
  WEIR_TRY(fixture.close());
  WEIR_TRY(fixture.open(run.folder(), tenth_of(input.keys.size())));
  KeyValueStore& store = *fixture.store;
  std::vector<ByteView> asked;
  std::size_t most = 0;
  run.start();
  for (std::size_t from = 0; from < input.draws.size();) {
    const std::size_t to = std::min(input.draws.size(), from + 64);
    asked.clear();
    for (std::size_t i = from; i < to; ++i) {
      asked.emplace_back(input.keys[input.draws[i]]);
    }
    WEIR_TRY(store.load_many(asked));
    for (const ByteView key : asked) {
      WEIR_TRY_ASSIGN(KeyValueStore::Entry * entry,
                      store.find_or_load(key, KeyValueStore::hash(key)));
      WEIR_TRY(add_one(store, entry));
    }
    most = std::max(most, store.bytes_used());
    if (to / kCommit != from / kCommit || store.needs_early_commit()) {
      WEIR_TRY(fixture.commit());
    }
    from = to;
  }
  WEIR_TRY(fixture.commit());
  run.stop();
  run.note("memory_of_bound",
           static_cast<double>(most) / static_cast<double>(tenth_of(input.keys.size())), "x");
  run.note("checkpoints", static_cast<double>(store.metrics().checkpoints.value()), "checkpoints");
  WEIR_TRY(verify_sum(store, input.keys.size(), input.keys.size() + run.items()));
  return fixture.close();
}

Status update_rocksdb(Run& run, Inputs& inputs) {
  const Input& input = inputs.of(run.items());
  WEIR_TRY_ASSIGN(const std::unique_ptr<RocksDbTable> table,
                  filled_rocksdb(run.folder(), input.keys));
  run.start();
  for (const std::uint32_t draw : input.draws) {
    const std::string& key = input.keys[draw];
    WEIR_TRY_ASSIGN(const std::optional<std::int64_t> value, table->get(key));
    WEIR_TRY(table->put(key, value.value_or(0) + 1));
  }
  run.stop();
  WEIR_TRY_ASSIGN(const RocksDbTable::Totals totals, table->scan());
  WEIR_TRY(expect_equal(totals.keys, input.keys.size(), "number of keys"));
  return expect_equal(static_cast<std::uint64_t>(totals.sum), input.keys.size() + run.items(),
                      "sum of the values");
}

// --- scan

Status scan_store(Run& run, bool resident) {
  const std::vector<std::string> keys = make_keys(static_cast<std::uint32_t>(run.items()));
  Fixture fixture;
  WEIR_TRY(fixture.open(run.folder(), 1ULL << 30U));
  WEIR_TRY(fill(fixture, keys));
  if (!resident) {
    WEIR_TRY(fixture.checkpoint_now());
    WEIR_TRY(fixture.close());
    WEIR_TRY(fixture.open(run.folder(), 1ULL << 30U));
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

// --- restore

constexpr const char* kChangelog = "changelog";

// A changelog as a count of the draws leaves it: every update, or most of them.
Status write_changelog(Backend& log, const Input& input) {
  WEIR_TRY(make_topic(log.admin(), kChangelog, "memory"));
  WEIR_TRY_ASSIGN(const std::unique_ptr<RecordSink> sink, open_sink(log));
  WEIR_TRY_ASSIGN(const SinkTopicInfo topic, sink->open_topic(kChangelog));
  std::vector<std::int64_t> counts(input.keys.size());
  for (const std::uint32_t draw : input.draws) {
    char bytes[sizeof(std::int64_t)];
    store_be(bytes, ++counts[draw]);
    const RecordRef record{.key = ByteView(input.keys[draw]),
                           .value = ByteView(bytes, sizeof(bytes)),
                           .timestamp = kTime,
                           .headers = {}};
    WEIR_TRY(sink->send(topic.handle, PartitionId(0), {&record, 1}));
  }
  return sink->flush().status();
}

std::uint64_t distinct(const Input& input) {
  std::vector<bool> seen(input.keys.size());
  for (const std::uint32_t draw : input.draws) {
    seen[draw] = true;
  }
  return static_cast<std::uint64_t>(std::count(seen.begin(), seen.end(), true));
}

Status restore_store(Run& run, Inputs& inputs) {
  const Input& input = inputs.of(run.items());
  WEIR_TRY_ASSIGN(const std::unique_ptr<log::EmbeddedLog> log, open_log(run.folder()));
  WEIR_TRY(write_changelog(*log, input));
  WEIR_TRY_ASSIGN(const std::unique_ptr<RecordSource> source, open_source(*log, kChangelog));
  Fixture fixture;
  WEIR_TRY(fixture.open(run.folder(), 1ULL << 30U));
  Status restored;
  run.start();
  WEIR_TRY(read_records(*source, run.items(), [&](const RecordBlock& block) {
    const state::StorePosition after{block.topic_id, block.next_offset, block.leader_epoch, kTime};
    if (restored.ok()) {
      restored = fixture.store->restore(block.records, after);
    }
  }));
  WEIR_TRY(restored);
  WEIR_TRY(fixture.store->finish_restore(*fixture.store->position()));
  run.stop();
  WEIR_TRY(verify_sum(*fixture.store, distinct(input), run.items()));
  WEIR_TRY(fixture.close());
  return log->close();
}

Status restore_std_map(Run& run, Inputs& inputs) {
  const Input& input = inputs.of(run.items());
  WEIR_TRY_ASSIGN(const std::unique_ptr<log::EmbeddedLog> log, open_log(run.folder()));
  WEIR_TRY(write_changelog(*log, input));
  WEIR_TRY_ASSIGN(const std::unique_ptr<RecordSource> source, open_source(*log, kChangelog));
  StdMap map;
  run.start();
  WEIR_TRY(read_records(*source, run.items(), [&map](const RecordBlock& block) {
    for (const RecordView& record : block.records) {
      map[std::string(record.key.view())] = count_in(record.value);
    }
  }));
  run.stop();
  WEIR_TRY(expect_equal(map.size(), distinct(input), "number of keys"));
  return log->close();
}

using StoreContest = Status (*)(Run&, Inputs&);

Contender with_inputs(std::string name, const std::shared_ptr<Inputs>& inputs, StoreContest contest,
                      double share = 1) {
  return {std::move(name), [inputs, contest](Run& run) { return contest(run, *inputs); }, share};
}

struct Size {
  const char* name;
  std::uint32_t keys;
};
constexpr std::array kSizes{Size{"20k", 20'000}, Size{"1M", 1'000'000}};

}  // namespace

std::vector<Case> store_hot_cases() {
  std::vector<Case> cases;
  for (const Size& size : kSizes) {
    const double budget = size.keys == kSizes[0].keys ? 25 : 100;
    const auto inputs = std::make_shared<Inputs>(size.keys);
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

std::vector<Case> store_cold_cases() {
  const auto inputs = std::make_shared<Inputs>(200'000);
  std::vector<Case> cases;
  for (const std::size_t batch : {std::size_t{1}, std::size_t{64}}) {
    Case& one = cases.emplace_back();
    one.name = batch == 1 ? "get" : "get_many";
    one.unit = "record";
    one.items = 100'000;
    one.rounds = 5;
    one.contenders = {{"weir", [inputs, batch](Run& run) { return get_cold(run, *inputs, batch); }},
                      with_inputs("rocksdb_get", inputs, get_rocksdb)};
  }
  return cases;
}

std::vector<Case> store_big_cases() {
  const auto inputs = std::make_shared<Inputs>(500'000);
  Case one;
  one.name = "update";
  one.unit = "record";
  one.items = 200'000;
  one.rounds = 3;
  one.show_rss = true;
  one.contenders = {with_inputs("weir", inputs, update_big),
                    with_inputs("rocksdb_get_put", inputs, update_rocksdb, 0.5)};
  return {one};
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

std::vector<Case> restore_cases() {
  std::vector<Case> cases;
  for (const Size& size : kSizes) {
    const auto inputs = std::make_shared<Inputs>(size.keys);
    Case& one = cases.emplace_back();
    one.name = size.name;
    one.unit = "record";
    one.items = 3'000'000;
    one.counted = 500'000;
    one.contenders = {with_inputs("weir", inputs, restore_store),
                      with_inputs("std_unordered_map", inputs, restore_std_map)};
  }
  return cases;
}

}  // namespace weir::bench
