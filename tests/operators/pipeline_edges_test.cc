#include "tests/operators/support/app_world.h"

#include <weir/operators/testing/topology_test_driver.h>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>
#include <stdexcept>

// Pipelines at the edge of what the language allows: topologies that feed themselves, serdes that
// throw, timers with a state of their own, records that are kept, names that collide.

namespace weir {

// "bad" can be neither read nor written.
struct Touchy {
  std::string text;
  friend bool operator==(const Touchy&, const Touchy&) = default;
};
template <>
struct Serde<Touchy> {
  static constexpr std::string_view kName = "string";
  static void write(const Touchy& value, std::string& out) {
    if (value.text == "bad") {
      throw std::runtime_error("cannot be written");
    }
    out.append(value.text);
  }
  static Result<Touchy> read(ByteView bytes) {
    if (bytes == "bad") {
      throw std::runtime_error("cannot be read");
    }
    return Touchy{std::string(bytes)};
  }
};

namespace test {
namespace {

using std::chrono::milliseconds;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::UnorderedElementsAre;
using Text = std::string;

constexpr Topic<Text, Text> kIn{"in"};
constexpr Topic<Text, Text> kOut{"out"};
constexpr Topic<Text, Touchy> kTouchyIn{"in"};
constexpr Topic<Text, Touchy> kTouchyOut{"out"};

std::vector<Text> values_of(testing::TopologyTestDriver& driver, const Text& topic) {
  std::vector<Text> values;
  while (auto record = driver.read_bytes(topic)) {
    values.push_back(record->key.value_or("null") + "=" + record->value.value_or("null"));
  }
  return values;
}

Status pipe_text(testing::TopologyTestDriver& driver, const Text& value) {
  return driver.pipe_bytes(
      "in", {.key = ByteView("k"), .value = ByteView(value), .timestamp = 1, .headers = {}});
}

TEST(PipelineEdges, ASubTopologyThatReadsItsOwnRepartitionTopicGetsTasks) {
  World world;
  world.make_topic("in", 3);
  world.make_topic("out", 1);
  StreamBuilder builder;
  const auto in = builder.from(kIn);
  in.merge(in.select_key([](const Text& value) { return value; }).repartition({.name = "again"}))
      .to(kOut);
  const auto app = world.make_app(std::move(builder).build(), world.options("loop"));
  ASSERT_TRUE(app->start().ok());
  world.produce("in", 1, {{.key = ByteView("k"), .value = ByteView("v"), .timestamp = 5}});
  ASSERT_TRUE(drain(world, *app).ok());
  EXPECT_EQ(world.partitions("loop-again-repartition"), 3);
  std::vector<Text> keys;
  for (const auto& record : world.memory.records({"out", PartitionId(0)})) {
    keys.push_back(*record.key);
  }
  EXPECT_THAT(keys, UnorderedElementsAre("k", "v"));
}

TEST(PipelineEdges, ASerdeThatThrowsWhileReadingIsABadRecord) {
  StreamBuilder builder;
  const auto in = builder.from(kTouchyIn);
  in.to(kTouchyOut);
  in.group_by_key()
      .reduce(KvStore<Text, Touchy>{"last"},
              [](const Touchy&, const Touchy& value) { return value; })
      .to_stream()
      .to(Topic<Text, Touchy>{"reduced"});
  testing::TopologyTestDriver driver(
      std::move(builder).build(),
      {.errors = {.deserialization = ErrorResponse::kContinue, .dead_letter_topic = "dead"}});
  for (const Text value : {"a", "bad", "b"}) {
    const Status piped = pipe_text(driver, value);
    EXPECT_TRUE(piped.ok()) << piped.error().to_string();
  }
  EXPECT_THAT(values_of(driver, "out"), ElementsAre("k=a", "k=b"));
  EXPECT_THAT(values_of(driver, "reduced"), ElementsAre("k=a", "k=b"));
  EXPECT_THAT(values_of(driver, "dead"), ElementsAre("k=bad"));
  EXPECT_EQ(driver.dropped(), 1U);
}

// The raw path of an operator with a store takes no value apart from looking whether it is one.
TEST(PipelineEdges, ASerdeThatThrowsIsABadRecordForACountToo) {
  StreamBuilder builder;
  builder.from(kTouchyIn).group_by_key().count(KvStore<Text, std::int64_t>{"n"});
  testing::TopologyTestDriver driver(std::move(builder).build(),
                                     {.errors = {.deserialization = ErrorResponse::kContinue}});
  for (const Text value : {"a", "bad", "b"}) {
    const Status piped = pipe_text(driver, value);
    EXPECT_TRUE(piped.ok()) << piped.error().to_string();
  }
  EXPECT_EQ(driver.get(KvStore<Text, std::int64_t>{"n"}, "k"), 2);
}

TEST(PipelineEdges, DeadLettersAreWholeInATopicThatIsAnOutputToo) {
  StreamBuilder builder;
  builder.from(kIn).map_values([](const Text& value) { return Touchy{value}; }).to(kTouchyOut);
  testing::TopologyTestDriver driver(
      std::move(builder).build(),
      {.errors = {.production = ErrorResponse::kContinue, .dead_letter_topic = "out"}});
  ASSERT_TRUE(driver.pipe(kIn, "a-long-key", "bad", 1).ok());
  ASSERT_TRUE(driver.pipe(kIn, "k", "good", 2).ok());
  EXPECT_THAT(values_of(driver, "out"), ElementsAre("a-long-key=bad", "k=good"));
}

TEST(PipelineEdges, ADeadLetterTopicThatIsReadIsRefused) {
  World world;
  world.make_topic("lines", 1);
  world.make_topic("word-counts", 1);
  AppOptions options = world.options();
  options.dead_letter_topic = "lines";
  const auto app = world.make_app(word_count(), options);
  const Status started = app->start();
  EXPECT_EQ(started.error().code(), Errc::kInvalidConfig);
  EXPECT_THAT(started.error().message(), HasSubstr("lines"));
}

TEST(PipelineEdges, OptionsThatWereSetByHandFollowTheTable) {
  World world;
  world.make_topic("lines", 1);
  world.make_topic("word-counts", 1);
  AppOptions options = world.options();
  options.processing_exception_handler = "LogAndContinueProcessingExceptionHandler";
  options.auto_offset_reset = "Latest";
  const auto app = world.make_app(word_count(), options);
  const Status started = app->start();
  EXPECT_EQ(started.error().code(), Errc::kInvalidConfig);
  EXPECT_THAT(started.error().message(), HasSubstr("processing.exception.handler"));
  EXPECT_THAT(started.error().message(), HasSubstr("auto.offset.reset"));
}

class Timers final : public Processor<Text, Text> {
 public:
  void init(Context& context) override { context_ = &context; }
  void process(const Record<Text, Text>& record) override {
    if (record.value == "start") {
      context_->schedule(milliseconds(10), PunctuationType::kStreamTime,
                         [this, count = 0](Timestamp time) mutable {
                           context_->forward({"timer", std::to_string(++count), time, {}});
                         });
    }
  }

 private:
  Context* context_ = nullptr;
};

// Whether the records come one by one or in one block, a timer sees each of them.
TEST(PipelineEdges, ATimerThatStartsInsideABlockIsDueAtOnceAndKeepsItsState) {
  World world;
  world.make_topic("in", 1);
  world.make_topic("out", 1);
  StreamBuilder builder;
  builder.from(kIn).process([] { return std::make_unique<Timers>(); }).to(kOut);
  const auto app = world.make_app(std::move(builder).build(), world.options("timers"));
  ASSERT_TRUE(app->start().ok());
  std::vector<RecordRef> records;
  for (Timestamp time = 0; time <= 50; time += 10) {
    records.push_back({.key = ByteView("k"),
                       .value = ByteView(time == 0 ? "start" : "x"),
                       .timestamp = time,
                       .headers = {}});
  }
  world.produce("in", 0, records);
  ASSERT_TRUE(drain(world, *app).ok());
  std::vector<Text> fired;
  for (const auto& record : world.memory.records({"out", PartitionId(0)})) {
    fired.push_back(*record.value + "@" + std::to_string(record.timestamp));
  }
  EXPECT_THAT(fired, ElementsAre("1@0", "2@10", "3@20", "4@30", "5@40", "6@50"));
}

class Keeper final : public FixedKeyProcessor<Text, Text> {
 public:
  void init(Context& context) override {
    context_ = &context;
    context.schedule(milliseconds(100), PunctuationType::kWallClockTime, [this](Timestamp) {
      for (const FixedKeyRecord<Text, Text>& record : kept_) {
        context_->forward(record);
      }
      kept_.clear();
    });
  }
  void process(const FixedKeyRecord<Text, Text>& record) override { kept_.push_back(record); }

 private:
  Context* context_ = nullptr;
  std::vector<FixedKeyRecord<Text, Text>> kept_;
};

TEST(PipelineEdges, ARecordThatIsKeptLeavesUnderItsOwnKey) {
  StreamBuilder builder;
  builder.from(kIn).process_values([] { return std::make_unique<Keeper>(); }).to(kOut);
  testing::TopologyTestDriver driver(std::move(builder).build());
  ASSERT_TRUE(driver.pipe(kIn, "first", "1", 1).ok());
  ASSERT_TRUE(driver.pipe(kIn, "second", "2", 2).ok());
  ASSERT_TRUE(driver.advance_wall_clock(milliseconds(100)).ok());
  EXPECT_THAT(values_of(driver, "out"), ElementsAre("first=1", "second=2"));
}

class WrongType final : public Processor<Text, Text> {
 public:
  void init(Context& context) override { context_ = &context; }
  void process(const Record<Text, Text>& record) override {
    auto store = context_->store(KvStore<Text, Text>{"seen"});
    store.put(record.key, record.value);
  }

 private:
  Context* context_ = nullptr;
};

TEST(PipelineEdges, AStoreAskedForAsAnotherTypeStopsTheTask) {
  StreamBuilder builder;
  builder.from(kIn)
      .process([] { return std::make_unique<WrongType>(); }, KvStore<Text, std::int64_t>{"seen"})
      .to(kOut);
  testing::TopologyTestDriver driver(std::move(builder).build());
  const Status piped = driver.pipe(kIn, "k", "v", 1);
  ASSERT_FALSE(piped.ok());
  EXPECT_THAT(piped.error().message(), HasSubstr("<string, string>"));
  EXPECT_THAT(piped.error().message(), HasSubstr("<string, long>"));
}

Status status_of(StreamBuilder builder) {
  return std::move(builder).build().status();
}

TEST(PipelineEdges, MistakesAreCollectedNotThrown) {
  StreamBuilder empty;
  empty.from(std::initializer_list<Topic<Text, Text>>{});
  empty.from(kIn).to(kOut);
  EXPECT_THAT(status_of(std::move(empty)).error().message(), HasSubstr("at least one topic"));

  StreamBuilder collision;
  const auto in = collision.from(kIn);
  in.group_by([](const Text& value) { return value; }).count(kCounts);
  in.to(Topic<Text, Text>{"counts-repartition"});
  EXPECT_THAT(status_of(std::move(collision)).error().message(),
              HasSubstr("'counts-repartition' has the name of a repartition topic"));

  StreamBuilder copies;
  auto split = copies.from(kIn).split();
  auto copy = split;
  copy.default_branch().to(kOut);
  split.branch([](const Text&) { return true; }).to(kOut);
  EXPECT_THAT(status_of(std::move(copies)).error().message(),
              HasSubstr("branch() behind default_branch()"));
}

}  // namespace
}  // namespace test
}  // namespace weir
