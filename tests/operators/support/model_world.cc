#include "tests/operators/support/model_world.h"

#include "tests/support/size_of_run.h"

#include <weir/operators/store_reader.h>
#include <weir/runtime/endian.h>

#include <gtest/gtest.h>

#include <chrono>
#include <cstdlib>
#include <iostream>

namespace weir::test {

namespace {

using std::chrono::milliseconds;
using Point = testing::MemoryBackend::FaultPoint;

Text decoded(const Text& bytes, ValueIs values) {
  return values == ValueIs::kLong && bytes.size() == sizeof(std::int64_t)
             ? std::to_string(load_be<std::int64_t>(bytes.data()))
             : bytes;
}

std::int64_t metric(App& app, const Text& name) {
  std::int64_t sum = 0;
  const Text text = app.metrics().prometheus_text();
  for (std::size_t at = text.find("\n" + name + "{"); at != Text::npos;
       at = text.find("\n" + name + "{", at + 1)) {
    sum += std::strtoll(text.c_str() + text.find("} ", at) + 2, nullptr, 10);
  }
  return sum;
}

AppOptions random_options(ModelWorld& world) {
  AppOptions options = world.options("m");
  Rng& rng = world.rng;
  const char* modes[] = {"hot", "memory", "direct"};
  options.store_mode = modes[rng.below(3)];
  if (options.store_mode == modes[0] && rng.chance(1, 2)) {
    options.store_hot_max_bytes = rng.between(1500, 5000);  // entries come and go
  }
  options.num_stream_threads = rng.between(1, 2);
  options.commit_interval_ms = rng.between(1, 80);
  options.checkpoint_interval_ms = rng.between(20, 300);
  options.buffered_records_per_partition = rng.chance(1, 2) ? 1000 : rng.between(1, 50);
  options.repartition_purge_interval_ms = 86'400'000;
  options.statestore_cache_max_bytes =
      world.shape.cache_bytes[rng.below(world.shape.cache_bytes.size())];
  return options;
}

void plan_fault(ModelWorld& world) {
  const Point points[] = {Point::kSend, Point::kFlush, Point::kCommit, Point::kPoll};
  const Errc codes[] = {Errc::kIo, Errc::kNoSpace, Errc::kTimedOut};
  world.memory.fail_next(points[world.rng.below(4)], Error(codes[world.rng.below(3)], "random"));
}

ModelStart begin(ModelWorld& world) {
  ModelStart start;
  const auto note = [&](const Text& topic) {
    for (std::int32_t p = 0; p < world.shape.partitions; ++p) {
      start.committed[topic].push_back(world.committed(topic, p));
    }
  };
  note("in");
  const auto measure = [&](const Text& topic) {
    for (std::int32_t p = 0; p < world.partitions(topic); ++p) {
      start.lengths[topic].push_back(world.memory.records({topic, PartitionId(p)}).size());
    }
  };
  for (const Text& topic : world.shape.internal) {
    note("m-" + topic);
    measure("m-" + topic);
  }
  for (const Text& topic : world.shape.outputs) {
    const Status emptied = world.memory.admin().delete_records({topic, PartitionId(0)}, kNoOffset);
    EXPECT_TRUE(emptied.ok()) << emptied.error().to_string();
  }
  for (const Text& store : world.shape.stores) {
    for (std::int32_t p = 0; p < world.shape.partitions; ++p) {
      start.changelogs[store].push_back(world.read(world.changelog(store), p));
    }
  }
  return start;
}

// One life. Returns false when the test has failed.
bool one_life(ModelWorld& world, const Topology& topology, std::size_t inputs, bool is_last,
              const std::function<void(const ModelLife&)>& check) {
  const ModelStart start = begin(world);
  const AppOptions options = random_options(world);
  SCOPED_TRACE("cache " + std::to_string(options.statestore_cache_max_bytes) + " mode " +
               options.store_mode + " sent " + std::to_string(world.sent));
  std::unique_ptr<App> app = world.make_app(topology, options);
  const Status started = app->start();
  EXPECT_TRUE(started.ok()) << started.error().to_string();
  const bool repeats = world.shape.records_repeat && !is_last;
  bool drained = false;
  for (std::int64_t round = world.rng.between(1, 4); round > 0; --round) {
    if (world.sent < inputs) {
      world.produce_random(static_cast<std::size_t>(world.rng.between(
          1, std::max<std::int64_t>(200, static_cast<std::int64_t>(inputs / 40)))));
    }
    if (repeats && world.rng.chance(1, 4)) {
      plan_fault(world);
    }
    drained = is_last || world.rng.chance(1, 2);
    if (!drained) {
      step_until(
          world, *app, [] { return false; }, static_cast<int>(world.rng.below(25)))
          .ignore("it only has to live for a while");
      continue;
    }
    const Status done = drain(world, *app);
    EXPECT_TRUE(done.ok()) << done.error().to_string();
    const bool exact = metric(*app, "weir_app_revivals_total") == 0;
    world.exact_checks += exact ? 1 : 0;
    check({start, exact, true});
    if (::testing::Test::HasFailure()) {
      return false;
    }
  }
  EXPECT_TRUE(app->error().ok()) << app->error().error().to_string();
  const bool exact = metric(*app, "weir_app_revivals_total") == 0;
  world.revivals += exact ? 0 : 1;
  if (!repeats || world.rng.chance(1, 3)) {
    const Status stopped = app->stop(milliseconds(60'000));
    // A fault that nothing met before may hit it.
    EXPECT_TRUE(stopped.ok() || world.shape.records_repeat) << stopped.error().to_string();
    world.crashes += stopped.ok() ? 0 : 1;
  } else {
    ++world.crashes;
  }
  app.reset();
  world.files.process_crash();
  check({start, exact, false});
  return !::testing::Test::HasFailure();
}

}  // namespace

std::uint64_t model_seed(std::uint64_t first) {
  const std::uint64_t seed = weir::testing::given_seed().value_or(first);
  std::cout << "seed " << seed << " (WEIR_TEST_SEED=" << seed << " runs it again)\n";
  return seed;
}

std::size_t model_inputs(std::size_t full) {
  return weir::testing::is_full_run() ? full : 2000;  // fewer may see no crash at all
}

void PrintTo(const ModelRow& row, std::ostream* out) {
  *out << row.value << "@" << row.timestamp;
}

void PrintTo(const ModelRecord& record, std::ostream* out) {
  *out << record.key.value_or("(null)") << "=" << record.value.value_or("(null)") << "@"
       << record.timestamp << " headers " << record.headers.size();
}

ModelWorld::ModelWorld(std::uint64_t seed, Shape given) : rng(seed), shape(std::move(given)) {
  make_topic("in", shape.partitions);
  inputs.resize(static_cast<std::size_t>(shape.partitions));
  next_value = [this] {
    return rng.chance(6, 100) ? std::nullopt : std::optional(std::to_string(rng.below(1000)));
  };
}

void ModelWorld::produce_random(std::size_t count) {
  for (std::int32_t p = 0; p < shape.partitions; ++p) {
    std::vector<ModelRecord>& all = inputs[static_cast<std::size_t>(p)];
    const std::size_t first = all.size();
    for (std::size_t i = 0; i < count / static_cast<std::size_t>(shape.partitions) + 1; ++i) {
      ModelRecord record;
      if (!rng.chance(3, 100)) {
        const auto key =
            static_cast<std::int64_t>(rng.below(static_cast<std::uint64_t>(shape.keys)));
        // Short and long keys; each belongs to one partition.
        record.key = "k" + std::to_string(key * shape.partitions + p) +
                     Text(static_cast<std::size_t>(key) % 23, 'x');
      }
      record.value = next_value();
      record.timestamp =
          std::max<Timestamp>(0, static_cast<Timestamp>(all.size()) * 10 + rng.between(-500, 500));
      if (rng.chance(1, 5)) {
        record.headers.push_back("h" + std::to_string(rng.below(5)));
      }
      all.push_back(std::move(record));
    }
    std::vector<Headers> headers(all.size() - first);
    std::vector<RecordRef> refs;
    for (std::size_t i = first; i < all.size(); ++i) {
      for (const Text& name : all[i].headers) {
        headers[i - first].add(name, ByteView("v"));
      }
      refs.push_back({.key = all[i].key ? NullableBytes(*all[i].key) : NullableBytes(),
                      .value = all[i].value ? NullableBytes(*all[i].value) : NullableBytes(),
                      .timestamp = all[i].timestamp,
                      .headers = headers[i - first].view()});
    }
    produce("in", p, refs);
    sent += refs.size();
  }
}

std::vector<ModelRecord> ModelWorld::read(const Text& topic, std::int32_t partition,
                                          ValueIs values) const {
  std::vector<ModelRecord> records;
  for (const auto& record : memory.records({topic, PartitionId(partition)})) {
    ModelRecord made{record.key, record.value, record.timestamp, {}};
    if (made.value.has_value()) {
      made.value = decoded(*made.value, values);
    }
    for (const HeaderView& header : record.headers.view()) {
      made.headers.emplace_back(header.name);
    }
    records.push_back(std::move(made));
  }
  return records;
}

ModelRows last_of(const std::vector<ModelRecord>& records) {
  ModelRows rows;
  for (const ModelRecord& record : records) {
    if (record.value.has_value()) {
      rows[record.key.value()] = {*record.value, record.timestamp};
    } else {
      rows.erase(record.key.value());
    }
  }
  return rows;
}

ModelRows ModelWorld::last(const Text& topic, std::int32_t partition, ValueIs values) const {
  return last_of(read(topic, partition, values));
}

ModelRows ModelWorld::last(const Text& topic, ValueIs values) const {
  ModelRows rows;
  for (std::int32_t p = 0; p < partitions(topic); ++p) {
    rows.merge(last(topic, p, values));
  }
  return rows;
}

std::int64_t ModelWorld::committed(const Text& topic, std::int32_t partition) const {
  auto& log = const_cast<testing::MemoryBackend&>(memory);
  const std::vector<TopicPartition> asked = {{topic, PartitionId(partition)}};
  const auto found = log.make_group("m").value()->committed(asked);
  const bool is_known = found.ok() && found->front().has_value();
  return is_known ? found->front()->offset.value() : 0;
}

std::span<const ModelRecord> ModelWorld::inputs_of(std::int32_t partition, std::int64_t from,
                                                   std::optional<std::int64_t> to) const {
  const std::vector<ModelRecord>& all = inputs[static_cast<std::size_t>(partition)];
  const auto first = static_cast<std::size_t>(from);
  const auto last = to.has_value() ? static_cast<std::size_t>(*to) : all.size();
  return std::span(all).subspan(first, last - first);
}

ModelRows ModelStart::rows(const Text& store, std::int32_t partition, ValueIs values) const {
  ModelRows rows = last_of(changelogs.at(store)[static_cast<std::size_t>(partition)]);
  for (auto& [key, row] : rows) {
    row.value = decoded(row.value, values);
  }
  return rows;
}

void live(ModelWorld& world, const std::function<Topology()>& topology, std::size_t inputs,
          const std::function<void(const ModelLife&)>& check) {
  const Topology built = topology();
  ASSERT_TRUE(built.status().ok()) << built.status().error().to_string();
  while (world.sent < inputs) {
    if (!one_life(world, built, inputs, false, check)) {
      return;
    }
  }
  one_life(world, built, inputs, true, check);
  EXPECT_GT(world.exact_checks, 0);
  EXPECT_TRUE(!world.shape.records_repeat || world.crashes > 0);
}

void expect_output_is_table(const ModelWorld& world, const Text& topic, const ModelRows& table,
                            ValueIs values) {
  ModelRows output = world.last(topic, values);
  const bool may_be_stale = world.crashes + world.revivals > 0;
  std::erase_if(output,
                [&](const auto& row) { return may_be_stale && !table.contains(row.first); });
  EXPECT_EQ(output, table) << topic;
}

ModelRows stored(ModelWorld& world, const Text& store, ValueIs values) {
  ModelRows rows;
  const auto reader = StoreReader::open(
      world.memory, world.files, {.state_dir = "/state", .application_id = "m", .store = store});
  EXPECT_TRUE(reader.ok()) << reader.status().error().to_string();
  if (!reader.ok()) {
    return rows;
  }
  const Status scanned = (*reader)->scan({}, std::nullopt, [&](const StoreReader::Row& row) {
    rows[row.key] = {decoded(row.value, values), row.timestamp};
    return true;
  });
  EXPECT_TRUE(scanned.ok()) << scanned.error().to_string();
  return rows;
}

}  // namespace weir::test
