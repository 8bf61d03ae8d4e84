#include <weir/operators/stream_builder.h>
#include <weir/operators/testing/topology_test_driver.h>

#include <gtest/gtest.h>

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

// Programs with tables, branches and processors that must not compile (streams-features 5.4), each
// beside one that must. What is wrong stands in the message.

namespace weir {
namespace {

struct NoSerde {};
using Text = std::string;
using Long = std::int64_t;
using MaybeText = std::optional<Text>;
template <class T>
using Pair = std::pair<Text, T>;

template <class S, class F>
concept CanFlatMap = requires(S stream, F function) { stream.flat_map(function); };
template <class S, class F>
concept CanMap = requires(S stream, F function) { stream.map(function); };
template <class S, class F>
concept CanSelectKey = requires(S stream, F function) { stream.select_key(function); };
template <class S, class F>
concept CanPeek = requires(S stream, F function) { stream.peek(function); };
template <class S, class T>
concept CanMerge = requires(S stream, T other) { stream.merge(other); };
template <class S, class F>
concept CanBranch = requires(S split, F function) { split.branch(function); };
template <class S, class F>
concept CanChoose = requires(S stream, F function) { stream.to(function); };
template <class S, class T>
concept CanToTable = requires(S stream, T store) { stream.to_table(store); };
template <class S>
concept CanToPlainTable = requires(S stream) { stream.to_table(); };
template <class S>
concept CanRepartition = requires(S stream) { stream.repartition(); };
template <class T, class S>
concept CanTableFrom =
    requires(StreamBuilder builder, T topic, S store) { builder.table_from(topic, store); };
template <class T, class F>
concept CanFilter = requires(T table, F function) { table.filter(function); };
template <class T, class F, class S>
concept CanFilterInto = requires(T table, F function, S store) { table.filter(function, store); };
template <class T, class F>
concept CanMapValues = requires(T table, F function) { table.map_values(function); };
template <class T, class F, class S>
concept CanMapValuesInto =
    requires(T table, F function, S store) { table.map_values(function, store); };
template <class T, class F>
concept CanGroupBy = requires(T table, F function) { table.group_by(function); };
template <class T>
concept CanGroupByKey = requires(T table) { table.group_by_key(); };
template <class T>
concept CanTo = requires(T table, Topic<Text, Text> topic) { table.to(topic); };
template <class G, class S>
concept CanCount = requires(G grouped, S store) { grouped.count(store); };
template <class G, class S, class F>
concept CanReduce = requires(G grouped, S store, F f) { grouped.reduce(store, f); };
template <class G, class S, class F, class H>
concept CanReduceTable =
    requires(G grouped, S store, F add, H subtract) { grouped.reduce(store, add, subtract); };
template <class G, class S, class I, class F>
concept CanAggregate =
    requires(G grouped, S store, I init, F f) { grouped.aggregate(store, init, f); };
template <class G, class S, class I, class F, class H>
concept CanAggregateTable = requires(G grouped, S store, I init, F add, H subtract) {
  grouped.aggregate(store, init, add, subtract);
};
template <class S, class F, class... Stores>
concept CanProcess =
    requires(S stream, F supply, Stores... stores) { stream.process(supply, stores...); };
template <class S, class F, class... Stores>
concept CanProcessValues =
    requires(S stream, F supply, Stores... stores) { stream.process_values(supply, stores...); };
template <class C, class R>
concept CanForward = requires(C context, R record) { context.forward(record); };

// ---- streams -----------------------------------------------------------------------------------

using Lines = Stream<Text, Text>;
using Opaque = Stream<Text, NoSerde>;

static_assert(CanFlatMap<Lines, std::vector<Pair<Long>> (*)(const Text&)>);
static_assert(!CanFlatMap<Lines, std::vector<Text> (*)(const Text&)>, "elements are no pairs");
static_assert(!CanFlatMap<Lines, Pair<Long> (*)(const Text&)>, "a pair is no range");
static_assert(CanMap<Lines, Pair<NoSerde> (*)(const Text&)>);
static_assert(!CanMap<Lines, Text (*)(const Text&)>, "map gives a pair");
static_assert(CanSelectKey<Lines, Long (*)(const Text&, const Text&)>);
static_assert(!CanSelectKey<Lines, Long (*)(const Long&)>, "the function takes another type");
static_assert(CanPeek<Lines, void (*)(const Text&)>);
static_assert(!CanPeek<Stream<Text, MaybeText>, void (*)(const Text&)>, "null is not handled");

static_assert(CanMerge<Lines, Lines>);
static_assert(!CanMerge<Lines, Stream<Text, Long>>, "value types differ");
static_assert(!CanMerge<Lines, Stream<Text, MaybeText>>, "one side has nulls");

static_assert(CanBranch<BranchedStream<Text, Text>, bool (*)(const Text&)>);
static_assert(!CanBranch<BranchedStream<Text, Text>, NoSerde (*)(const Text&)>, "no truth value");
static_assert(!CanBranch<BranchedStream<Text, Text>, bool (*)(const Long&)>, "another type");

static_assert(CanChoose<Lines, Text (*)(const Text&)>);
static_assert(CanChoose<Lines, const char* (*)(const Text&, const Text&)>);
static_assert(!CanChoose<Lines, Long (*)(const Text&)>, "no topic name");
static_assert(!CanChoose<Opaque, Text (*)(const NoSerde&)>, "a value without serde");
static_assert(CanRepartition<Lines>);
static_assert(!CanRepartition<Opaque>, "a value without serde");

static_assert(CanToTable<Lines, KvStore<Text, Text>>);
static_assert(CanToTable<Stream<Text, MaybeText>, KvStore<Text, Text>>, "nulls delete");
static_assert(!CanToTable<Lines, KvStore<Text, Long>>, "value types differ");
static_assert(!CanToTable<Lines, KvStore<Long, Text>>, "key types differ");
static_assert(!CanToPlainTable<Opaque>, "a value without serde");

using Grouped = GroupedStream<Text, Text>;
static_assert(CanReduce<Grouped, KvStore<Text, Text>, MaybeText (*)(const Text&, const Text&)>,
              "nothing deletes");
static_assert(CanAggregate<Grouped, KvStore<Text, Long>, Long (*)(), Long (*)(const Text&, Long)>);
static_assert(CanAggregate<Grouped, KvStore<Text, Long>, Long (*)(),
                           std::optional<Long> (*)(const Text&, const Text&, Long)>);
static_assert(!CanAggregate<Grouped, KvStore<Text, Long>, Long (*)(), Text (*)(const Text&, Long)>,
              "the aggregator returns another type");
static_assert(!CanAggregate<Grouped, KvStore<Text, Long>, Text (*)(), Long (*)(const Text&, Long)>,
              "the initial value is another type");
static_assert(!CanAggregate<Grouped, KvStore<Text, Long>, Long (*)(), Long (*)(const Text&, Text)>,
              "the aggregator takes another aggregate");
static_assert(!CanAggregate<Grouped, KvStore<Long, Long>, Long (*)(), Long (*)(const Text&, Long)>,
              "key types differ");

// ---- tables ------------------------------------------------------------------------------------

using Rows = Table<Text, MaybeText>;
using Even = bool (*)(const Text&);
using Length = Long (*)(const Text&);

static_assert(CanTableFrom<Topic<Text, Text>, KvStore<Text, Text>>);
static_assert(!CanTableFrom<Topic<Text, Text>, KvStore<Text, Long>>, "value types differ");
static_assert(!CanTableFrom<Topic<Long, Text>, KvStore<Text, Text>>, "key types differ");

static_assert(CanFilter<Rows, Even>, "functions of tables see no nulls");
static_assert(!CanFilter<Rows, NoSerde (*)(const Text&)>, "no truth value");
static_assert(CanFilterInto<Rows, Even, KvStore<Text, Text>>);
static_assert(!CanFilterInto<Rows, Even, KvStore<Text, Long>>, "value types differ");
static_assert(CanMapValues<Rows, NoSerde (*)(const Text&)>, "a value inside the task");
static_assert(!CanMapValues<Rows, Text (*)(const Long&)>, "the function takes another type");
static_assert(CanMapValuesInto<Rows, Length, KvStore<Text, Long>>);
static_assert(!CanMapValuesInto<Rows, Length, KvStore<Text, Text>>, "value types differ");
static_assert(!CanTo<Rows>, "a table is written as its stream of changes");
static_assert(!CanGroupByKey<Rows>, "a table is grouped by a new key: rows have one each already");
static_assert(!CanMerge<Rows, Rows>);
static_assert(!CanMerge<Lines, Rows>);

static_assert(CanGroupBy<Rows, Pair<Long> (*)(const Text&)>);
static_assert(CanGroupBy<Rows, std::optional<Pair<Long>> (*)(const Text&, const Text&)>);
static_assert(!CanGroupBy<Rows, Text (*)(const Text&)>, "a row needs a key and a value");
static_assert(!CanGroupBy<Rows, Pair<NoSerde> (*)(const Text&)>, "it goes through a topic");
static_assert(!CanGroupBy<Rows, std::pair<NoSerde, Text> (*)(const Text&)>,
              "a key without serde cannot be partitioned");

using Groups = GroupedTable<Text, Long>;
using Combine = Long (*)(const Long&, const Long&);
using Fold = Text (*)(const Long&, Text);
static_assert(CanCount<Groups, KvStore<Text, Long>>);
static_assert(!CanCount<Groups, KvStore<Text, std::int32_t>>, "counts are 64 bits");
static_assert(!CanCount<Groups, KvStore<Long, Long>>, "key types differ");
static_assert(CanReduceTable<Groups, KvStore<Text, Long>, Combine, Combine>);
static_assert(!CanReduce<Groups, KvStore<Text, Long>, Combine>, "old values need a subtractor");
static_assert(!CanReduceTable<Groups, KvStore<Text, Text>, Combine, Combine>,
              "a reduced value has the value's type");
static_assert(
    !CanReduceTable<Groups, KvStore<Text, Long>, Combine, Text (*)(const Long&, const Long&)>,
    "the subtractor returns another type");
static_assert(CanAggregateTable<Groups, KvStore<Text, Text>, Text (*)(), Fold, Fold>);
static_assert(!CanAggregate<Groups, KvStore<Text, Text>, Text (*)(), Fold>,
              "old values need a subtractor");
static_assert(!CanAggregateTable<Groups, KvStore<Text, Long>, Text (*)(), Fold, Fold>,
              "the store has another type");
static_assert(!CanAggregateTable<Groups, KvStore<Text, Text>, Text (*)(), Fold, Combine>,
              "the subtractor takes another aggregate");

// ---- types of results --------------------------------------------------------------------------

template <class T, class F>
using MappedTable = decltype(std::declval<T>().map_values(std::declval<F>()));
static_assert(std::same_as<MappedTable<Table<Text, Text>, Length>, Table<Text, Long>>);
static_assert(std::same_as<MappedTable<Rows, Length>, Table<Text, std::optional<Long>>>,
              "tombstones stay possible");
static_assert(std::same_as<MappedTable<Table<Text, Text>, MaybeText (*)(const Text&)>, Rows>,
              "nothing deletes");
static_assert(std::same_as<decltype(std::declval<Table<Text, Text>>().filter(Even())), Rows>,
              "what does not match is deleted");
static_assert(std::same_as<decltype(std::declval<Rows>().to_stream()), Stream<Text, MaybeText>>);

// ---- processors --------------------------------------------------------------------------------

struct ToLong final : Processor<Text, Text, Long, Long> {
  void process(const Record<Text, Text>&) override {}
};
struct KeepsKey final : FixedKeyProcessor<Text, Text, Long> {
  void process(const FixedKeyRecord<Text, Text>&) override {}
};
template <class P>
using Supplier = std::unique_ptr<P> (*)();

static_assert(CanProcess<Lines, Supplier<ToLong>>);
static_assert(CanProcess<Lines, Supplier<ToLong>, KvStore<Text, Long>, KvStore<Long, Text>>);
static_assert(!CanProcess<Stream<Text, Long>, Supplier<ToLong>>, "it takes other records");
static_assert(!CanProcess<Lines, Supplier<KeepsKey>>, "that is process_values()");
static_assert(!CanProcess<Lines, Supplier<Text>>, "no processor");
static_assert(!CanProcess<Lines, ToLong (*)()>, "each task owns its processor");
static_assert(CanProcessValues<Lines, Supplier<KeepsKey>>);
static_assert(!CanProcessValues<Lines, Supplier<ToLong>>, "it may change the key");

static_assert(CanForward<ToLong::Context&, Record<Long, Long>>);
static_assert(!CanForward<ToLong::Context&, Record<Text, Long>>, "another key type");
static_assert(CanForward<KeepsKey::Context&, FixedKeyRecord<Text, Long>>);
static_assert(!CanForward<KeepsKey::Context&, FixedKeyRecord<Text, Text>>, "another value type");
static_assert(!CanForward<KeepsKey::Context&, Record<Text, Long>>,
              "a record with a key of its own");

static_assert(!std::is_default_constructible_v<FixedKeyRecord<Text, Text>>,
              "its key is that of a record that came in");
static_assert(!std::is_constructible_v<FixedKeyRecord<Text, Text>, Text, Text, Timestamp, Headers>);
static_assert(
    std::is_const_v<
        std::remove_reference_t<decltype(std::declval<FixedKeyRecord<Text, Text>&>().key())>>,
    "the key cannot be changed");

template <class View, class K, class V>
concept CanPut = requires(View view, K key, V value) { view.put(key, value); };
static_assert(CanPut<KeyValueStoreView<Text, Long>&, Text, Long>);
static_assert(!CanPut<KeyValueStoreView<Text, Long>&, Text, Text>, "value types differ");
static_assert(!CanPut<KeyValueStoreView<Text, Long>&, Long, Long>, "key types differ");

// ---- values without serde ----------------------------------------------------------------------

struct Parsed {
  Long number = 0;
};

TEST(TableTypes, ValuesThatAreNotKeptNeedNoSerde) {
  StreamBuilder builder;
  const Topic<Text, Text> in{"in"};
  const Topic<Text, Long> out{"out"};
  builder.table_from(in, KvStore<Text, Text>{"texts"})
      .map_values([](const Text& text) { return Parsed{std::stoll(text)}; })
      .filter([](const Parsed& parsed) { return parsed.number % 2 == 0; })
      .to_stream()
      .map_values([](const std::optional<Parsed>& parsed) {
        return parsed.has_value() ? std::optional(parsed->number) : std::nullopt;
      })
      .to(out);
  testing::TopologyTestDriver driver(std::move(builder).build());

  for (const Text text : {"1", "2", "3"}) {
    ASSERT_TRUE(driver.pipe(in, "k", text, 1).ok());
  }

  const std::vector<testing::TestRecord<Text, Long>> expected = {{"k", 2, 1, {}},
                                                                 {"k", std::nullopt, 1, {}}};
  EXPECT_EQ(driver.read_all(out), expected);
}

// ---- mistakes that the compiler cannot see: build() keeps them ----------------------------------

TEST(DslMistakes, BranchBehindDefaultBranchAndStreamsOfTwoBuildersAreReported) {
  StreamBuilder builder;
  StreamBuilder other;
  const Topic<Text, Text> in{"in"};
  auto split = builder.from(in).split("s-");
  split.default_branch("rest").to(Topic<Text, Text>{"out"});
  split.branch([](const Text&) { return true; }, "late").to(Topic<Text, Text>{"out"});
  const Topology late = std::move(builder).build();
  ASSERT_FALSE(late.status().ok());
  EXPECT_NE(late.status().error().message().find("default_branch"), Text::npos);

  StreamBuilder third;
  third.from(in).merge(other.from(in)).to(Topic<Text, Text>{"out"});
  const Topology two = std::move(third).build();
  ASSERT_FALSE(two.status().ok());
  EXPECT_NE(two.status().error().message().find("two builders"), Text::npos);
}

}  // namespace
}  // namespace weir
