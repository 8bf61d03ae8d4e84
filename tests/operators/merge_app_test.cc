#include "tests/operators/support/app_world.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

// Streams of topics with different numbers of partitions in an application, on several threads.

namespace weir::test {
namespace {

using ::testing::HasSubstr;
using Text = std::string;

inline constexpr Topic<Text, Text> kNarrow{"narrow"};
inline constexpr Topic<Text, Text> kWide{"wide"};

struct MergeWorld : World {
  MergeWorld() {
    make_topic("narrow", 1);
    make_topic("wide", 4);
    make_topic("out", 2);
    make_topic("counted", 2);
    app_options = options("g");
    app_options.num_stream_threads = 2;
  }
  void send_everywhere(int records) {
    for (int i = 0; i < records; ++i) {
      for (std::int32_t p = 0; p < 4; ++p) {
        send("wide", p, "k" + std::to_string(i % 7));
      }
      send("narrow", 0, "k" + std::to_string(i % 7));
    }
  }
  void send(const Text& topic, std::int32_t partition, const Text& key) {
    produce(topic, partition,
            {{.key = ByteView(key), .value = ByteView("v"), .timestamp = 100, .headers = {}}});
    ++sent[key];
  }
  std::size_t written(const Text& topic) const {
    std::size_t count = 0;
    for (std::int32_t p = 0; p < partitions(topic); ++p) {
      count += memory.records({topic, PartitionId(p)}).size();
    }
    return count;
  }
  AppOptions app_options;
  Counts sent;
};

TEST(Merge, OfTopicsWithOneAndFourPartitionsLosesAndDoublesNothing) {
  MergeWorld world;
  StreamBuilder builder;
  builder.from(kNarrow).merge(builder.from(kWide)).to(Topic<Text, Text>{"out"});
  const std::unique_ptr<App> app = world.make_app(std::move(builder).build(), world.app_options);
  ASSERT_TRUE(app->start().ok());
  world.send_everywhere(50);
  ASSERT_TRUE(drain(world, *app).ok());

  EXPECT_EQ(world.written("out"), 250U);
}

TEST(Merge, BehindARepartitionCountsKeysOfAllPartitionsTogether) {
  MergeWorld world;
  StreamBuilder builder;
  builder.from(kNarrow)
      .merge(builder.from(kWide))
      .repartition({.name = "together", .partitions = 3})
      .group_by_key()
      .count(kCounts)
      .to_stream()
      .to(Topic<Text, std::int64_t>{"counted"});
  const Topology topology = std::move(builder).build();
  for (int life = 0; life < 3; ++life) {
    const std::unique_ptr<App> app = world.make_app(topology, world.app_options);
    ASSERT_TRUE(app->start().ok());
    world.send_everywhere(30);
    ASSERT_TRUE(drain(world, *app).ok());
    ASSERT_TRUE(app->stop(Duration(60'000'000'000)).ok());
  }
  EXPECT_EQ(world.last_counts("counted"), world.sent);
  EXPECT_EQ(world.last_counts("g-counts-changelog"), world.sent);
}

TEST(Merge, AggregatedWithoutRepartitionIsRefusedWithBothTopics) {
  MergeWorld world;
  StreamBuilder builder;
  builder.from(kNarrow)
      .merge(builder.from(kWide))
      .group_by_key()
      .count(kCounts)
      .to_stream()
      .to(Topic<Text, std::int64_t>{"counted"});
  const std::unique_ptr<App> app = world.make_app(std::move(builder).build(), world.app_options);

  const Status started = app->start();

  EXPECT_EQ(started.error().code(), Errc::kInvalidConfig);
  EXPECT_THAT(started.error().message(), HasSubstr("narrow (1 partitions)"));
  EXPECT_THAT(started.error().message(), HasSubstr("wide (4 partitions)"));
}

// A processor's state is by partition too.
TEST(Merge, ProcessedWithAStoreWithoutRepartitionIsRefused) {
  struct Ignore final : Processor<Text, Text> {
    void process(const Record<Text, Text>&) override {}
  };
  MergeWorld world;
  StreamBuilder builder;
  builder.from(kNarrow)
      .merge(builder.from(kWide))
      .process([] { return std::make_unique<Ignore>(); }, kCounts)
      .to(Topic<Text, Text>{"out"});
  const std::unique_ptr<App> app = world.make_app(std::move(builder).build(), world.app_options);

  EXPECT_EQ(app->start().error().code(), Errc::kInvalidConfig);
}

}  // namespace
}  // namespace weir::test
