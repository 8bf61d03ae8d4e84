#include "tests/operators/support/app_world.h"

#include <weir/runtime/endian.h>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>
#include <stdexcept>

// Error policies and dead letters of an application (streams-features 2.20; KIP-1033, KIP-1034):
// position, committed offsets, metrics, messages, and that nothing is lost.

namespace weir::test {
namespace {

using std::chrono::milliseconds;
using ::testing::HasSubstr;
using ::testing::Not;
using Text = std::string;

inline constexpr Topic<Text, std::int64_t> kIn{"in"};
inline constexpr Topic<Text, Text> kOut{"out"};

// Refuses to be written when it says so.
struct Fragile {
  Text text;
};

Text long_of(std::int64_t value) {
  Text bytes(sizeof(value), '\0');
  store_be(bytes.data(), value);
  return bytes;
}

// The value 13 throws in the function, 14 in the serde, 15 is too large for the topic "out".
Text describe(const std::int64_t& value) {
  if (value == 13) {
    throw std::invalid_argument("thirteen");
  }
  return value == 15 ? Text(5000, 'x') : std::to_string(value);
}

}  // namespace
}  // namespace weir::test

namespace weir {
template <>
struct Serde<test::Fragile> {
  static constexpr std::string_view kName = "fragile";
  static void write(const test::Fragile& value, std::string& out) {
    out += value.text;
    if (value.text == "14") {
      throw std::length_error("fourteen");
    }
  }
  static Result<test::Fragile> read(ByteView bytes) { return test::Fragile{std::string(bytes)}; }
};
}  // namespace weir

namespace weir::test {
namespace {

Topology numbers() {
  StreamBuilder builder;
  builder.from(kIn)
      .map_values(describe)
      .map_values([](const Text& text) { return Fragile{text}; })
      .to(Topic<Text, Fragile>{"out"});
  return std::move(builder).build();
}

struct Stage {
  Text name;
  Text setting;
  Text bad;  // the bytes of the value
  Text exception;
  Text message;
  Errc code;
};
std::vector<Stage> stages() {
  return {
      {"deserialization", "deserialization", "abc", "", "", Errc::kCorrupt},
      {"processing", "processing", long_of(13), "std::invalid_argument", "thirteen",
       Errc::kHandlerThrew},
      {"serialization", "production", long_of(14), "std::length_error", "fourteen",
       Errc::kHandlerThrew},
      {"production", "production", long_of(15), "", "max.message.bytes", Errc::kRecordTooLarge},
  };
}

struct PolicyWorld : World {
  explicit PolicyWorld(std::int32_t dead_message_bytes = 1'000'000) {
    make_topic("in", 1);
    EXPECT_TRUE(memory.admin().create_topic({"out", 1, {{"max.message.bytes", "4000"}}}).ok());
    EXPECT_TRUE(
        memory.admin()
            .create_topic({"dead", 1, {{"max.message.bytes", std::to_string(dead_message_bytes)}}})
            .ok());
    app_options = options("e");
  }
  void set(const Text& setting, const Text& response) {
    Text& option = setting == "deserialization" ? app_options.deserialization_exception_handler
                   : setting == "processing"    ? app_options.processing_exception_handler
                                                : app_options.production_exception_handler;
    option = response;
  }
  // Values, each with the key "k<i>", timestamp 100 + i and a header.
  void send(const std::vector<Text>& values) {
    for (const Text& value : values) {
      const Text key = "k" + std::to_string(count);
      Headers headers;
      headers.add("origin", ByteView("test"));
      produce("in", 0,
              {{.key = ByteView(key),
                .value = ByteView(value),
                .timestamp = 100 + count++,
                .headers = headers.view()}});
    }
  }
  std::unique_ptr<App> started(const Topology& topology) {
    std::unique_ptr<App> app = make_app(topology, app_options);
    const Status status = app->start();
    EXPECT_TRUE(status.ok()) << status.error().to_string();
    return app;
  }
  std::vector<Text> keys(const Text& topic) const {
    std::vector<Text> all;
    for (const auto& record : memory.records({topic, PartitionId(0)})) {
      all.push_back(record.key.value_or("-"));
    }
    return all;
  }
  Offset committed(App& app) const { return app.committed_offsets().at({"in", PartitionId(0)}); }
  Text dead_header(std::size_t index, std::string_view name) const {
    const auto records = memory.records({"dead", PartitionId(0)});
    for (const HeaderView& header : records.at(index).headers.view()) {
      if (header.name == name) {
        return Text(header.value.view_or_empty());
      }
    }
    return "(absent)";
  }
  AppOptions app_options;
  Timestamp count = 0;
};

Status run_to_error(World& world, App& app) {
  return step_until(world, app, [] { return false; }, 60);
}

class EachStage : public ::testing::TestWithParam<std::size_t> {
 protected:
  Stage stage() const { return stages().at(GetParam()); }
  // The record at offset 2 as it was read, and what KIP-1034 adds.
  void expect_dead_letter(const PolicyWorld& world, std::size_t index) const {
    const auto records = world.memory.records({"dead", PartitionId(0)});
    ASSERT_GT(records.size(), index);
    EXPECT_EQ(records[index].key, "k2");
    EXPECT_EQ(records[index].value, stage().bad);
    EXPECT_EQ(records[index].timestamp, 102);
    EXPECT_EQ(world.dead_header(index, "origin"), "test");
    EXPECT_EQ(world.dead_header(index, "__streams.errors.topic"), "in");
    EXPECT_EQ(world.dead_header(index, "__streams.errors.partition"), "0");
    EXPECT_EQ(world.dead_header(index, "__streams.errors.offset"), "2");
    EXPECT_THAT(world.dead_header(index, "__streams.errors.exception"),
                HasSubstr(stage().exception));
    EXPECT_THAT(world.dead_header(index, "__streams.errors.message"), HasSubstr(stage().message));
    EXPECT_THAT(world.dead_header(index, "__streams.errors.stacktrace"),
                HasSubstr(stage().message));
  }
};

TEST_P(EachStage, FailStopsAtTheRecordAndCommitsNothingOfTheInterval) {
  PolicyWorld world;
  const std::unique_ptr<App> app = world.started(numbers());
  world.send({long_of(1)});
  ASSERT_TRUE(drain(world, *app).ok());
  world.send({long_of(2), stage().bad, long_of(3)});

  EXPECT_EQ(run_to_error(world, *app).error().code(), stage().code);

  EXPECT_EQ(app->state(), AppState::kError);
  EXPECT_THAT(app->error().error().message(), HasSubstr(stage().message));
  EXPECT_THAT(app->error().error().message(), HasSubstr("0_0"));
  EXPECT_EQ(world.committed(*app), Offset(1));
  EXPECT_TRUE(world.keys("dead").empty());
  for (const Text& key : world.keys("out")) {
    EXPECT_THAT(key, Not(::testing::AnyOf("k2", "k3")));
  }
}

TEST_P(EachStage, FailWritesTheDeadLetterFirst) {
  PolicyWorld world;
  world.app_options.dead_letter_topic = "dead";
  world.send({long_of(1), long_of(2), stage().bad, long_of(3)});
  const std::unique_ptr<App> app = world.started(numbers());

  EXPECT_EQ(run_to_error(world, *app).error().code(), stage().code);

  EXPECT_EQ(world.committed(*app), Offset(0));
  expect_dead_letter(world, 0);
}

TEST_P(EachStage, FailMeetsTheSameRecordBehindARestartAndContinuePassesIt) {
  PolicyWorld world;
  world.send({long_of(1), long_of(2), stage().bad, long_of(3)});
  for (int life = 0; life < 2; ++life) {
    const std::unique_ptr<App> app = world.started(numbers());
    EXPECT_EQ(run_to_error(world, *app).error().code(), stage().code);
  }
  world.set(stage().setting, "continue");
  const std::unique_ptr<App> app = world.started(numbers());
  ASSERT_TRUE(drain(world, *app).ok());

  EXPECT_EQ(world.keys("out").back(), "k3");
  EXPECT_EQ(world.committed(*app), Offset(4));
}

TEST_P(EachStage, ContinueSkipsAndCountsTheRecord) {
  PolicyWorld world;
  world.set(stage().setting, "continue");
  world.send({long_of(1), long_of(2), stage().bad, long_of(3), stage().bad});
  const std::unique_ptr<App> app = world.started(numbers());
  ASSERT_TRUE(drain(world, *app).ok());

  EXPECT_EQ(world.keys("out"), (std::vector<Text>{"k0", "k1", "k3"}));
  EXPECT_EQ(world.committed(*app), Offset(5));
  EXPECT_TRUE(world.keys("dead").empty());
  EXPECT_THAT(app->metrics().prometheus_text(),
              HasSubstr("weir_task_dropped_records_total{task=\"0_0\"} 2"));
  EXPECT_EQ(app->state(), AppState::kRunning);
}

TEST_P(EachStage, ContinueWritesADeadLetterBeforeTheOffsetIsCommitted) {
  PolicyWorld world;
  world.set(stage().setting, "continue");
  world.app_options.dead_letter_topic = "dead";
  world.send({long_of(1), long_of(2), stage().bad, long_of(3)});
  {
    const std::unique_ptr<App> app = world.started(numbers());
    ASSERT_TRUE(drain(world, *app).ok());
    EXPECT_EQ(world.committed(*app), Offset(4));
  }
  EXPECT_EQ(world.keys("out"), (std::vector<Text>{"k0", "k1", "k3"}));
  ASSERT_EQ(world.keys("dead").size(), 1U);
  expect_dead_letter(world, 0);
}

// Whatever call of the log is the last: committed means that the dead letter is there.
TEST_P(EachStage, NoDeadLetterIsLostWhereverTheProcessDies) {
  for (std::uint64_t call = 0; call < 40; ++call) {
    PolicyWorld world;
    world.set(stage().setting, "continue");
    world.app_options.dead_letter_topic = "dead";
    world.app_options.commit_interval_ms = 20;
    world.send({long_of(1), long_of(2), stage().bad, long_of(3)});
    DyingBackend dying(world.memory);
    world.backend = &dying;
    dying.die_at(call);
    {
      const std::unique_ptr<App> app = world.make_app(numbers(), world.app_options);
      if (app->start().ok()) {
        step_until(world, *app, [&] { return dying.is_dead(); }, 30).ignore("it dies or is done");
      }
    }
    world.files.process_crash();
    world.backend = &world.memory;
    const std::unique_ptr<App> app = world.started(numbers());
    ASSERT_TRUE(drain(world, *app).ok()) << call;
    EXPECT_THAT(world.keys("dead"), ::testing::Contains("k2")) << call;
    EXPECT_THAT(world.keys("out"), ::testing::IsSupersetOf({"k0", "k1", "k3"})) << call;
    EXPECT_THAT(world.keys("out"), Not(::testing::Contains("k2"))) << call;
  }
}

TEST_P(EachStage, ADeadLetterThatIsTooLargeStopsTheApplicationAndLosesNothing) {
  PolicyWorld world(150);
  world.set(stage().setting, "continue");
  world.app_options.dead_letter_topic = "dead";
  world.send({long_of(1), long_of(2), stage().bad, long_of(3)});
  {
    const std::unique_ptr<App> app = world.started(numbers());
    EXPECT_EQ(run_to_error(world, *app).error().code(), Errc::kRecordTooLarge);
    EXPECT_EQ(app->state(), AppState::kError);
    EXPECT_THAT(app->error().error().message(), HasSubstr("dead letter"));
    EXPECT_LE(world.committed(*app), Offset(2));
  }
  ASSERT_TRUE(world.memory.admin().alter_topic("dead", {{"max.message.bytes", "9000"}}, {}).ok());
  const std::unique_ptr<App> app = world.started(numbers());
  ASSERT_TRUE(drain(world, *app).ok());
  expect_dead_letter(world, 0);
  EXPECT_EQ(world.committed(*app), Offset(4));
  EXPECT_THAT(world.keys("out"), ::testing::IsSupersetOf({"k0", "k1", "k3"}));
}

TEST_P(EachStage, FailNamesTheFirstCauseWhenTheDeadLetterIsRefusedToo) {
  PolicyWorld world(150);
  world.app_options.dead_letter_topic = "dead";
  world.send({long_of(1), long_of(2), stage().bad, long_of(3)});
  const std::unique_ptr<App> app = world.started(numbers());

  EXPECT_EQ(run_to_error(world, *app).error().code(), stage().code);

  EXPECT_THAT(app->error().error().message(), HasSubstr(stage().message));
  EXPECT_THAT(app->error().error().message(), HasSubstr("dead letter, which would be lost"));
  EXPECT_THAT(app->error().error().message(), HasSubstr("offset 2"));
  EXPECT_EQ(world.committed(*app), Offset(0));
}

INSTANTIATE_TEST_SUITE_P(Stages, EachStage, ::testing::Range<std::size_t>(0, 4),
                         [](const auto& given) { return stages().at(given.param).name; });

TEST(DeadLetterTopic, MustExistWhenTheApplicationStarts) {
  PolicyWorld world;
  world.app_options.dead_letter_topic = "nowhere";
  const std::unique_ptr<App> app = world.make_app(numbers(), world.app_options);

  const Status started = app->start();

  EXPECT_EQ(started.error().code(), Errc::kUnknownTopic);
  EXPECT_THAT(started.error().message(), HasSubstr("nowhere"));
  EXPECT_THAT(started.error().message(), HasSubstr("errors.dead.letter.queue.topic.name"));
}

// ---- topics chosen by the records --------------------------------------------------------------

Topology chosen() {
  StreamBuilder builder;
  builder.from(kIn)
      .map_values([](const std::int64_t& value) { return std::to_string(value); })
      .to([](const Text& value) { return "chosen-" + value; });
  return std::move(builder).build();
}

TEST(TopicChooser, ATopicThatDoesNotExistStopsTheApplicationAndIsNamed) {
  PolicyWorld world;
  world.make_topic("chosen-1", 1);
  world.send({long_of(1), long_of(2), long_of(1)});
  {
    const std::unique_ptr<App> app = world.started(chosen());
    EXPECT_EQ(run_to_error(world, *app).error().code(), Errc::kUnknownTopic);
    EXPECT_THAT(app->error().error().message(), HasSubstr("chosen-2"));
    EXPECT_THAT(app->error().error().message(), HasSubstr("in-0 offset 1"));
    EXPECT_EQ(world.committed(*app), Offset(0));
  }
  world.make_topic("chosen-2", 1);
  const std::unique_ptr<App> app = world.started(chosen());
  ASSERT_TRUE(drain(world, *app).ok());
  EXPECT_THAT(world.keys("chosen-1"), ::testing::IsSupersetOf({"k0", "k2"}));
  EXPECT_EQ(world.keys("chosen-2"), std::vector<Text>{"k1"});
}

TEST(TopicChooser, ContinueSkipsRecordsForATopicThatDoesNotExist) {
  PolicyWorld world;
  world.make_topic("chosen-1", 1);
  world.set("production", "continue");
  world.app_options.dead_letter_topic = "dead";
  world.send({long_of(1), long_of(2), long_of(1)});
  const std::unique_ptr<App> app = world.started(chosen());
  ASSERT_TRUE(drain(world, *app).ok());

  EXPECT_EQ(world.keys("chosen-1"), (std::vector<Text>{"k0", "k2"}));
  EXPECT_EQ(world.keys("dead"), std::vector<Text>{"k1"});
}

// A log that does not answer is no fault of the record.
class DeafSink final : public RecordSink {
 public:
  DeafSink(std::unique_ptr<RecordSink> inner, int& deaf) : inner_(std::move(inner)), deaf_(deaf) {}
  Result<SinkTopicInfo> open_topic(const std::string& name) override {
    if (name.starts_with("chosen-") && deaf_-- > 0) {
      return Error(Errc::kIo, "the log does not answer");
    }
    return inner_->open_topic(name);
  }
  Status send(SinkTopic topic, PartitionId partition, std::span<const RecordRef> records) override {
    return inner_->send(topic, partition, records);
  }
  Result<std::vector<FlushedPartition>> flush() override { return inner_->flush(); }
  Status begin() override { return inner_->begin(); }
  Status send_offsets(std::span<const std::pair<TopicPartition, CommittedOffset>> offsets,
                      const GroupMetadata& group) override {
    return inner_->send_offsets(offsets, group);
  }
  Result<TransactionOutcome> end(bool commit) override { return inner_->end(commit); }

 private:
  std::unique_ptr<RecordSink> inner_;
  int& deaf_;
};
class DeafBackend final : public Backend {
 public:
  explicit DeafBackend(Backend& inner) : inner_(inner) {}
  Admin& admin() override { return inner_.admin(); }
  Result<std::unique_ptr<RecordSource>> make_source(const SourceOptions& options) override {
    return inner_.make_source(options);
  }
  Result<std::unique_ptr<RecordSink>> make_sink(const SinkOptions& options) override {
    WEIR_TRY_ASSIGN(std::unique_ptr<RecordSink> inner, inner_.make_sink(options));
    return std::unique_ptr<RecordSink>(std::make_unique<DeafSink>(std::move(inner), deaf));
  }
  Result<std::unique_ptr<Group>> make_group(const std::string& group_id) override {
    return inner_.make_group(group_id);
  }
  int deaf = 2;

 private:
  Backend& inner_;
};

TEST(TopicChooser, ALogThatFailsToOpenATopicIsTriedAgainWhateverThePolicy) {
  for (const Text response : {"fail", "continue"}) {
    PolicyWorld world;
    world.make_topic("chosen-1", 1);
    world.set("production", response);
    world.send({long_of(1), long_of(1)});
    DeafBackend deaf(world.memory);
    world.backend = &deaf;
    const std::unique_ptr<App> app = world.started(chosen());
    const Status drained = drain(world, *app);
    ASSERT_TRUE(drained.ok()) << response << " " << drained.error().to_string();

    EXPECT_THAT(world.keys("chosen-1"), ::testing::IsSupersetOf({"k0", "k1"})) << response;
  }
}

// ---- default.timestamp.extractor ---------------------------------------------------------------

Topology copied() {
  StreamBuilder builder;
  builder.from(kOut).to(Topic<Text, Text>{"copy"});
  return std::move(builder).build();
}

struct Extraction {
  Text extractor;
  std::vector<Timestamp> copied;  // of the records at 10, -5, 7, -5
};
class Extractor : public ::testing::TestWithParam<Extraction> {};

// A log that keeps negative timestamps: those of Kafka's older producers.
class ShiftedSource final : public RecordSource {
 public:
  explicit ShiftedSource(std::unique_ptr<RecordSource> inner) : inner_(std::move(inner)) {}
  Status assign(std::vector<TopicPartition> partitions) override {
    return inner_->assign(std::move(partitions));
  }
  Status seek(std::uint32_t assignment, Offset offset) override {
    return inner_->seek(assignment, offset);
  }
  Offset position(std::uint32_t assignment) const override { return inner_->position(assignment); }
  void pause(std::uint32_t assignment) override { inner_->pause(assignment); }
  void resume(std::uint32_t assignment) override { inner_->resume(assignment); }
  Result<std::vector<RecordBlock>> poll(Duration timeout) override {
    WEIR_TRY_ASSIGN(std::vector<RecordBlock> blocks, inner_->poll(timeout));
    for (RecordBlock& block : blocks) {
      for (RecordView& record : block.records) {
        record.timestamp -= 1000;
      }
    }
    return blocks;
  }
  void wakeup() override { inner_->wakeup(); }

 private:
  std::unique_ptr<RecordSource> inner_;
};
class ShiftedBackend final : public Backend {
 public:
  explicit ShiftedBackend(Backend& inner) : inner_(inner) {}
  Admin& admin() override { return inner_.admin(); }
  Result<std::unique_ptr<RecordSource>> make_source(const SourceOptions& options) override {
    WEIR_TRY_ASSIGN(std::unique_ptr<RecordSource> inner, inner_.make_source(options));
    return std::unique_ptr<RecordSource>(std::make_unique<ShiftedSource>(std::move(inner)));
  }
  Result<std::unique_ptr<RecordSink>> make_sink(const SinkOptions& options) override {
    return inner_.make_sink(options);
  }
  Result<std::unique_ptr<Group>> make_group(const std::string& group_id) override {
    return inner_.make_group(group_id);
  }

 private:
  Backend& inner_;
};

struct ShiftedWorld : PolicyWorld {
  ShiftedWorld() : shifted(memory) {
    backend = &shifted;
    make_topic("copy", 1);
  }
  void send_at(const std::vector<Timestamp>& times) {
    for (const Timestamp time : times) {
      produce("out", 0,
              {{.key = ByteView("k"),
                .value = ByteView("v"),
                .timestamp = time + 1000,
                .headers = {}}});
    }
  }
  std::vector<Timestamp> copies() const {
    std::vector<Timestamp> times;
    for (const auto& record : memory.records({"copy", PartitionId(0)})) {
      times.push_back(record.timestamp);
    }
    return times;
  }
  ShiftedBackend shifted;
};

TEST_P(Extractor, DecidesWhatANegativeTimestampIs) {
  ShiftedWorld world;
  world.app_options.timestamp_extractor = GetParam().extractor;
  world.send_at({10, -5, 7, -5});
  const std::unique_ptr<App> app = world.started(copied());
  ASSERT_TRUE(drain(world, *app).ok());

  EXPECT_EQ(world.copies(), GetParam().copied);
  EXPECT_EQ(app->committed_offsets().at({"out", PartitionId(0)}), Offset(4));
}

INSTANTIATE_TEST_SUITE_P(Extractors, Extractor,
                         ::testing::Values(Extraction{"LogAndSkipOnInvalidTimestamp", {10, 7}},
                                           Extraction{"UsePartitionTimeOnInvalidTimestamp",
                                                      {10, 10, 7, 10}}));

TEST(ExtractorAlone, FailStopsAtTheRecord) {
  ShiftedWorld world;
  world.send_at({10, -5, 7});
  const std::unique_ptr<App> app = world.started(copied());

  EXPECT_EQ(run_to_error(world, *app).error().code(), Errc::kInvalidTimestamp);
  EXPECT_THAT(app->error().error().message(), HasSubstr("offset 1"));
  EXPECT_EQ(app->committed_offsets().at({"out", PartitionId(0)}), Offset(0));
}

TEST(ExtractorAlone, UsePartitionTimeKnowsItBehindARestartAndFailsWithoutOne) {
  ShiftedWorld world;
  world.app_options.timestamp_extractor = "UsePartitionTimeOnInvalidTimestamp";
  world.send_at({25});
  {
    const std::unique_ptr<App> app = world.started(copied());
    ASSERT_TRUE(drain(world, *app).ok());
  }
  world.send_at({-5});
  {
    const std::unique_ptr<App> app = world.started(copied());
    ASSERT_TRUE(drain(world, *app).ok());
  }
  EXPECT_EQ(world.copies(), (std::vector<Timestamp>{25, 25}));

  world.app_options.application_id = "fresh";
  ASSERT_TRUE(world.memory.admin().delete_records({"out", PartitionId(0)}, Offset(1)).ok());
  const std::unique_ptr<App> app = world.started(copied());
  EXPECT_EQ(run_to_error(world, *app).error().code(), Errc::kInvalidTimestamp);
}

}  // namespace
}  // namespace weir::test
