#include "tests/support/log_fixture.h"

#include <weir/log/consumer.h>

#include <gtest/gtest.h>

namespace weir::log {
namespace {

using testing::LogFixture;
using Values = std::vector<std::string>;

const TopicPartition kLines{"lines", PartitionId(0)};

std::unique_ptr<Consumer> open(LogFixture& f, const std::string& group, const std::string& reset) {
  ConsumerOptions options;
  options.group_id = group;
  options.auto_offset_reset = reset;
  auto consumer = Consumer::open(*f.log, options);
  EXPECT_TRUE(consumer.ok());
  return std::move(*consumer);
}

Values poll(Consumer& consumer) {
  Values values;
  const auto batches = consumer.poll(Duration::zero());
  EXPECT_TRUE(batches.ok()) << (batches.ok() ? "" : batches.error().to_string());
  if (batches.ok()) {
    for (const Consumer::Batch& batch : *batches) {
      for (const RecordView& record : batch.block.records) {
        values.emplace_back(record.value.view());
      }
    }
  }
  return values;
}

// What each reset policy does without a committed offset.
TEST(Consumer, StartsWhereTheResetPolicySays) {
  LogFixture f;
  f.open();
  f.create("lines");
  f.send("lines", {"a", "b"});

  const auto earliest = open(f, "g1", "earliest");
  ASSERT_TRUE(earliest->assign({kLines}).ok());
  EXPECT_EQ(poll(*earliest), (Values{"a", "b"}));

  const auto latest = open(f, "g2", "latest");
  ASSERT_TRUE(latest->assign({kLines}).ok());
  EXPECT_EQ(poll(*latest), Values{});
  f.send("lines", {"c"});
  EXPECT_EQ(poll(*latest), (Values{"c"}));

  const auto none = open(f, "g3", "none");
  EXPECT_EQ(none->assign({kLines}).error().code(), Errc::kOffsetOutOfRange);
}

TEST(Consumer, GoesOnBehindItsCommit) {
  LogFixture f;
  f.open();
  f.create("lines");
  f.send("lines", {"a", "b"});
  {
    const auto consumer = open(f, "g", "earliest");
    ASSERT_TRUE(consumer->assign({kLines}).ok());
    EXPECT_EQ(poll(*consumer).size(), 2U);
    ASSERT_TRUE(consumer->commit().ok());
  }
  f.send("lines", {"c"});
  for (const char* reset : {"earliest", "latest", "none"}) {
    const auto consumer = open(f, "g", reset);
    ASSERT_TRUE(consumer->assign({kLines}).ok());
    EXPECT_EQ(consumer->committed(kLines).value()->offset, Offset(2));
    EXPECT_EQ(poll(*consumer), (Values{"c"})) << reset;
  }
}

TEST(Consumer, NeverMovesAnotherGroup) {
  LogFixture f;
  f.open();
  f.create("lines");
  f.send("lines", {"a"});
  const auto one = open(f, "one", "earliest");
  const auto other = open(f, "other", "earliest");
  ASSERT_TRUE(one->assign({kLines}).ok());
  ASSERT_TRUE(other->assign({kLines}).ok());
  poll(*one);
  ASSERT_TRUE(one->commit().ok());

  EXPECT_FALSE(other->committed(kLines)->has_value());
  EXPECT_EQ(poll(*other), (Values{"a"}));
}

TEST(Consumer, SeeksToOffsetsEndsAndTimes) {
  LogFixture f;
  f.open();
  f.create("lines");
  f.send("lines", {"a"});
  f.clock.advance(std::chrono::seconds(10));
  const Timestamp later = f.clock.now();
  f.send("lines", {"b"});
  const auto consumer = open(f, "", "latest");
  ASSERT_TRUE(consumer->assign({kLines}).ok());

  ASSERT_TRUE(consumer->seek_to_beginning(kLines).ok());
  EXPECT_EQ(poll(*consumer), (Values{"a", "b"}));
  ASSERT_TRUE(consumer->seek(kLines, Offset(1)).ok());
  EXPECT_EQ(poll(*consumer), (Values{"b"}));
  ASSERT_TRUE(consumer->seek_to_time(kLines, later).ok());
  EXPECT_EQ(poll(*consumer), (Values{"b"}));
  ASSERT_TRUE(consumer->seek_to_time(kLines, later + 1).ok());
  EXPECT_EQ(poll(*consumer), Values{});
  ASSERT_TRUE(consumer->seek_to_end(kLines).ok());
  EXPECT_EQ(consumer->position(kLines), Offset(2));
}

// cases.md N17, N47.
TEST(Consumer, FollowsThePolicyWhenItsPositionIsGone) {
  LogFixture f;
  f.open();
  f.create("lines", 1, {{"segment.bytes", "100"}});
  f.send("lines", {"0"});
  f.send("lines", {"1"});
  {
    const auto consumer = open(f, "g", "earliest");
    ASSERT_TRUE(consumer->assign({kLines}).ok());
    ASSERT_TRUE(consumer->seek(kLines, Offset(1)).ok());
    ASSERT_TRUE(consumer->commit().ok());
  }
  f.send("lines", {"2"});
  f.send("lines", {"3"});
  ASSERT_TRUE(f.log->admin().delete_records(kLines, Offset(3)).ok());
  f.send("lines", {"4"});

  const auto earliest = open(f, "g", "earliest");
  ASSERT_TRUE(earliest->assign({kLines}).ok());
  poll(*earliest);  // the position is put right
  EXPECT_EQ(poll(*earliest), (Values{"3", "4"}));

  const auto latest = open(f, "g", "latest");
  ASSERT_TRUE(latest->assign({kLines}).ok());
  poll(*latest);
  EXPECT_EQ(poll(*latest), Values{});

  const auto none = open(f, "g", "none");
  ASSERT_TRUE(none->assign({kLines}).ok());
  const auto polled = none->poll(Duration::zero());
  ASSERT_FALSE(polled.ok());
  EXPECT_EQ(polled.error().code(), Errc::kOffsetOutOfRange);
  for (const char* part : {"offset 1", "3", "5"}) {
    EXPECT_NE(polled.error().message().find(part), std::string::npos) << polled.error().message();
  }
}

TEST(Consumer, NamesItsMistakes) {
  LogFixture f;
  f.open();
  f.create("lines");
  const auto consumer = open(f, "", "earliest");
  EXPECT_EQ(consumer->seek(kLines, Offset(0)).error().code(), Errc::kInvalidArgument);
  EXPECT_EQ(consumer->commit().error().code(), Errc::kInvalidArgument);
  EXPECT_EQ(consumer->assign({{"nothing", PartitionId(0)}}).error().code(), Errc::kUnknownTopic);
  EXPECT_EQ(ConsumerOptions::parse({{"auto.offset.reset", "middle"}}).error().code(),
            Errc::kInvalidConfig);
}

}  // namespace
}  // namespace weir::log
