#include "tests/operators/support/model_world.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <span>

// Re-grouped tables against plain loops (streams-features 2.9, GRP-1 to GRP-4).
//
// What holds exactly, through crashes and faults too: the source table is its topic's content; an
// aggregate is what stood in its changelog when the life began plus the changes behind the offset
// committed then; within a life the changes of a row are a chain (each old value is the new value
// before it), and the first continues what the changelog held. Hence without crashes an aggregate
// is the sum over the source table at every moment where all is committed. At least once, a crash
// between the write of a change and that of the changelog makes the change a second time: the
// chains of two lives then overlap, and the aggregate moves by what stands in the topic twice.

namespace weir::test {
namespace {

using MaybeText = std::optional<Text>;
using TextPair = std::pair<Text, Text>;
inline constexpr Topic<Text, Text> kIn{"in"};

// Five groups; one value in eleven is left out. The value carries its row's key.
std::optional<TextPair> regroup(const Text& key, const Text& value) {
  const std::int64_t number = std::stoll(value);
  return number % 11 == 0 ? std::nullopt
                          : std::optional(TextPair("g" + std::to_string(number % 5),
                                                   key + "|" + std::to_string(number)));
}
std::int64_t number_in(const Text& value) {
  return std::stoll(value.substr(value.find('|') + 1));
}
Text sum_of(std::int64_t sum) {
  return "sum|" + std::to_string(sum);
}

// What the topology computes.
Topology regrouped() {
  StreamBuilder builder;
  const auto table = builder.table_from(kIn, KvStore<Text, Text>{"source"});
  table.group_by(regroup)
      .named("counting")
      .count(KvStore<Text, std::int64_t>{"counts"})
      .to_stream()
      .to(Topic<Text, std::int64_t>{"counts-out"});
  table.group_by(regroup)
      .named("summing")
      .aggregate(
          KvStore<Text, std::int64_t>{"sums"}, [] { return std::int64_t{0}; },
          [](const Text& value, std::int64_t sum) { return sum + number_in(value); },
          [](const Text& value, std::int64_t sum) { return sum - number_in(value); })
      .to_stream()
      .to(Topic<Text, std::int64_t>{"sums-out"});
  table.group_by(regroup)
      .named("reducing")
      .reduce(
          KvStore<Text, Text>{"reduced"},
          [](const Text& sum, const Text& value) {
            return sum_of(number_in(sum) + number_in(value));
          },
          [](const Text& sum, const Text& value) {
            return sum_of(number_in(sum) - number_in(value));
          })
      .to_stream()
      .to(Topic<Text, Text>{"reduced-out"});
  return std::move(builder).build();
}

// The same by the rules: what one half does to an aggregate (none: there is none yet).
struct Aggregate {
  Text store;
  Text topic;
  ValueIs values;
  std::function<Text(const MaybeText& stored, const Text& value)> add;
  std::function<Text(const Text& stored, const Text& value)> subtract;
};
std::vector<Aggregate> aggregates() {
  const auto plus = [](std::int64_t by) {
    return [by](const MaybeText& stored, const Text& /*value*/) {
      return std::to_string(std::stoll(stored.value_or("0")) + by);
    };
  };
  return {
      {"counts", "m-counting-repartition", ValueIs::kLong, plus(1), plus(-1)},
      {"sums", "m-summing-repartition", ValueIs::kLong,
       [](const MaybeText& stored, const Text& value) {
         return std::to_string(std::stoll(stored.value_or("0")) + number_in(value));
       },
       [](const Text& stored, const Text& value) {
         return std::to_string(std::stoll(stored) - number_in(value));
       }},
      {"reduced", "m-reducing-repartition", ValueIs::kText,
       [](const MaybeText& stored, const Text& value) {
         return stored.has_value() ? sum_of(number_in(*stored) + number_in(value)) : value;
       },
       [](const Text& stored, const Text& value) {
         return sum_of(number_in(stored) - number_in(value));
       }},
  };
}

struct Halves {
  MaybeText new_value;
  MaybeText old_value;
};
// GRP-2: old | 0, new | 1, zig-zag varint of new's length | new | old | 2.
Halves parse_change(const Text& bytes) {
  const Text body = bytes.substr(0, bytes.size() - 1);
  if (bytes.back() == 0) {
    return {std::nullopt, body};
  }
  if (bytes.back() == 1) {
    return {body, std::nullopt};
  }
  std::size_t size = 0;
  std::size_t at = 0;
  for (unsigned shift = 0;; shift += 7) {
    const auto byte = static_cast<unsigned char>(body.at(at++));
    size |= static_cast<std::size_t>(byte & 127U) << shift;
    if (byte < 128) {
      break;
    }
  }
  size /= 2;  // zig-zag of a number that is not negative
  return {body.substr(at, size), body.substr(at + size)};
}

// GRP-3.
ModelRows apply(ModelRows rows, std::span<const ModelRecord> changes, const Aggregate& aggregate) {
  for (const ModelRecord& change : changes) {
    const Halves halves = parse_change(change.value.value());
    const auto stored = rows.find(change.key.value());
    MaybeText result;
    Timestamp timestamp = change.timestamp;
    if (stored != rows.end()) {
      result = stored->second.value;
      timestamp = std::max(timestamp, stored->second.timestamp);
    }
    if (halves.old_value.has_value() && result.has_value()) {
      result = aggregate.subtract(*result, *halves.old_value);
    }
    if (halves.new_value.has_value()) {
      result = aggregate.add(result, *halves.new_value);
    }
    if (result.has_value()) {
      rows[*change.key] = {*result, timestamp};
    }
  }
  return rows;
}

ModelRows table_of(ModelRows rows, std::span<const ModelRecord> inputs) {
  for (const ModelRecord& input : inputs) {
    if (input.key.has_value() && input.value.has_value()) {
      rows[*input.key] = {*input.value, input.timestamp};
    } else if (input.key.has_value()) {
      rows.erase(*input.key);
    }
  }
  return rows;
}

struct Regroups {
  ModelWorld& world;
  int chains = 0;

  ModelRows source() const {
    ModelRows all;
    for (std::int32_t p = 0; p < world.shape.partitions; ++p) {
      all.merge(table_of({}, world.inputs_of(p, 0)));
    }
    return all;
  }

  void check_exact(const ModelStart& start, const Aggregate& aggregate) const {
    ModelRows all;
    for (std::int32_t p = 0; p < world.shape.partitions; ++p) {
      const std::vector<ModelRecord> changes = world.read(aggregate.topic, p);
      const auto from = static_cast<std::size_t>(
          start.committed.at(aggregate.topic)[static_cast<std::size_t>(p)]);
      ModelRows rows = apply(start.rows(aggregate.store, p, aggregate.values),
                             std::span(changes).subspan(from), aggregate);
      EXPECT_EQ(world.last(world.changelog(aggregate.store), p, aggregate.values), rows)
          << aggregate.store << " " << p;
      all.merge(rows);
    }
    expect_output_is_table(world, aggregate.store + "-out", all, aggregate.values);
  }

  // One partition: the changes of this life stand in the order in which they were made.
  void check_chains(const ModelStart& start, const Aggregate& aggregate) {
    std::map<Text, MaybeText> present;  // what the groups hold of each row, by the row's key
    for (const auto& [key, row] : start.rows("source", 0, ValueIs::kText)) {
      if (const auto pair = regroup(key, row.value); pair.has_value()) {
        present[key] = pair->second;
      }
    }
    const std::vector<ModelRecord> changes = world.read(aggregate.topic, 0);
    const auto lengths = start.lengths.find(aggregate.topic);
    const std::size_t from = lengths == start.lengths.end() ? 0 : lengths->second[0];
    for (std::size_t i = from; i < changes.size(); ++i) {
      const Halves halves = parse_change(changes[i].value.value());
      const Text& either = halves.new_value.has_value() ? *halves.new_value : *halves.old_value;
      MaybeText& row = present[either.substr(0, either.find('|'))];
      EXPECT_EQ(row, halves.old_value) << aggregate.topic << " offset " << i;
      row = halves.new_value;
      ++chains;
    }
    for (const auto& [key, row] : source()) {
      const auto pair = regroup(key, row.value);
      EXPECT_EQ(present[key], pair.has_value() ? MaybeText(pair->second) : std::nullopt) << key;
    }
  }

  void check_is_sum_over_source(const Aggregate& aggregate) const {
    std::map<Text, MaybeText> expected;
    for (const auto& [key, row] : source()) {
      if (const auto pair = regroup(key, row.value); pair.has_value()) {
        MaybeText& sum = expected[pair->first];
        sum = aggregate.add(sum, pair->second);
      }
    }
    for (const auto& [group, row] :
         world.last(world.changelog(aggregate.store), aggregate.values)) {
      const MaybeText& sum = expected[group];
      if (aggregate.values == ValueIs::kLong) {
        EXPECT_EQ(row.value, sum.value_or("0")) << aggregate.store << " " << group;
      } else {
        EXPECT_EQ(number_in(row.value), sum.has_value() ? number_in(*sum) : 0) << group;
      }
      expected.erase(group);
    }
    for (const auto& [group, sum] : expected) {
      EXPECT_EQ(sum, std::nullopt) << aggregate.store << " lost " << group;
    }
  }

  void check(const ModelLife& life) {
    if (!life.drained) {
      return;
    }
    ModelRows all = source();
    EXPECT_EQ(world.last(world.changelog("source"), ValueIs::kText), all);
    for (const Aggregate& aggregate : aggregates()) {
      if (life.exact) {
        check_exact(life.start, aggregate);
        if (world.shape.partitions == 1) {
          check_chains(life.start, aggregate);
        }
      }
      if (world.crashes + world.revivals == 0 && life.exact) {
        check_is_sum_over_source(aggregate);
      }
    }
  }

  void run() {
    world.shape.stores = {"source"};
    for (const Aggregate& aggregate : aggregates()) {
      world.make_topic(aggregate.store + "-out", 2);
      world.shape.stores.push_back(aggregate.store);
      world.shape.internal.push_back(aggregate.topic.substr(2));
    }
    live(world, regrouped, model_inputs(30'000), [this](const ModelLife& life) { check(life); });
    for (const Aggregate& aggregate : aggregates()) {
      if (!::testing::Test::HasFailure()) {
        EXPECT_EQ(stored(world, aggregate.store, aggregate.values),
                  world.last(world.changelog(aggregate.store), aggregate.values));
      }
    }
  }
};

TEST(RegroupLife, WithoutCrashesTheSumIsThatOfTheSourceAtEveryCommit) {
  ModelWorld world(model_seed(301), {.partitions = 2, .records_repeat = false});
  Regroups{world}.run();
}

TEST(RegroupLife, EarlyFlushesForwardTheOldValuesThatWereForwardedBefore) {
  ModelWorld world(model_seed(302),
                   {.partitions = 1, .records_repeat = false, .cache_bytes = {100, 300, 2000}});
  Regroups regroups{world};
  regroups.run();
  EXPECT_GT(regroups.chains, 0);
}

TEST(RegroupLife, ChainsContinueWhatTheChangelogHeldThroughCrashes) {
  ModelWorld world(model_seed(303), {.partitions = 1});
  Regroups regroups{world};
  regroups.run();
  EXPECT_GT(regroups.chains, 0);
}

TEST(RegroupLife, AggregatesAreTheirChangesThroughCrashesOnSeveralPartitions) {
  ModelWorld world(model_seed(304), {.partitions = 3});
  Regroups{world}.run();
}

}  // namespace
}  // namespace weir::test
