#include "tests/operators/session/session_world.h"

#include <weir/operators/dead_letters.h>

namespace weir {
namespace {

using testing::append;
using testing::broken;
using testing::header;
using testing::SessionWorld;

class Redrives : public ::testing::Test {
 protected:
  Redrives() {
    world.open([this](const SessionRecord& record, SessionContext& context) {
      handled.emplace_back(record.record.value.view());
      ids.emplace_back(record.event_id);
      return is_down ? Outcome::dead(broken()) : append(record, context);
    });
  }
  RedriveResult redrive(RedriveOptions options = {}) {
    options.topic = "chat.dlq";
    held.clear();
    const auto result = redrive_dead_letters(
        world.backend, options, [this](const StoredDeadLetter& letter, std::string_view why) {
          if (!why.empty()) {
            held.push_back(std::string(letter.record.value.view_or_empty()) + ": " +
                           std::string(why));
          }
        });
    EXPECT_TRUE(result.ok()) << result.error().to_string();
    return *result;
  }
  RedriveResult execute(DeadLetterFilter filter = {}) {
    return redrive({.topic = {}, .filter = std::move(filter), .executes = true});
  }

  SessionWorld world;
  bool is_down = true;
  std::vector<std::string> handled;
  std::vector<std::string> ids;
  std::vector<std::string> held;
};

TEST_F(Redrives, SendsEachSessionsLettersBackInOrderAndOnce) {
  for (const std::string value : {"1", "2", "3"}) {
    world.send("s", "s" + value);
    world.send("t", "t" + value, {}, 1);
  }
  world.run_ok();
  is_down = false;

  EXPECT_EQ(redrive().redriven, 6U);  // says so, and does nothing
  world.run_ok();
  EXPECT_TRUE(world.values("replies").empty());

  EXPECT_EQ(execute().redriven, 6U);
  world.run_ok();
  const auto replies = world.values("replies");
  for (const std::string expected : {"s1", "s1s2", "s1s2s3", "t1", "t1t2", "t1t2t3"}) {
    EXPECT_EQ(std::count(replies.begin(), replies.end(), expected), 1) << expected;
  }
  const RedriveResult again = execute();
  EXPECT_EQ(again.redriven, 0U);
  EXPECT_EQ(again.already, 6U);
}

// S 2.13: the event id survives, so that an outside system can tell.
TEST_F(Redrives, KeepTheEventIdAndTheirPartition) {
  world.send("t", "x", {}, 1);
  world.run_ok();
  is_down = false;
  execute();
  world.run_ok();
  EXPECT_EQ(ids, (std::vector<std::string>{"chat/1/0", "chat/1/0"}));
  EXPECT_EQ(world.backend.records({"chat", PartitionId(1)}).size(), 2U);
}

TEST_F(Redrives, StopAfterThreeReturns) {
  world.send("s", "bad");
  world.run_ok();
  for (int i = 1; i <= 3; ++i) {
    EXPECT_EQ(execute().redriven, 1U) << i;
    world.run_ok();
  }
  const RedriveResult last = execute();
  EXPECT_EQ(last.redriven, 0U);
  EXPECT_EQ(last.held, 1U);
  ASSERT_EQ(held.size(), 1U);
  EXPECT_NE(held[0].find("3 times"), std::string::npos);
  const auto letters = world.records("chat.dlq");
  EXPECT_EQ(letters.size(), 4U);
  EXPECT_EQ(header(letters.back(), "__session.dlq.redrive.count"), "3");
  EXPECT_EQ(header(letters.back(), "__session.dlq.event.id"), "chat/0/0");
  EXPECT_EQ(header(letters.back(), "__session.dlq.offset"), "0");
}

TEST_F(Redrives, ChooseOneSession) {
  world.send("s", "s1");
  world.send("t", "t1");
  world.run_ok();
  is_down = false;
  EXPECT_EQ(execute({.session = "t", .reason = {}}).redriven, 1U);
  world.run_ok();
  EXPECT_EQ(world.values("replies"), std::vector<std::string>{"t1"});
}

// A letter that stays holds back the later ones of its session, and of no other.
TEST_F(Redrives, ALetterThatStaysHoldsBackItsSession) {
  const std::unique_ptr<RecordSink> sink = std::move(world.backend.make_sink({})).value();
  const SinkTopicInfo topic = std::move(sink->open_topic("chat.dlq")).value();
  const auto put = [&](const std::string& session, const std::string& value, bool is_whole) {
    Headers headers;
    headers.add("__session.dlq.topic", ByteView("chat"));
    headers.add("__session.dlq.partition", ByteView("0"));
    headers.add("__session.dlq.session", ByteView(session));
    headers.add("__session.dlq.reason", ByteView("permanent"));
    if (!is_whole) {
      headers.add("__session.dlq.value.omitted", ByteView("true"));
    }
    const RecordRef record{
        .key = ByteView(session), .value = ByteView(value), .headers = headers.view()};
    ASSERT_TRUE(sink->send(topic.handle, PartitionId(0), {&record, 1}).ok());
  };
  put("s", "large", false);
  put("s", "later", true);
  put("t", "other", true);
  const RecordRef foreign{.key = ByteView("u"), .value = ByteView("foreign"), .headers = {}};
  ASSERT_TRUE(sink->send(topic.handle, PartitionId(0), {&foreign, 1}).ok());
  ASSERT_TRUE(sink->flush().ok());

  const RedriveResult result = execute();
  EXPECT_EQ(result.redriven, 1U);
  EXPECT_EQ(result.held, 3U);
  EXPECT_NE(held[1].find("later: an earlier letter"), std::string::npos);
  EXPECT_EQ(execute({.session = {}, .reason = "exhausted"}).redriven, 0U);
}

TEST_F(Redrives, WithoutTheTopicSaySo) {
  const auto result = redrive_dead_letters(world.backend, {.topic = "no.dlq", .filter = {}},
                                           [](const StoredDeadLetter&, std::string_view) {});
  ASSERT_FALSE(result.ok());
  EXPECT_EQ(result.error().code(), Errc::kUnknownTopic);
}

}  // namespace
}  // namespace weir
