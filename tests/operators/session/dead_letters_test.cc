#include "operators/session/dead_letter_headers.h"
#include "tests/operators/session/session_world.h"

#include <weir/runtime/endian.h>

namespace weir {
namespace {

using testing::append;
using testing::broken;
using testing::header;
using testing::SessionWorld;

Outcome refuse_bad(const SessionRecord& record, SessionContext& context) {
  return record.record.value.view().starts_with("bad") ? Outcome::dead(broken())
                                                       : append(record, context);
}

// S 2.9: key, value, timestamp and all own headers byte for byte, KP #274.
TEST(SessionDeadLetters, T44_ARecordIsKeptByteForByteWithAllItsHeaders) {
  SessionWorld world;
  world.open(refuse_bad);
  Headers headers;
  headers.add("traceparent", ByteView("00-4bf9-01"));
  headers.add("twice", ByteView("1"));
  headers.add("twice", {});
  headers.add("", ByteView(std::string("\0\xff", 2)));
  world.send("s", std::string("bad\0\xff", 5), headers.view());
  world.run_ok();

  const auto letters = world.records("chat.dlq");
  ASSERT_EQ(letters.size(), 1U);
  EXPECT_EQ(letters[0].key, "s");
  EXPECT_EQ(letters[0].value, std::string("bad\0\xff", 5));
  EXPECT_EQ(letters[0].timestamp, 77);
  EXPECT_TRUE(letters[0].headers.view().encoded().starts_with(headers.view().encoded()));
}

TEST(SessionDeadLetters, CanonicalHeadersSayWhereAndWhy) {
  SessionWorld world;
  world.options.app_version = "1.2";
  world.options.lanes.retry.attempts_max = 2;
  world.options.lanes.retry.backoff_base = std::chrono::milliseconds(10);
  world.options.lanes.retry.jitter = 0;
  world.open([](const SessionRecord&, SessionContext&) { return Outcome::retry(broken()); });
  const Timestamp began = world.clock.now();
  world.send("other", "x");
  world.send("s", "bad");
  world.run_ok(100);

  const auto letters = world.records("chat.dlq");
  ASSERT_EQ(letters.size(), 2U);
  const auto& letter = letters[0].key == "s" ? letters[0] : letters[1];
  const std::map<std::string, std::string> expected{{"event.id", "chat/0/1"},
                                                    {"session", "s"},
                                                    {"topic", "chat"},
                                                    {"partition", "0"},
                                                    {"offset", "1"},
                                                    {"timestamp", "77"},
                                                    {"group", "bots"},
                                                    {"attempts", "2"},
                                                    {"reason", "exhausted"},
                                                    {"app.id", "bots"},
                                                    {"app.version", "1.2"},
                                                    {"error.class", "REQUEST_TIMED_OUT"},
                                                    {"error.message", "the model is down"}};
  for (const auto& [name, value] : expected) {
    EXPECT_EQ(header(letter, "__session.dlq." + name), value) << name;
  }
  const std::int64_t first = std::stoll(header(letter, "__session.dlq.first.failure.ts"));
  const std::int64_t last = std::stoll(header(letter, "__session.dlq.last.failure.ts"));
  EXPECT_GE(first, began);
  EXPECT_GE(last - first, 10);
  EXPECT_EQ(header(letter, "__session.dlq.quarantine.head"), "(absent)");
  // Kafka's share groups by default too (KIP-1191).
  EXPECT_EQ(header(letter, "__dlq.errors.topic"), "chat");
  EXPECT_EQ(header(letter, "__dlq.errors.partition"), "0");
  EXPECT_EQ(header(letter, "__dlq.errors.offset"), "1");
  EXPECT_EQ(header(letter, "__dlq.errors.group"), "bots");
  EXPECT_EQ(header(letter, "__dlq.errors.delivery.count"), "2");
  EXPECT_EQ(header(letter, "__dlq.errors.message"), "the model is down");
  EXPECT_EQ(header(letter, "kafka_dlt-original-topic"), "(absent)");
}

TEST(SessionDeadLetters, OtherFamiliesAreWrittenWhenTheyAreChosen) {
  SessionWorld world;
  world.options.dead_letter_headers = 0xff;
  world.open(refuse_bad);
  world.send("s", "bad");
  world.run_ok();

  const auto letters = world.records("chat.dlq");
  ASSERT_EQ(letters.size(), 1U);
  const std::map<std::string, std::string> expected{
      {"__streams.errors.exception", "REQUEST_TIMED_OUT"},
      {"__streams.errors.message", "the model is down"},
      {"__streams.errors.topic", "chat"},
      {"__streams.errors.partition", "0"},
      {"__streams.errors.offset", "0"},
      {"__connect.errors.topic", "chat"},
      {"__connect.errors.partition", "0"},
      {"__connect.errors.offset", "0"},
      {"__connect.errors.connector.name", "bots"},
      {"__connect.errors.stage", "TASK_PUT"},
      {"__connect.errors.exception.class.name", "REQUEST_TIMED_OUT"},
      {"__connect.errors.exception.message", "the model is down"},
      {"kafka_dlt-original-topic", "chat"},
      {"kafka_dlt-original-partition", std::string(4, '\0')},
      {"kafka_dlt-original-offset", std::string(8, '\0')},
      {"kafka_dlt-original-timestamp", std::string("\0\0\0\0\0\0\0\x4d", 8)},
      {"kafka_dlt-original-timestamp-type", "CREATE_TIME"},
      {"kafka_dlt-original-consumer-group", "bots"},
      {"kafka_dlt-exception-fqcn", "REQUEST_TIMED_OUT"},
      {"kafka_dlt-exception-message", "the model is down"},
      {"kafka_deliveryAttempt", std::string("\0\0\0\x1", 4)}};
  for (const auto& [name, value] : expected) {
    EXPECT_EQ(header(letters[0], name), value) << name;
  }
}

// SP #1700: one session in one partition, however many there are.
TEST(SessionDeadLetters, T38_ASessionsLettersAreInOnePartitionInOrder) {
  SessionWorld world;
  world.options.dead_letter_topic = "lost";
  ASSERT_TRUE(world.backend.admin().create_topic({"lost", 2, {}}).ok());
  world.open(refuse_bad);
  for (int i = 0; i < 5; ++i) {
    for (const std::string session : {"a", "b", "c", "d", "e", "f"}) {
      world.send(session, "bad" + std::to_string(i), {}, session < "d" ? 0 : 1);
    }
  }
  world.run_ok();

  std::map<std::string, std::vector<std::string>> by_session;
  std::map<std::string, std::int32_t> partition_of;
  int used = 0;
  for (std::int32_t partition = 0; partition < 2; ++partition) {
    const auto letters = world.backend.records({"lost", PartitionId(partition)});
    used += letters.empty() ? 0 : 1;
    for (const auto& letter : letters) {
      EXPECT_EQ(partition_of.emplace(*letter.key, partition).first->second, partition);
      by_session[*letter.key].push_back(*letter.value);
    }
  }
  EXPECT_EQ(used, 2);
  EXPECT_EQ(by_session.size(), 6U);
  for (const auto& [session, values] : by_session) {
    EXPECT_EQ(values, (std::vector<std::string>{"bad0", "bad1", "bad2", "bad3", "bad4"}))
        << session;
  }
}

// KP #217: a letter that is not durable keeps its offset pending, and its session waits.
TEST(SessionDeadLetters, T43_AFailedWriteKeepsTheOffsetPendingAndTheSessionWaiting) {
  SessionWorld world;
  world.options.lanes.retry.backoff_base = std::chrono::milliseconds(200);
  world.options.lanes.retry.jitter = 0;
  world.open(refuse_bad);
  world.send("s", "bad");
  world.send("s", "good");
  world.backend.fail_next(testing::MemoryBackend::FaultPoint::kFlush,
                          Error(Errc::kNoSpace, "disk is full"));
  world.run_ok(20);  // 100 ms

  EXPECT_EQ(world.committed(), 0);
  EXPECT_TRUE(world.values("replies").empty());
  EXPECT_EQ(world.processor->counts().letter_failures, 1U);
  EXPECT_EQ(world.processor->counts().dead_letters, 0U);
  EXPECT_EQ(world.processor->stuck(10).front().offset, Offset(0));

  world.run_ok(60);
  EXPECT_EQ(world.processor->counts().dead_letters, 1U);
  EXPECT_EQ(world.values("replies"), std::vector<std::string>{"good"});
  EXPECT_EQ(world.committed(), 2);
}

// P6: quarantine keeps the order, all of the session's later records follow the first in order.
TEST(SessionDeadLetters, P6_T33_LaterRecordsOfAQuarantinedSessionFollowInOrder) {
  SessionWorld world;
  world.options.lanes.retry.on_exhausted = OnExhausted::kQuarantine;
  world.open(refuse_bad);
  world.send("s", "first");
  for (const std::string value : {"bad", "2", "3"}) {
    world.send("s", value);
  }
  world.send("t", "healthy");
  world.run_ok();
  world.send("s", "4");
  world.run_ok();

  EXPECT_EQ(world.values("chat.dlq"), (std::vector<std::string>{"bad", "2", "3", "4"}));
  const auto letters = world.records("chat.dlq");
  EXPECT_EQ(header(letters[0], "__session.dlq.reason"), "permanent");
  EXPECT_EQ(header(letters[0], "__session.dlq.quarantine.head"), "chat/0/1");
  for (std::size_t i = 1; i < letters.size(); ++i) {
    EXPECT_EQ(header(letters[i], "__session.dlq.reason"), "quarantined");
    EXPECT_EQ(header(letters[i], "__session.dlq.quarantine.head"), "chat/0/1");
  }
  const std::vector<std::string> replies = world.values("replies");
  EXPECT_EQ(replies.size(), 2U);
  EXPECT_EQ(world.committed(), 6);
}

// A redriven record that dies again keeps event id, coordinates and count; the rest is of today.
TEST(SessionDeadLetters, ARedrivenRecordKeepsItsFirstCoordinates) {
  Headers given;
  given.add("own", ByteView("1"));
  given.add("__session.dlq.event.id", ByteView("chat/3/8"));
  given.add("__session.dlq.offset", ByteView("8"));
  given.add("__session.dlq.reason", ByteView("exhausted"));
  given.add("__dlq.errors.offset", ByteView("8"));
  given.add("__session.dlq.redrive.count", ByteView("1"));
  const RecordView record{.key = ByteView("s"),
                          .value = ByteView("v"),
                          .offset = Offset(20),
                          .timestamp = 5,
                          .headers = given.view()};
  const TopicPartition source{"chat", PartitionId(3)};
  const DeadLetter letter{.record = &record,
                          .session = ByteView("s"),
                          .reason = DeadLetterReason::kPermanent,
                          .attempts = 1,
                          .cause = "INVALID_RECORD: no city"};
  const Headers headers = internal::dead_letter_headers(
      letter, {.source = source,
               .group = "g",
               .app_id = "g",
               .app_version = {},
               .quarantine_head = {},
               .families = DeadLetterHeaders::kSession | DeadLetterHeaders::kDlq});
  std::map<std::string, std::vector<std::string>> all;
  for (const HeaderView& entry : headers.view()) {
    all[std::string(entry.name)].emplace_back(entry.value.view_or_empty());
  }
  EXPECT_EQ(all["own"], std::vector<std::string>{"1"});
  EXPECT_EQ(all["__session.dlq.event.id"], std::vector<std::string>{"chat/3/8"});
  EXPECT_EQ(all["__session.dlq.offset"], std::vector<std::string>{"8"});
  EXPECT_EQ(all["__session.dlq.reason"], std::vector<std::string>{"permanent"});
  EXPECT_EQ(all["__session.dlq.redrive.count"], std::vector<std::string>{"1"});
  EXPECT_EQ(all["__dlq.errors.offset"], std::vector<std::string>{"20"});
}

// D10: whatever a handler says and however long a session is, our headers stay below 8 KiB.
TEST(SessionDeadLetters, HeadersHaveABound) {
  const std::string session(100'000, 's');
  const std::string topic(249, 't');
  const RecordView record{.key = ByteView(session), .offset = Offset(1)};
  const TopicPartition source{topic, PartitionId(0)};
  const DeadLetter letter{.record = &record,
                          .session = ByteView(session),
                          .attempts = 1,
                          .cause = std::string(100, 'c') + ": " + std::string(100'000, 'm')};
  const Headers headers = internal::dead_letter_headers(letter, {.source = source,
                                                                 .group = topic,
                                                                 .app_id = topic,
                                                                 .app_version = "1",
                                                                 .quarantine_head = session,
                                                                 .families = 0xff});
  EXPECT_LE(headers.view().encoded().size(), 8U << 10U);
  EXPECT_TRUE(headers.view().last("__session.dlq.session.omitted").has_value());
}

}  // namespace
}  // namespace weir
