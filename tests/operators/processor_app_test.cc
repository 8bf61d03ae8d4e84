#include "tests/operators/support/app_world.h"

#include <weir/runtime/endian.h>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>
#include <stdexcept>

// Processors in an application: their stores through restarts, their timers, their commits
// (streams-features 2.15).

namespace weir::test {
namespace {

using std::chrono::milliseconds;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Pair;
using Text = std::string;

inline constexpr Topic<Text, Text> kIn{"in"};
inline constexpr Topic<Text, Text> kOut{"out"};
inline constexpr KvStore<Text, std::int64_t> kSeen{"seen"};
inline constexpr KvStore<Text, std::int64_t> kOther{"other"};

using Made = Processor<Text, Text>;
using Context = Made::Context;

// A processor of two functions.
struct Steps {
  std::function<void(Context&)> init = [](Context&) {};
  std::function<void(Context&, const Record<Text, Text>&)> process =
      [](Context&, const Record<Text, Text>&) {};
};
class Scripted final : public Made {
 public:
  explicit Scripted(Steps steps) : steps_(std::move(steps)) {}
  void init(Context& context) override {
    context_ = &context;
    steps_.init(context);
  }
  void process(const Record<Text, Text>& record) override { steps_.process(*context_, record); }

 private:
  Steps steps_;
  Context* context_ = nullptr;
};

template <class... Stores>
Topology scripted(const Steps& steps, Stores... stores) {
  StreamBuilder builder;
  builder.from(kIn)
      .process([steps] { return std::make_unique<Scripted>(steps); }, stores...)
      .to(kOut);
  return std::move(builder).build();
}

struct ProcessorWorld : World {
  ProcessorWorld() {
    make_topic("in", 1);
    make_topic("out", 1);
    app_options = options("p");
  }
  std::unique_ptr<App> started(const Topology& topology) {
    std::unique_ptr<App> app = make_app(topology, app_options);
    const Status status = app->start();
    EXPECT_TRUE(status.ok()) << status.error().to_string();
    return app;
  }
  void send(const Text& key, const Text& value, Timestamp timestamp) {
    produce(
        "in", 0,
        {{.key = ByteView(key), .value = ByteView(value), .timestamp = timestamp, .headers = {}}});
  }
  std::vector<std::pair<Text, Text>> out() const { return texts("out"); }
  std::vector<std::pair<Text, Text>> texts(const Text& topic) const {
    std::vector<std::pair<Text, Text>> all;
    for (const auto& record : memory.records({topic, PartitionId(0)})) {
      all.emplace_back(record.key.value_or("-"), record.value.value_or("-"));
    }
    return all;
  }
  AppOptions app_options;
};

Status idle(World& world, App& app, int steps) {
  const Status stepped = step_until(world, app, [] { return false; }, steps);
  return stepped.error().code() == Errc::kTimedOut ? Status() : stepped;
}

const auto kCountInStore = [](Context& context, const Record<Text, Text>& record) {
  auto seen = context.store(kSeen);
  seen.put(record.key, seen.get(record.key).value_or(0) + 1);
  context.forward({record.key, std::to_string(seen.get(record.key).value()), record.timestamp, {}});
};

class ProcessorStore : public ::testing::TestWithParam<const char*> {};

TEST_P(ProcessorStore, ReadsItsOwnWritesAndWhatWasCommittedBeforeARestart) {
  ProcessorWorld world;
  world.app_options.store_mode = GetParam();
  const Topology topology = scripted({.process = kCountInStore}, kSeen);
  for (int life = 0; life < 3; ++life) {
    const std::unique_ptr<App> app = world.started(topology);
    world.send("a", "", 1 + life);
    world.send("b", "", 1 + life);
    world.send("a", "", 1 + life);
    ASSERT_TRUE(drain(world, *app).ok());
  }
  EXPECT_THAT(world.out(), ElementsAre(Pair("a", "1"), Pair("b", "1"), Pair("a", "2"),
                                       Pair("a", "3"), Pair("b", "2"), Pair("a", "4"),
                                       Pair("a", "5"), Pair("b", "3"), Pair("a", "6")));
}

// Kafka Streams calls init() when the stores are restored.
TEST_P(ProcessorStore, IsRestoredWhenInitIsCalled) {
  ProcessorWorld world;
  world.app_options.store_mode = GetParam();
  world.app_options.checkpoint_interval_ms = 86'400'000;  // all is in the changelog
  const Topology first = scripted({.process = kCountInStore}, kSeen);
  {
    const std::unique_ptr<App> app = world.started(first);
    world.send("a", "", 1);
    ASSERT_TRUE(drain(world, *app).ok());
  }
  std::vector<std::int64_t> found;
  const Topology second =
      scripted({.init =
                    [&found](Context& context) {
                      found.push_back(context.store(kSeen).put_if_absent("a", 100).value_or(0));
                    },
                .process = kCountInStore},
               kSeen);
  const std::unique_ptr<App> app = world.started(second);
  world.send("a", "", 2);
  ASSERT_TRUE(drain(world, *app).ok());

  EXPECT_THAT(found, ElementsAre(1));
  EXPECT_THAT(world.out(), ElementsAre(Pair("a", "1"), Pair("a", "2")));
}

INSTANTIATE_TEST_SUITE_P(Modes, ProcessorStore, ::testing::Values("hot", "memory", "direct"));

TEST(ProcessorInit, ForwardsAndWritesWhatItForwardsAndWrites) {
  ProcessorWorld world;
  const Topology topology = scripted({.init =
                                          [](Context& context) {
                                            context.store(kSeen).put("init", 7, 5);
                                            context.forward({"init", "hello", 5, {}});
                                            context.request_commit();
                                          }},
                                     kSeen);
  const std::unique_ptr<App> app = world.started(topology);
  ASSERT_TRUE(idle(world, *app, 30).ok());

  EXPECT_THAT(world.out(), ElementsAre(Pair("init", "hello")));
  EXPECT_EQ(world.last_counts("p-seen-changelog"), (Counts{{"init", 7}}));
}

TEST(ProcessorInit, ThatThrowsStopsTheApplicationWithItsMessage) {
  ProcessorWorld world;
  const Topology topology =
      scripted({.init = [](Context&) { throw std::runtime_error("no configuration"); }});
  const std::unique_ptr<App> app = world.started(topology);

  EXPECT_EQ(step_until(world, *app, [] { return false; }, 50).error().code(), Errc::kHandlerThrew);
  EXPECT_EQ(app->state(), AppState::kError);
  EXPECT_THAT(app->error().error().message(), HasSubstr("no configuration"));
}

TEST(ProcessorStores, AStoreThatWasNotGivenStopsTheApplicationAndNamesBoth) {
  ProcessorWorld world;
  bool is_usable = true;
  const Topology topology =
      scripted({.process =
                    [&is_usable](Context& context, const Record<Text, Text>& record) {
                      auto view = context.store(kOther);
                      is_usable = static_cast<bool>(view);
                      view.put(record.key, 1);
                      EXPECT_EQ(view.get(record.key), std::nullopt);
                      view.for_each([](const Text&, std::int64_t, Timestamp) { FAIL(); });
                    }},
               kSeen);
  const std::unique_ptr<App> app = world.started(topology);
  world.send("a", "", 1);

  EXPECT_EQ(
      step_until(world, *app, [] { return false; }, 50).error().code(), Errc::kInvalidArgument);
  EXPECT_FALSE(is_usable);
  EXPECT_THAT(app->error().error().message(), HasSubstr("other"));
  EXPECT_THAT(app->error().error().message(), HasSubstr("KSTREAM-PROCESSOR-"));
  EXPECT_EQ(app->committed_offsets().at({"in", PartitionId(0)}), Offset(0));
}

// What is written while an iterator is open is seen or not; nothing else changes.
TEST(ProcessorStores, MayBeWrittenWhileTheyAreIterated) {
  ProcessorWorld world;
  const Topology topology =
      scripted({.process =
                    [](Context& context, const Record<Text, Text>& record) {
                      auto seen = context.store(kSeen);
                      if (record.value == "fill") {
                        for (int i = 0; i < 500; ++i) {
                          seen.put("k" + std::to_string(1000 + i), i);
                        }
                        return;
                      }
                      std::int64_t visited = 0;
                      seen.for_each([&](const Text& key, std::int64_t value, Timestamp) {
                        ++visited;
                        seen.put(key, value + 1000);
                        seen.erase("k" + std::to_string(1000 + (value * 7) % 500) + "none");
                        if (value % 5 == 0 && value < 500) {
                          seen.erase(key);
                        }
                      });
                      context.forward({record.key, std::to_string(visited), record.timestamp, {}});
                    }},
               kSeen);
  const std::unique_ptr<App> app = world.started(topology);
  world.send("a", "fill", 1);
  world.send("a", "walk", 2);
  ASSERT_TRUE(drain(world, *app).ok());

  EXPECT_THAT(world.out(), ElementsAre(Pair("a", "500")));
  Counts expected;
  for (int i = 0; i < 500; ++i) {
    if (i % 5 != 0) {
      expected["k" + std::to_string(1000 + i)] = i + 1000;
    }
  }
  EXPECT_EQ(world.last_counts("p-seen-changelog"), expected);
}

// ---- timers ------------------------------------------------------------------------------------

Steps ticking(PunctuationType type, Duration interval) {
  return {.init = [=](Context& context) {
    context.schedule(interval, type, [&context](Timestamp time) {
      auto seen = context.store(kSeen);
      seen.put("tick", seen.get("tick").value_or(0) + 1);
      const RecordContext record = context.record_context();
      context.forward({"tick",
                       std::to_string(seen.get("tick").value()) + "@" + std::to_string(time) +
                           std::string(record.topic) + std::to_string(record.partition.value()),
                       time,
                       {}});
    });
  }};
}

TEST(WallClockPunctuator, FiresWithoutInputAndItsOutputAndStateAreCommitted) {
  ProcessorWorld world;
  const Timestamp begin = world.clock.now();
  const Topology topology =
      scripted(ticking(PunctuationType::kWallClockTime, milliseconds(1000)), kSeen);
  {
    const std::unique_ptr<App> app = world.started(topology);
    ASSERT_TRUE(idle(world, *app, 300).ok());  // 3 s
  }
  ASSERT_GE(world.out().size(), 2U);
  EXPECT_EQ(world.out().front().second.substr(0, 2), "1@");
  const Timestamp fired = std::stoll(world.out().front().second.substr(2));
  EXPECT_GE(fired, begin + 1000);
  EXPECT_LE(fired, begin + 1100);
  const auto ticks = static_cast<std::int64_t>(world.out().size());
  EXPECT_EQ(world.last_counts("p-seen-changelog"), (Counts{{"tick", ticks}}));

  const std::unique_ptr<App> app = world.started(topology);
  ASSERT_TRUE(idle(world, *app, 150).ok());
  EXPECT_EQ(world.last_counts("p-seen-changelog"), (Counts{{"tick", ticks + 1}}));
}

// PUN-2: once, however many intervals have passed; then at the next multiple.
TEST(WallClockPunctuator, FiresOnceBehindALongPause) {
  ProcessorWorld world;
  const std::unique_ptr<App> app =
      world.started(scripted(ticking(PunctuationType::kWallClockTime, milliseconds(1000)), kSeen));
  ASSERT_TRUE(idle(world, *app, 5).ok());
  world.clock.advance(milliseconds(10'450));
  ASSERT_TRUE(idle(world, *app, 15).ok());

  EXPECT_EQ(world.out().size(), 1U);
}

// PUN-1, EV-PUN: records at 0, 5, 9, 10, 11, 100 with interval 10 fire at 0, 10, 100.
TEST(StreamTimePunctuator, FiresAsRecordsMoveStreamTime) {
  ProcessorWorld world;
  const std::unique_ptr<App> app =
      world.started(scripted(ticking(PunctuationType::kStreamTime, milliseconds(10)), kSeen));
  for (const Timestamp time : {0, 5, 9, 10, 11, 100}) {
    world.send("a", "", time);
  }
  ASSERT_TRUE(drain(world, *app).ok());

  EXPECT_THAT(world.out(),
              ElementsAre(Pair("tick", "1@0-1"), Pair("tick", "2@10-1"), Pair("tick", "3@100-1")));
}

TEST(StreamTimePunctuator, GoesOnFromTheCommittedStreamTimeBehindARestart) {
  ProcessorWorld world;
  const Topology topology =
      scripted(ticking(PunctuationType::kStreamTime, milliseconds(10)), kSeen);
  {
    const std::unique_ptr<App> app = world.started(topology);
    world.send("a", "", 105);
    ASSERT_TRUE(drain(world, *app).ok());
  }
  const std::unique_ptr<App> app = world.started(topology);
  world.send("a", "", 3);  // late: stream time stays 105
  ASSERT_TRUE(drain(world, *app).ok());

  EXPECT_THAT(world.out(), ElementsAre(Pair("tick", "1@105-1"), Pair("tick", "2@105-1")));
}

TEST(Punctuator, IsCancelledByItsOwnFunction) {
  ProcessorWorld world;
  int fired = 0;
  auto timer = std::make_shared<Punctuation>();
  const std::unique_ptr<App> app = world.started(scripted({.init = [&, timer](Context& context) {
    *timer = context.schedule(milliseconds(10), PunctuationType::kWallClockTime,
                              [&fired, timer](Timestamp) {
                                if (++fired == 3) {
                                  timer->cancel();
                                }
                              });
  }}));
  ASSERT_TRUE(idle(world, *app, 50).ok());

  EXPECT_EQ(fired, 3);
}

TEST(Punctuator, ThatThrowsStopsTheApplicationAndNothingOfTheIntervalIsCommitted) {
  ProcessorWorld world;
  world.app_options.commit_interval_ms = 86'400'000;
  const std::unique_ptr<App> app = world.started(
      scripted({.init =
                    [](Context& context) {
                      context.schedule(milliseconds(50), PunctuationType::kWallClockTime,
                                       [](Timestamp) { throw std::runtime_error("tick broke"); });
                    },
                .process = kCountInStore},
               kSeen));
  world.send("a", "", 1);

  EXPECT_EQ(step_until(world, *app, [] { return false; }, 50).error().code(), Errc::kHandlerThrew);
  EXPECT_THAT(app->error().error().message(), HasSubstr("tick broke"));
  EXPECT_THAT(app->error().error().message(), HasSubstr("punctuator"));
  EXPECT_THAT(app->error().error().message(), HasSubstr("0_0"));
  EXPECT_EQ(app->committed_offsets().at({"in", PartitionId(0)}), Offset(0));
  EXPECT_TRUE(world.last_counts("p-seen-changelog").empty());
}

TEST(Punctuator, ThatThrowsIsSkippedAndCountedWhenThePolicySaysSo) {
  ProcessorWorld world;
  world.make_topic("dead", 1);
  world.app_options.processing_exception_handler = "continue";
  world.app_options.dead_letter_topic = "dead";
  const std::unique_ptr<App> app = world.started(scripted({.init = [](Context& context) {
    context.schedule(milliseconds(100), PunctuationType::kWallClockTime,
                     [](Timestamp) { throw std::runtime_error("tick broke"); });
  }}));
  ASSERT_TRUE(idle(world, *app, 35).ok());

  EXPECT_THAT(app->metrics().prometheus_text(),
              HasSubstr("weir_task_dropped_records_total{task=\"0_0\"} 3"));
  EXPECT_THAT(world.texts("dead"), ElementsAre(Pair("-", "-"), Pair("-", "-"), Pair("-", "-")));
}

TEST(RequestCommit, CommitsAtTheNextChance) {
  ProcessorWorld world;
  world.app_options.commit_interval_ms = 86'400'000;
  const std::unique_ptr<App> app =
      world.started(scripted({.process =
                                  [](Context& context, const Record<Text, Text>& record) {
                                    kCountInStore(context, record);
                                    if (record.value == "commit") {
                                      context.request_commit();
                                    }
                                  }},
                             kSeen));
  world.send("a", "", 1);
  ASSERT_TRUE(idle(world, *app, 20).ok());
  EXPECT_EQ(app->committed_offsets().at({"in", PartitionId(0)}), Offset(0));

  world.send("a", "commit", 2);
  ASSERT_TRUE(idle(world, *app, 20).ok());
  EXPECT_EQ(app->committed_offsets().at({"in", PartitionId(0)}), Offset(2));
  EXPECT_EQ(world.last_counts("p-seen-changelog"), (Counts{{"a", 2}}));

  world.send("a", "", 3);
  ASSERT_TRUE(idle(world, *app, 20).ok());
  EXPECT_EQ(app->committed_offsets().at({"in", PartitionId(0)}), Offset(2));
}

}  // namespace
}  // namespace weir::test
