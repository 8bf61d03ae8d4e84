#include "tests/operators/support/model_world.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <set>

// Operators without state against plain loops (streams-features 2.2, 2.3, 2.14, 2.18). One
// partition: what a life writes is, record by record with time and headers, the beginning of what
// the loops make of the inputs behind the offset committed before it, and at least as much as it
// committed.

namespace weir::test {
namespace {

using MaybeText = std::optional<Text>;
using Outputs = std::map<Text, std::vector<ModelRecord>>;

std::int64_t number(const MaybeText& value) {
  return value.has_value() ? std::stoll(*value) : -1;
}

// ---- the operators under test ------------------------------------------------------------------

Topology all_operators() {
  StreamBuilder builder;
  using Nullable = Topic<MaybeText, MaybeText>;
  const auto in = builder.from(Nullable{"in"});
  const auto thirds = in.filter([](const MaybeText& value) { return number(value) % 3 == 0; });
  thirds.to(Nullable{"filter"});
  in.filter_not([](const MaybeText& value) {
      return number(value) % 3 == 0;
    }).to(Nullable{"filter-not"});
  const auto marked = in.map_values([](const MaybeText& key, const MaybeText& value) -> MaybeText {
    return key.value_or("?") + value.value_or("null");
  });
  marked.to(Nullable{"map-values"});
  in.flat_map_values([](const MaybeText& value) {
      return std::vector<Text>(static_cast<std::size_t>(number(value) + 1) % 4,
                               "v" + value.value_or(""));
    }).to(Topic<MaybeText, Text>{"flat-map-values"});
  in.map([](const MaybeText& key, const MaybeText& value) {
      return std::pair(value, key);
    }).to(Nullable{"map"});
  in.flat_map([](const MaybeText& key, const MaybeText& value) {
      std::vector<std::pair<Text, MaybeText>> pairs;
      for (std::int64_t i = 0; i < (number(value) + 1) % 3; ++i) {
        pairs.emplace_back(value.value_or("") + "-" + std::to_string(i), key);
      }
      return pairs;
    }).to(Topic<Text, MaybeText>{"flat-map"});
  in.select_key([](const MaybeText& value) { return value; }).to(Nullable{"select-key"});
  auto split = in.split("split-");
  split.branch([](const MaybeText& value) { return !value.has_value(); }, "null")
      .to(Nullable{"branch-null"});
  split.branch([](const MaybeText& value) { return number(value) % 2 == 0; }, "even")
      .to(Nullable{"branch-even"});
  split.default_branch("odd").to(Nullable{"branch-odd"});
  thirds.merge(marked).to(Nullable{"merge"});
  in.to([](const MaybeText& value) { return "chosen-" + std::to_string((number(value) + 1) % 3); });
  return std::move(builder).build();
}

// ---- the same in loops -------------------------------------------------------------------------

ModelRecord with(const ModelRecord& from, MaybeText key, MaybeText value) {
  ModelRecord record = from;
  record.key = std::move(key);
  record.value = std::move(value);
  return record;
}

void run_one(const ModelRecord& in, Outputs& out) {
  const std::int64_t n = number(in.value);
  const ModelRecord marked = with(in, in.key, in.key.value_or("?") + in.value.value_or("null"));
  out[n % 3 == 0 ? "filter" : "filter-not"].push_back(in);
  out["map-values"].push_back(marked);
  for (std::int64_t i = 0; i < (n + 1) % 4; ++i) {
    out["flat-map-values"].push_back(with(in, in.key, "v" + in.value.value_or("")));
  }
  out["map"].push_back(with(in, in.value, in.key));
  for (std::int64_t i = 0; i < (n + 1) % 3; ++i) {
    out["flat-map"].push_back(with(in, in.value.value_or("") + "-" + std::to_string(i), in.key));
  }
  out["select-key"].push_back(with(in, in.value, in.value));
  const Text branch = !in.value.has_value() ? "branch-null"
                      : n % 2 == 0          ? "branch-even"
                                            : "branch-odd";
  out[branch].push_back(in);
  if (n % 3 == 0) {
    out["merge"].push_back(in);
  }
  out["merge"].push_back(marked);
  out["chosen-" + std::to_string((n + 1) % 3)].push_back(in);
}

using Loop = std::function<void(const ModelRecord&, Outputs&)>;

struct Stateless {
  ModelWorld& world;
  Loop loop;

  Outputs run(const std::vector<std::int64_t>& from,
              const std::vector<std::optional<std::int64_t>>& to) const {
    Outputs out;
    for (std::size_t p = 0; p < from.size(); ++p) {
      for (const ModelRecord& in : world.inputs_of(static_cast<std::int32_t>(p), from[p], to[p])) {
        loop(in, out);
      }
    }
    return out;
  }

  void check_exact(const ModelLife& life, const Text& topic, const Outputs& all,
                   const Outputs& committed) const {
    std::vector<ModelRecord> written = world.read(topic, 0);
    const auto expected_of = [&](const Outputs& outputs) {
      const auto found = outputs.find(topic);
      return found == outputs.end() ? std::vector<ModelRecord>() : found->second;
    };
    std::vector<ModelRecord> expected = expected_of(all);
    if (world.shape.partitions > 1) {
      if (life.drained) {
        std::sort(written.begin(), written.end());
        std::sort(expected.begin(), expected.end());
        EXPECT_EQ(written, expected) << topic;
      }
      return;
    }
    EXPECT_GE(written.size(), expected_of(committed).size()) << topic << " lost records";
    ASSERT_LE(written.size(), expected.size()) << topic << " doubled records";
    if (life.drained) {
      EXPECT_EQ(written.size(), expected.size()) << topic;
    }
    expected.resize(written.size());
    EXPECT_EQ(written, expected) << topic;
  }

  // The task was made again in this life: what is committed is there, and nothing without an input.
  void check_repeated(const Text& topic, const Outputs& all, const Outputs& committed) const {
    const std::vector<ModelRecord> records = world.read(topic, 0);
    const std::set<ModelRecord> written(records.begin(), records.end());
    const auto set_of = [&](const Outputs& outputs) {
      const auto found = outputs.find(topic);
      return found == outputs.end()
                 ? std::set<ModelRecord>()
                 : std::set<ModelRecord>(found->second.begin(), found->second.end());
    };
    const std::set<ModelRecord> must = set_of(committed);
    const std::set<ModelRecord> may = set_of(all);
    EXPECT_TRUE(std::includes(written.begin(), written.end(), must.begin(), must.end()))
        << topic << " lost records";
    EXPECT_TRUE(std::includes(may.begin(), may.end(), written.begin(), written.end()))
        << topic << " invented records";
  }

  void check(const ModelLife& life) const {
    const auto partitions = static_cast<std::size_t>(world.shape.partitions);
    std::vector<std::optional<std::int64_t>> to;
    for (std::int32_t p = 0; p < world.shape.partitions; ++p) {
      to.emplace_back(world.committed("in", p));
    }
    const std::vector<std::optional<std::int64_t>> end(partitions);
    const std::vector<std::int64_t>& from = life.start.committed.at("in");
    const Outputs all = run(from, end);
    const Outputs committed = run(from, to);
    for (const Text& topic : world.shape.outputs) {
      if (life.exact) {
        check_exact(life, topic, all, committed);
      } else {
        check_repeated(topic, all, committed);
      }
    }
  }

  void live_through(const std::vector<Text>& topics, const std::function<Topology()>& topology) {
    for (const Text& topic : topics) {
      world.make_topic(topic, 1);
    }
    world.shape.outputs = topics;
    std::int64_t next = 0;
    world.next_value = [this, next]() mutable {
      return world.rng.chance(5, 100) ? std::nullopt : MaybeText(std::to_string(next++));
    };
    live(world, topology, model_inputs(50'000), [this](const ModelLife& life) { check(life); });
  }
};

const std::vector<Text> kTopics = {"filter",      "filter-not", "map-values", "flat-map-values",
                                   "map",         "flat-map",   "select-key", "branch-null",
                                   "branch-even", "branch-odd", "merge",      "chosen-0",
                                   "chosen-1",    "chosen-2"};

TEST(StatelessLife, EveryOutputIsWhatTheLoopsMakeRecordByRecord) {
  ModelWorld world(model_seed(401), {.partitions = 1});
  Stateless{world, run_one}.live_through(kTopics, all_operators);
}

TEST(StatelessLife, OverSeveralPartitionsNothingIsLostDoubledOrInvented) {
  ModelWorld world(model_seed(402), {.partitions = 3});
  Stateless{world, run_one}.live_through(kTopics, all_operators);
}

// Plain types: a null value never arrives; a null key passes functions that do not take it.
TEST(StatelessLife, PlainTypesSeeNoNulls) {
  ModelWorld world(model_seed(403), {.partitions = 1});
  const Loop loop = [](const ModelRecord& in, Outputs& out) {
    if (!in.value.has_value()) {
      return;
    }
    out["any-key"].push_back(with(in, in.key, *in.value + "!"));
    if (in.key.has_value()) {
      out["with-key"].push_back(with(in, in.key, *in.key + *in.value));
    }
  };
  Stateless{world, loop}.live_through({"any-key", "with-key"}, [] {
    using Plain = Topic<Text, Text>;
    StreamBuilder builder;
    const auto in = builder.from(Plain{"in"});
    in.map_values([](const Text& value) { return value + "!"; }).to(Plain{"any-key"});
    in.map_values([](const Text& key, const Text& value) {
        return key + value;
      }).to(Plain{"with-key"});
    return std::move(builder).build();
  });
}

}  // namespace
}  // namespace weir::test
