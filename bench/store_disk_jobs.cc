#include "bench/jobs.h"
#include "bench/store_fixture.h"

#include <fmt/core.h>

#include <algorithm>
#include <memory>
#include <unordered_map>

// store-cold, store-big and restore: keys that must be brought into memory.

namespace weir::bench {
namespace {

using state::KeyValueStore;

// --- store-cold

Status get_cold(Run& run, StoreInputs& inputs, std::size_t batch) {
  const StoreInput& input = inputs.of(run.items());
  {
    StoreFixture before;
    WEIR_TRY(before.open(run.folder()));
    WEIR_TRY(fill(before, input.keys));
    WEIR_TRY(before.checkpoint_now());
    WEIR_TRY(before.close());
  }
  StoreFixture fixture;
  WEIR_TRY(fixture.open(run.folder()));
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

Status get_rocksdb(Run& run, StoreInputs& inputs) {
  const StoreInput& input = inputs.of(run.items());
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

Status update_big(Run& run, StoreInputs& inputs) {
  constexpr std::size_t kCommit = 10'000;
  const StoreInput& input = inputs.of(run.items());
  StoreFixture fixture;
  WEIR_TRY(fixture.open(run.folder()));
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

Status update_rocksdb(Run& run, StoreInputs& inputs) {
  const StoreInput& input = inputs.of(run.items());
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

// --- restore

constexpr const char* kChangelog = "changelog";

// A changelog as a count of the draws leaves it: every update, or most of them.
Status write_changelog(Backend& log, const StoreInput& input) {
  WEIR_TRY(make_topic(log.admin(), kChangelog, "memory"));
  WEIR_TRY_ASSIGN(const std::unique_ptr<RecordSink> sink, open_sink(log));
  WEIR_TRY_ASSIGN(const SinkTopicInfo topic, sink->open_topic(kChangelog));
  std::vector<std::int64_t> counts(input.keys.size());
  for (const std::uint32_t draw : input.draws) {
    char bytes[sizeof(std::int64_t)];
    store_be(bytes, ++counts[draw]);
    const RecordRef record{.key = ByteView(input.keys[draw]),
                           .value = ByteView(bytes, sizeof(bytes)),
                           .timestamp = kStoreTime,
                           .headers = {}};
    WEIR_TRY(sink->send(topic.handle, PartitionId(0), {&record, 1}));
  }
  return sink->flush().status();
}

std::uint64_t distinct(const StoreInput& input) {
  std::vector<bool> seen(input.keys.size());
  for (const std::uint32_t draw : input.draws) {
    seen[draw] = true;
  }
  return static_cast<std::uint64_t>(std::count(seen.begin(), seen.end(), true));
}

Status restore_store(Run& run, StoreInputs& inputs) {
  const StoreInput& input = inputs.of(run.items());
  WEIR_TRY_ASSIGN(const std::unique_ptr<log::EmbeddedLog> log, open_log(run.folder()));
  WEIR_TRY(write_changelog(*log, input));
  WEIR_TRY_ASSIGN(const std::unique_ptr<RecordSource> source, open_source(*log, kChangelog));
  StoreFixture fixture;
  WEIR_TRY(fixture.open(run.folder()));
  Status restored;
  run.start();
  WEIR_TRY(read_records(*source, run.items(), [&](const RecordBlock& block) {
    const state::StorePosition after{block.topic_id, block.next_offset, block.leader_epoch,
                                     kStoreTime};
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

Status restore_std_map(Run& run, StoreInputs& inputs) {
  const StoreInput& input = inputs.of(run.items());
  WEIR_TRY_ASSIGN(const std::unique_ptr<log::EmbeddedLog> log, open_log(run.folder()));
  WEIR_TRY(write_changelog(*log, input));
  WEIR_TRY_ASSIGN(const std::unique_ptr<RecordSource> source, open_source(*log, kChangelog));
  std::unordered_map<std::string, std::int64_t> map;
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

}  // namespace

std::vector<Case> store_cold_cases() {
  const auto inputs = std::make_shared<StoreInputs>(200'000);
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
  const auto inputs = std::make_shared<StoreInputs>(500'000);
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

std::vector<Case> restore_cases() {
  std::vector<Case> cases;
  for (const StoreSize& size : kStoreSizes) {
    const auto inputs = std::make_shared<StoreInputs>(size.keys);
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
