#pragma once

#include "tests/operators/support/app_world.h"

#include <weir/runtime/rng.h>

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <tuple>
#include <vector>

// Random lives of an application, for reference models: records, faults, crashes and clean stops
// in any order. A model knows nothing of the code under test: it has the inputs, what stood in the
// log when a life began (changelogs, committed offsets), and plain loops.

namespace weir::test {

using Text = std::string;

// WEIR_TEST_SEED, else `first`.
std::uint64_t model_seed(std::uint64_t first);
// Inputs of one model test: WEIR_TEST_FULL=1 asks for `full`, so that each operator has at least
// 100,000 over all tests that it is in.
std::size_t model_inputs(std::size_t full);

struct ModelRecord {
  std::optional<Text> key;
  std::optional<Text> value;
  Timestamp timestamp = 0;
  std::vector<Text> headers;  // names
  friend auto operator<=>(const ModelRecord&, const ModelRecord&) = default;
};

struct ModelRow {
  Text value;
  Timestamp timestamp = 0;
  friend bool operator==(const ModelRow&, const ModelRow&) = default;
};
void PrintTo(const ModelRow& row, std::ostream* out);
void PrintTo(const ModelRecord& record, std::ostream* out);
using ModelRows = std::map<Text, ModelRow>;

enum class ValueIs { kText, kLong };  // longs become decimal text

struct ModelWorld : World {
  struct Shape {
    std::int32_t partitions = 1;
    std::vector<Text> stores;    // with their changelogs
    std::vector<Text> internal;  // repartition topics, without the application id
    std::vector<Text> outputs;   // emptied when a life begins: they hold what it wrote
    std::int64_t keys = 40;
    bool records_repeat = true;  // crashes and faults, not only clean stops
    std::vector<std::int64_t> cache_bytes = {0, 300, 10'485'760};
  };
  ModelWorld(std::uint64_t seed, Shape given);

  // Random records into "in": each key has its partition.
  void produce_random(std::size_t count);
  std::vector<ModelRecord> read(const Text& topic, std::int32_t partition,
                                ValueIs values = ValueIs::kText) const;
  // Last value of each key; tombstones remove.
  ModelRows last(const Text& topic, ValueIs values = ValueIs::kText) const;
  ModelRows last(const Text& topic, std::int32_t partition, ValueIs values) const;
  Text changelog(const Text& store) const { return "m-" + store + "-changelog"; }
  std::int64_t committed(const Text& topic, std::int32_t partition) const;
  // inputs[partition] from one offset to another; no `to`: to the end.
  std::span<const ModelRecord> inputs_of(std::int32_t partition, std::int64_t from,
                                         std::optional<std::int64_t> to = std::nullopt) const;

  Rng rng;
  Shape shape;
  std::function<std::optional<Text>()> next_value;
  std::vector<std::vector<ModelRecord>> inputs;  // by partition; offset = index
  std::size_t sent = 0;
  int crashes = 0;
  int revivals = 0;
  int exact_checks = 0;  // a test that made none is blind
};

// What stood in the log when a life began.
struct ModelStart {
  std::map<Text, std::vector<std::int64_t>> committed;  // by topic on the log, then partition
  std::map<Text, std::vector<std::vector<ModelRecord>>> changelogs;  // by store, then partition
  std::map<Text, std::vector<std::size_t>> lengths;  // of `internal`, then partition
  ModelRows rows(const Text& store, std::int32_t partition, ValueIs values) const;
};

struct ModelLife {
  const ModelStart& start;
  // Everything since `start` was processed once: nothing was given up and made again meanwhile.
  bool exact = true;
  // Everything that was ever sent is processed and committed.
  bool drained = true;
};

// Lives until `inputs` records were sent and processed; `check` is called at moments where all is
// drained, and behind the end of a life that was not.
void live(ModelWorld& world, const std::function<Topology()>& topology, std::size_t inputs,
          const std::function<void(const ModelLife&)>& check);

// The last value of each key: of records as read from a topic.
ModelRows last_of(const std::vector<ModelRecord>& records);
// The output of a table is its store: last value and time of each key. One thing may differ, at
// least once: a result that left before a crash and whose key, processed again, comes and goes
// between two flushes of a cache: that delete is not forwarded (CACHE-4), the old result stays.
void expect_output_is_table(const ModelWorld& world, const Text& topic, const ModelRows& table,
                            ValueIs values);

// What the store files hold after a clean stop.
ModelRows stored(ModelWorld& world, const Text& store, ValueIs values);

}  // namespace weir::test
