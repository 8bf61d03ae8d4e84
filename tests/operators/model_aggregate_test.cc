#include "tests/operators/support/model_world.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <span>

// count, reduce and aggregate of a stream, and a processor with a store, against plain loops
// (streams-features 2.3, 2.7, 2.15, 2.18), through crashes, faults and restarts.

namespace weir::test {
namespace {

using MaybeText = std::optional<Text>;
inline constexpr Topic<Text, Text> kIn{"in"};
inline constexpr Topic<Text, MaybeText> kNullableIn{"in"};
inline constexpr KvStore<Text, Text> kReduced{"reduced"};
inline constexpr KvStore<Text, Text> kAggregated{"aggregated"};

// Depends on the order, and deletes one result in seven.
MaybeText fold(const Text& stored, const Text& value) {
  const std::int64_t result = (std::stoll(stored) * 31 + std::stoll(value)) % 1'000'003;
  return result % 7 == 0 ? std::nullopt : MaybeText(std::to_string(result));
}
MaybeText fold_key(const Text& key, const Text& value, Text aggregate) {
  return fold(aggregate, value + std::to_string(key.size()));
}

using Step = std::function<MaybeText(const Text& key, const MaybeText& stored, const Text& value)>;

// AGG-2: the larger of the stored and the record's; a processor writes with that of the record.
enum class Times { kLatest, kOfRecord };

// AGG-1 to AGG-4: null keys and values are dropped, all others applied in order of offsets.
ModelRows apply(ModelRows rows, std::span<const ModelRecord> inputs, const Step& step,
                Times times = Times::kLatest) {
  for (const ModelRecord& input : inputs) {
    if (!input.key.has_value() || !input.value.has_value()) {
      continue;
    }
    const auto found = rows.find(*input.key);
    const MaybeText stored = found == rows.end() ? std::nullopt : MaybeText(found->second.value);
    const MaybeText result = step(*input.key, stored, *input.value);
    if (!result.has_value()) {
      rows.erase(*input.key);
      continue;
    }
    const Timestamp before =
        found == rows.end() || times == Times::kOfRecord ? 0 : found->second.timestamp;
    rows[*input.key] = {*result, std::max(input.timestamp, before)};
  }
  return rows;
}

MaybeText count_step(const Text& /*key*/, const MaybeText& stored, const Text& /*value*/) {
  return std::to_string(std::stoll(stored.value_or("0")) + 1);
}
MaybeText reduce_step(const Text& /*key*/, const MaybeText& stored, const Text& value) {
  return stored.has_value() ? fold(*stored, value) : value;
}
MaybeText aggregate_step(const Text& key, const MaybeText& stored, const Text& value) {
  return fold_key(key, value, stored.value_or("1"));
}

struct Operator {
  Text store;
  Text output;
  ValueIs values;
  Step step;
  Times times = Times::kLatest;
};

struct Aggregates {
  ModelWorld& world;
  std::vector<Operator> operators;

  // Drained: what stood there when the life began, and the inputs behind the offsets that were
  // committed then, once each.
  void check_exact(const ModelLife& life, const Operator& op) const {
    ModelRows all;
    for (std::int32_t p = 0; p < world.shape.partitions; ++p) {
      const std::int64_t from = life.start.committed.at("in")[static_cast<std::size_t>(p)];
      ModelRows rows = apply(life.start.rows(op.store, p, op.values), world.inputs_of(p, from),
                             op.step, op.times);
      EXPECT_EQ(world.last(world.changelog(op.store), p, op.values), rows) << op.store << " " << p;
      all.merge(rows);
    }
    expect_output_is_table(world, op.output, all, op.values);
  }

  // At any time: no count below what was committed, and none above what repeats explain.
  void check_count_is_not_too_low(const ModelLife& life, const Operator& op) const {
    for (std::int32_t p = 0; p < world.shape.partitions; ++p) {
      const auto to = life.drained ? std::nullopt : std::optional(world.committed("in", p));
      const ModelRows floor = apply({}, world.inputs_of(p, 0, to), op.step, op.times);
      const ModelRows counted = world.last(world.changelog(op.store), p, op.values);
      for (const auto& [key, row] : floor) {
        ASSERT_TRUE(counted.contains(key)) << "lost " << key;
        EXPECT_GE(std::stoll(counted.at(key).value), std::stoll(row.value)) << key;
        if (op.times == Times::kLatest) {
          EXPECT_GE(counted.at(key).timestamp, row.timestamp) << key;
        }
      }
    }
  }

  void check(const ModelLife& life) const {
    for (const Operator& op : operators) {
      if (life.drained && life.exact) {
        check_exact(life, op);
      }
      if (op.store == "counts") {
        check_count_is_not_too_low(life, op);
      }
    }
  }

  void run(const std::function<Topology()>& topology, std::size_t full = 50'000) {
    for (const Operator& op : operators) {
      world.make_topic(op.output, 2);
      world.shape.stores.push_back(op.store);
    }
    live(world, topology, model_inputs(full), [this](const ModelLife& life) { check(life); });
    if (::testing::Test::HasFailure()) {
      return;
    }
    for (const Operator& op : operators) {
      EXPECT_EQ(stored(world, op.store, op.values),
                world.last(world.changelog(op.store), op.values));
    }
  }
};

const Operator kCount{"counts", "counted", ValueIs::kLong, count_step};
const Operator kReduce{"reduced", "reduced-out", ValueIs::kText, reduce_step};
const Operator kAggregate{"aggregated", "aggregated-out", ValueIs::kText, aggregate_step};

void add_count(const GroupedStream<Text, MaybeText>& grouped) {
  grouped.count(kCounts).to_stream().to(Topic<Text, std::int64_t>{"counted"});
}

// Three operators behind one source: typed values.
TEST(AggregationLife, CountReduceAndAggregateAgreeThroughCrashes) {
  ModelWorld world(model_seed(101), {.partitions = 3});
  Aggregates{world, {kCount, kReduce, kAggregate}}.run([] {
    StreamBuilder builder;
    const auto grouped = builder.from(kNullableIn).group_by_key();
    add_count(grouped);
    grouped.reduce(kReduced, fold).to_stream().to(Topic<Text, Text>{"reduced-out"});
    grouped.aggregate(
               kAggregated, [] { return Text("1"); }, fold_key)
        .to_stream()
        .to(Topic<Text, Text>{"aggregated-out"});
    return std::move(builder).build();
  });
}

// One operator behind a source: it works on the record's bytes.
TEST(AggregationLife, ReduceOnBytesAgreesThroughCrashes) {
  ModelWorld world(model_seed(102), {.partitions = 2});
  Aggregates{world, {kReduce}}.run([] {
    StreamBuilder builder;
    builder.from(kIn)
        .group_by_key()
        .reduce(kReduced, fold)
        .to_stream()
        .to(Topic<Text, Text>{"reduced-out"});
    return std::move(builder).build();
  });
}

TEST(AggregationLife, AggregateOnBytesAgreesThroughCrashes) {
  ModelWorld world(model_seed(103), {.partitions = 1});
  Aggregates{world, {kAggregate}}.run([] {
    StreamBuilder builder;
    builder.from(kIn)
        .group_by_key()
        .aggregate(
            kAggregated, [] { return Text("1"); }, fold_key)
        .to_stream()
        .to(Topic<Text, Text>{"aggregated-out"});
    return std::move(builder).build();
  });
}

// Clean stops only: nothing is repeated, so the whole history is one loop.
TEST(AggregationLife, WithoutCrashesTheWholeHistoryIsOneLoop) {
  ModelWorld world(model_seed(104), {.partitions = 2, .records_repeat = false});
  Aggregates aggregates{world, {kCount, kReduce}};
  aggregates.run([] {
    StreamBuilder builder;
    const auto grouped = builder.from(kNullableIn).group_by_key();
    add_count(grouped);
    grouped.reduce(kReduced, fold).to_stream().to(Topic<Text, Text>{"reduced-out"});
    return std::move(builder).build();
  });
  for (const Operator& op : aggregates.operators) {
    for (std::int32_t p = 0; p < world.shape.partitions; ++p) {
      EXPECT_EQ(world.last(world.changelog(op.store), p, op.values),
                apply({}, world.inputs_of(p, 0), op.step))
          << op.store;
    }
  }
}

// Counts in a store of its own and forwards each count.
class Counting final : public Processor<Text, Text, Text, std::int64_t> {
 public:
  void init(Context& context) override {
    context_ = &context;
    counts_ = context.store(kCounts);
  }
  void process(const Record<Text, Text>& record) override {
    const std::int64_t count = counts_.get(record.key).value_or(0) + 1;
    counts_.put(record.key, count);
    context_->forward({record.key, count, record.timestamp, record.headers});
  }

 private:
  Context* context_ = nullptr;
  KeyValueStoreView<Text, std::int64_t> counts_;
};

TEST(ProcessorLife, ItsStoreAgreesThroughCrashes) {
  ModelWorld world(model_seed(105), {.partitions = 2});
  Operator counting = kCount;
  counting.times = Times::kOfRecord;
  Aggregates{world, {counting}}.run(
      [] {
        StreamBuilder builder;
        builder.from(kIn)
            .process([] { return std::make_unique<Counting>(); }, kCounts)
            .to(Topic<Text, std::int64_t>{"counted"});
        return std::move(builder).build();
      },
      100'000);
}

}  // namespace
}  // namespace weir::test
