#include <weir/operators/stream_builder.h>
#include <weir/operators/testing/topology_test_driver.h>

#include <gtest/gtest.h>

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace weir {
namespace {

struct NoSerde {};

// ---- programs that must not compile (streams-features 5.4) -------------------------------------

template <class S, class T>
concept CanGoTo = requires(S stream, T topic) { stream.to(topic); };
template <class S, class T>
concept CanCountInto = requires(S grouped, T store) { grouped.count(store); };
template <class S, class T, class F>
concept CanReduceInto =
    requires(S grouped, T store, F function) { grouped.reduce(store, function); };
template <class S, class F>
concept CanMapValues = requires(S stream, F function) { stream.map_values(function); };
template <class S, class F>
concept CanFilter = requires(S stream, F function) { stream.filter(function); };
template <class S, class F>
concept CanGroupBy = requires(S stream, F function) { stream.group_by(function); };
template <class S>
concept CanGroupByKey = requires(S stream) { stream.group_by_key(); };
template <class K, class V>
concept IsTopic = requires { typename Topic<K, V>; };
template <class K, class V>
concept IsStore = requires { typename KvStore<K, V>; };

using Text = std::string;
using Lines = Stream<Text, Text>;

static_assert(CanGoTo<Lines, Topic<Text, Text>>);
static_assert(!CanGoTo<Stream<Text, std::int64_t>, Topic<Text, Text>>, "value types differ");
static_assert(!CanGoTo<Lines, Topic<std::int64_t, Text>>, "key types differ");
static_assert(CanGoTo<Stream<Text, std::optional<Text>>, Topic<Text, Text>>,
              "a topic takes tombstones");

static_assert(CanCountInto<GroupedStream<Text, Text>, KvStore<Text, std::int64_t>>);
static_assert(!CanCountInto<GroupedStream<Text, Text>, KvStore<std::int64_t, std::int64_t>>,
              "key types differ");
static_assert(!CanCountInto<GroupedStream<Text, Text>, KvStore<Text, std::int32_t>>,
              "counts are 64 bits");

using Join = Text (*)(const Text&, const Text&);
using Mixed = std::int64_t (*)(const Text&, const Text&);
static_assert(CanReduceInto<GroupedStream<Text, Text>, KvStore<Text, Text>, Join>);
static_assert(!CanReduceInto<GroupedStream<Text, Text>, KvStore<Text, Text>, Mixed>,
              "a reducer returns the value's type");
static_assert(!CanReduceInto<GroupedStream<Text, Text>, KvStore<Text, std::int64_t>, Join>,
              "the store has another value type");

static_assert(IsTopic<Text, std::optional<Text>>);
static_assert(!IsTopic<Text, NoSerde>, "no serde");
static_assert(!IsTopic<NoSerde, Text>, "no serde");
static_assert(!IsStore<Text, NoSerde>, "no serde");
static_assert(!IsStore<Text, std::optional<Text>>, "an entry that is absent is not stored");

using Length = std::size_t (*)(const Text&);
using OfLong = Text (*)(const std::int64_t&);
using OfMaybe = Text (*)(const std::optional<Text>&);
using ToNoSerde = NoSerde (*)(const Text&);
static_assert(CanMapValues<Lines, Length>, "a value inside the task needs no serde");
static_assert(!CanMapValues<Lines, OfLong>, "the function takes another type");
static_assert(!CanMapValues<Stream<Text, std::optional<Text>>, Length>, "null is not handled");
static_assert(CanMapValues<Stream<Text, std::optional<Text>>, OfMaybe>);
static_assert(CanMapValues<Lines, ToNoSerde>);
static_assert(!CanGroupBy<Lines, ToNoSerde>, "a key without serde cannot be partitioned");
static_assert(!CanGroupByKey<Stream<Text, NoSerde>>,
              "a value without serde cannot be repartitioned");
static_assert(!CanFilter<Lines, ToNoSerde>, "no truth value");

// ---- literal types -----------------------------------------------------------------------------

inline constexpr Topic<Text, Text> kLines{"lines"};
inline constexpr Topic<Text, std::int64_t> kWordCounts{"word-counts"};
inline constexpr KvStore<Text, std::int64_t> kCounts{"counts"};
static_assert(kLines.name == "lines");

std::vector<std::string_view> words(const Text& line) {
  std::vector<std::string_view> found;
  for (std::size_t begin = 0; begin < line.size();) {
    const std::size_t end = std::min(line.find(' ', begin), line.size());
    if (end != begin) {
      found.push_back(std::string_view(line).substr(begin, end - begin));
    }
    begin = end + 1;
  }
  return found;
}

Topology word_count() {
  StreamBuilder builder;
  builder.from(kLines)
      .flat_map_values(words)
      .group_by([](const Text& word) { return word; })
      .count(kCounts)
      .to_stream()
      .to(kWordCounts);
  return std::move(builder).build();
}

using Count = testing::TestRecord<Text, std::int64_t>;

// The first program of streams-features 5.3.
TEST(TopologyTestDriver, CountsWordsWithTheTimesOfAgg2) {
  testing::TopologyTestDriver driver(word_count());

  ASSERT_TRUE(driver.pipe(kLines, "k", "a b a", 0).ok());
  ASSERT_TRUE(driver.pipe(kLines, "k", "b", 7).ok());

  const std::vector<Count> expected = {
      {"a", 1, 0, {}}, {"b", 1, 0, {}}, {"a", 2, 0, {}}, {"b", 2, 7, {}}};
  EXPECT_EQ(driver.read_all(kWordCounts), expected);
  EXPECT_EQ(driver.get(kCounts, "b"), 2);
  EXPECT_EQ(driver.get(kCounts, "c"), std::nullopt);
  EXPECT_EQ(driver.read(kWordCounts), std::nullopt);
}

TEST(TopologyTestDriver, NamesInternalTopicsAfterApplicationAndStore) {
  testing::TopologyTestDriver driver(word_count(), {.application_id = "wc"});

  ASSERT_TRUE(driver.pipe(kLines, std::nullopt, "x", 1).ok());

  std::vector<std::string> topics;
  for (const testing::RawTestRecord& record : driver.take_written()) {
    topics.push_back(record.topic);
  }
  const std::vector<std::string> expected = {"wc-counts-repartition", "word-counts",
                                             "wc-counts-changelog"};
  EXPECT_EQ(topics, expected);
}

// ---- null rules --------------------------------------------------------------------------------

TEST(Nulls, APlainValueTypeDropsAndCountsNullValuesAtTheSource) {
  testing::TopologyTestDriver driver(word_count());

  ASSERT_TRUE(driver.pipe(kLines, "k", std::nullopt, 1).ok());

  EXPECT_EQ(driver.dropped(), 1U);
  EXPECT_EQ(driver.read(kWordCounts), std::nullopt);
}

TEST(Nulls, ANullKeyPassesFunctionsThatDoNotTakeIt) {
  StreamBuilder builder;
  builder.from(kLines)
      .filter([](const Text& value) { return value != "b"; })
      .map_values([](const Text& value) { return value + "!"; })
      .to(Topic<Text, Text>{"out"});
  testing::TopologyTestDriver driver(std::move(builder).build());

  ASSERT_TRUE(driver.pipe(kLines, std::nullopt, "a", 1).ok());

  const auto out = driver.read(Topic<Text, Text>{"out"});
  ASSERT_TRUE(out.has_value());
  EXPECT_EQ(out->key, std::nullopt);
  EXPECT_EQ(out->value, "a!");
}

TEST(Nulls, ANullKeyIsDroppedAndCountedWhereAFunctionTakesAPlainKey) {
  StreamBuilder builder;
  builder.from(kLines)
      .map_values([](const Text& key, const Text& value) { return key + value; })
      .to(Topic<Text, Text>{"out"});
  testing::TopologyTestDriver driver(std::move(builder).build());

  ASSERT_TRUE(driver.pipe(kLines, std::nullopt, "a", 1).ok());

  EXPECT_EQ(driver.dropped(), 1U);
  EXPECT_EQ(driver.read(Topic<Text, Text>{"out"}), std::nullopt);
}

TEST(Nulls, AnAggregationDropsAndCountsNullKeys) {
  StreamBuilder builder;
  builder.from(kLines).group_by_key().count(kCounts).to_stream().to(kWordCounts);
  testing::TopologyTestDriver driver(std::move(builder).build());

  ASSERT_TRUE(driver.pipe(kLines, std::nullopt, "a", 1).ok());

  EXPECT_EQ(driver.dropped(), 1U);
  EXPECT_TRUE(driver.rows("counts").empty());
}

TEST(Nulls, ARepartitionDropsNullKeysWithoutCounting) {
  StreamBuilder builder;
  builder.from(kLines)
      .group_by([](const Text& value) {
        return value.empty() ? std::nullopt : std::optional<Text>(value);
      })
      .count(kCounts)
      .to_stream()
      .to(kWordCounts);
  testing::TopologyTestDriver driver(std::move(builder).build());

  ASSERT_TRUE(driver.pipe(kLines, "k", "", 1).ok());
  ASSERT_TRUE(driver.pipe(kLines, "k", "x", 2).ok());

  EXPECT_EQ(driver.dropped(), 0U);
  EXPECT_EQ(driver.rows("counts").size(), 1U);
}

// ---- context, errors ---------------------------------------------------------------------------

TEST(RecordContext, TellsAFunctionWhereItsRecordComesFrom) {
  StreamBuilder builder;
  builder.from(kLines)
      .map_values([](const Text&, const Text& value, const RecordContext& context) {
        return value + "@" + std::to_string(context.timestamp) + " " + std::string(context.topic) +
               "-" + std::to_string(context.partition.value()) + ":" +
               std::to_string(context.offset.value()) + " stream " +
               std::to_string(context.stream_time) + " headers " +
               std::to_string(context.headers.count());
      })
      .to(Topic<Text, Text>{"out"});
  testing::TopologyTestDriver driver(std::move(builder).build());
  Headers headers;
  headers.add("h", ByteView("1"));

  ASSERT_TRUE(driver.pipe(kLines, "k", "a", 9).ok());
  ASSERT_TRUE(driver.pipe(kLines, "k", "b", 4, headers.view()).ok());

  EXPECT_EQ(driver.read(Topic<Text, Text>{"out"})->value, "a@9 lines-0:0 stream 9 headers 0");
  EXPECT_EQ(driver.read(Topic<Text, Text>{"out"})->value, "b@4 lines-0:1 stream 9 headers 1");
}

TEST(TopologyTestDriver, ReportsTheRecordAtWhichAFunctionThrew) {
  StreamBuilder builder;
  builder.from(kLines)
      .map_values([](const Text& value) {
        if (value == "bad") {
          throw std::runtime_error("cannot parse");
        }
        return value;
      })
      .to(Topic<Text, Text>{"out"});
  testing::TopologyTestDriver driver(std::move(builder).build());

  ASSERT_TRUE(driver.pipe(kLines, "k", "good", 1).ok());
  const Status status = driver.pipe(kLines, "k", "bad", 2);

  ASSERT_FALSE(status.ok());
  EXPECT_EQ(status.error().code(), Errc::kHandlerThrew);
  EXPECT_NE(status.error().message().find("lines-0 offset 1"), std::string::npos)
      << status.error().message();
  EXPECT_NE(status.error().message().find("cannot parse"), std::string::npos);
}

TEST(TopologyTestDriver, ReportsBytesThatAreNoValue) {
  StreamBuilder builder;
  const Topic<Text, std::int64_t> numbers{"numbers"};
  builder.from(numbers).group_by_key().count(kCounts).to_stream().to(kWordCounts);
  testing::TopologyTestDriver driver(std::move(builder).build());

  const Status status = driver.pipe_bytes(
      "numbers", {.key = ByteView("k"), .value = ByteView("abc"), .timestamp = 1, .headers = {}});

  ASSERT_FALSE(status.ok());
  EXPECT_NE(status.error().message().find("numbers-0 offset 0"), std::string::npos)
      << status.error().message();
}

}  // namespace
}  // namespace weir
