#include "tests/operators/support/model_world.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <set>

// table_from, to_table, filter and map_values of tables against plain loops (streams-features 2.3,
// 2.9). These operators are idempotent: whatever was repeated, once everything is processed a table
// is exactly what its topic says.

namespace weir::test {
namespace {

using MaybeText = std::optional<Text>;
inline constexpr Topic<Text, Text> kIn{"in"};
inline constexpr Topic<Text, MaybeText> kNullableIn{"in"};
using TextStore = KvStore<Text, Text>;

bool is_even(const Text& value) {
  return std::stoll(value) % 2 == 0;
}
// Nothing for one value in three.
MaybeText triple_or_delete(const Text& value) {
  const std::int64_t number = std::stoll(value);
  return number % 3 == 0 ? std::nullopt : MaybeText(std::to_string(number * 3));
}

// TAB-2: the last record by offset, with its own time; null deletes.
ModelRows table_of(std::span<const ModelRecord> inputs, bool nulls_delete) {
  ModelRows rows;
  for (const ModelRecord& input : inputs) {
    if (!input.key.has_value() || (!nulls_delete && !input.value.has_value())) {
      continue;
    }
    if (input.value.has_value()) {
      rows[*input.key] = {*input.value, input.timestamp};
    } else {
      rows.erase(*input.key);
    }
  }
  return rows;
}

using Mapping = std::function<MaybeText(const Text&)>;
ModelRows mapped(const ModelRows& rows, const Mapping& mapping) {
  ModelRows out;
  for (const auto& [key, row] : rows) {
    if (const MaybeText value = mapping(row.value); value.has_value()) {
      out[key] = {*value, row.timestamp};
    }
  }
  return out;
}
MaybeText same(const Text& value) {
  return value;
}
MaybeText even(const Text& value) {
  return is_even(value) ? MaybeText(value) : std::nullopt;
}
MaybeText odd(const Text& value) {
  return is_even(value) ? std::nullopt : MaybeText(value);
}

struct TableUnderTest {
  Text store;  // empty: not kept
  Text output;
  Mapping mapping;
  bool nulls_delete = true;
};

// Undrained: each row is one that the table had, or will have, at or behind the committed offset.
void check_rows_are_of_the_future(const ModelWorld& world, const TableUnderTest& table) {
  for (std::int32_t p = 0; p < world.shape.partitions; ++p) {
    const std::int64_t committed = world.committed("in", p);
    std::map<Text, std::vector<ModelRow>> legal;
    const ModelRows floor =
        mapped(table_of(world.inputs_of(p, 0, committed), table.nulls_delete), table.mapping);
    std::set<Text> touched;
    for (const ModelRecord& input : world.inputs_of(p, committed)) {
      if (!input.key.has_value()) {
        continue;
      }
      touched.insert(*input.key);
      if (const MaybeText value =
              input.value.has_value() ? table.mapping(*input.value) : std::nullopt;
          value.has_value()) {
        legal[*input.key].push_back({*value, input.timestamp});
      }
    }
    const ModelRows found = world.last(world.changelog(table.store), p, ValueIs::kText);
    for (const auto& [key, row] : floor) {
      EXPECT_TRUE(touched.contains(key) || found.contains(key)) << "lost " << key;
      legal[key].push_back(row);
    }
    for (const auto& [key, row] : found) {
      EXPECT_NE(std::find(legal[key].begin(), legal[key].end(), row), legal[key].end())
          << table.store << " " << key << "=" << row.value << "@" << row.timestamp;
    }
  }
}

void check_tables(const ModelWorld& world, const std::vector<TableUnderTest>& tables,
                  const ModelLife& life) {
  for (const TableUnderTest& table : tables) {
    if (!life.drained) {
      if (!table.store.empty()) {
        check_rows_are_of_the_future(world, table);
      }
      continue;
    }
    ModelRows all;
    for (std::int32_t p = 0; p < world.shape.partitions; ++p) {
      ModelRows rows = mapped(table_of(world.inputs_of(p, 0), table.nulls_delete), table.mapping);
      if (!table.store.empty()) {
        EXPECT_EQ(world.last(world.changelog(table.store), p, ValueIs::kText), rows) << table.store;
      }
      all.merge(rows);
    }
    expect_output_is_table(world, table.output, all, ValueIs::kText);
  }
}

void run(ModelWorld& world, const std::vector<TableUnderTest>& tables,
         const std::function<Topology()>& topology, std::size_t full = 50'000) {
  for (const TableUnderTest& table : tables) {
    world.make_topic(table.output, 2);
    if (!table.store.empty()) {
      world.shape.stores.push_back(table.store);
    }
  }
  live(world, topology, model_inputs(full),
       [&](const ModelLife& life) { check_tables(world, tables, life); });
  if (::testing::Test::HasFailure()) {
    return;
  }
  for (const Text& store : world.shape.stores) {
    EXPECT_EQ(stored(world, store, ValueIs::kText),
              world.last(world.changelog(store), ValueIs::kText));
  }
}

Topic<Text, Text> out(std::string_view name) {
  return Topic<Text, Text>::named(name);
}

Topology source_and_its_functions() {
  StreamBuilder builder;
  const auto table = builder.table_from(kIn, TextStore{"source"});
  table.to_stream().to(out("source-out"));
  table.filter(is_even, TextStore{"even"}).to_stream().to(out("even-out"));
  table.filter_not(is_even).to_stream().to(out("odd-out"));
  table.map_values(triple_or_delete, TextStore{"triple"}).to_stream().to(out("triple-out"));
  table.map_values(triple_or_delete)
      .filter([](const Text& value) { return std::stoll(value) % 2 == 0; })
      .to_stream()
      .to(out("chained-out"));
  return std::move(builder).build();
}

TEST(TableLife, SourceFilterAndMapValuesAreTheTopicsContent) {
  ModelWorld world(model_seed(201), {.partitions = 3});
  const Mapping chained = [](const Text& value) {
    const MaybeText tripled = triple_or_delete(value);
    return tripled.has_value() ? even(*tripled) : std::nullopt;
  };
  run(world,
      {{"source", "source-out", same},
       {"even", "even-out", even},
       {"", "odd-out", odd},
       {"triple", "triple-out", triple_or_delete},
       {"", "chained-out", chained}},
      source_and_its_functions, 100'000);
}

TEST(TableLife, ASourceAloneWorksOnBytes) {
  ModelWorld world(model_seed(202), {.partitions = 2});
  run(world, {{"source", "source-out", same}}, [] {
    StreamBuilder builder;
    builder.table_from(kIn, TextStore{"source"}).to_stream().to(out("source-out"));
    return std::move(builder).build();
  });
}

TEST(TableLife, ASourceThatIsNotKeptPassesChangesOn) {
  ModelWorld world(model_seed(203), {.partitions = 2});
  run(world, {{"", "source-out", same}, {"even", "even-out", even}}, [] {
    StreamBuilder builder;
    const auto table = builder.table_from(kIn);
    table.to_stream().to(out("source-out"));
    table.filter(is_even, TextStore{"even"}).to_stream().to(out("even-out"));
    return std::move(builder).build();
  });
}

// With a plain value type nulls do not delete: they never arrive.
TEST(TableLife, ToTableIsTheStreamsContent) {
  ModelWorld world(model_seed(204), {.partitions = 2});
  run(
      world, {{"nullable", "nullable-out", same}, {"plain", "plain-out", same, false}},
      [] {
        StreamBuilder builder;
        builder.from(kNullableIn)
            .to_table(TextStore{"nullable"})
            .to_stream()
            .to(out("nullable-out"));
        builder.from(Topic<Text, MaybeText>{"in"})
            .filter([](const MaybeText& value) { return value.has_value(); })
            .map_values([](const MaybeText& value) { return *value; })
            .to_table(TextStore{"plain"})
            .to_stream()
            .to(out("plain-out"));
        return std::move(builder).build();
      },
      100'000);
}

}  // namespace
}  // namespace weir::test
