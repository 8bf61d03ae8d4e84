#include "tests/operators/session/session_world.h"

#include <stdexcept>

namespace weir {
namespace {

using testing::append;
using testing::broken;
using testing::SessionWorld;

TEST(SessionProcessor, HandlesEachSessionInOrderWithItsOwnState) {
  SessionWorld world;
  world.open(append);
  for (const std::string value : {"a", "b", "c"}) {
    world.send("paris", value);
    world.send("london", value + "!", {}, 1);
  }
  world.run_ok();

  const std::vector<std::string> replies = world.values("replies");
  EXPECT_EQ(std::vector<std::string>(replies.begin(), replies.end()).size(), 6U);
  for (const std::string expected : {"a", "ab", "abc", "a!", "a!b!", "a!b!c!"}) {
    EXPECT_EQ(std::count(replies.begin(), replies.end(), expected), 1) << expected;
  }
  EXPECT_EQ(world.committed(0), 3);
  EXPECT_EQ(world.committed(1), 3);
}

// S 2.12: a failed attempt leaves the last good value and no output; later records wait (C5).
TEST(SessionProcessor, C5_AFailedAttemptLeavesTheLastGoodValueAndNoOutput) {
  SessionWorld world;
  std::vector<std::uint32_t> attempts;
  world.open([&](const SessionRecord& record, SessionContext& context) {
    Outcome outcome = append(record, context);
    if (record.record.value.view() == "b") {
      attempts.push_back(record.attempt);
      if (record.attempt < 3) {
        return Outcome::retry(broken());
      }
    }
    return outcome;
  });
  world.send("s", "a");
  world.send("s", "b");
  world.send("s", "c");
  world.run_ok(200);

  EXPECT_EQ(world.values("replies"), (std::vector<std::string>{"a", "ab", "abc"}));
  EXPECT_EQ(attempts, (std::vector<std::uint32_t>{1, 2, 3}));
  EXPECT_EQ(world.processor->counts().retries, 2U);
  EXPECT_EQ(world.committed(), 3);
}

TEST(SessionProcessor, StateIsReadBackFromTheChangelog) {
  SessionWorld world;
  world.open(append);
  world.send("s", "a");
  world.send("t", "x", {}, 1);
  world.run_ok();
  world.close();

  world.open(append);
  world.send("s", "b");
  world.send("t", "y", {}, 1);
  world.run_ok();

  EXPECT_EQ(world.processor->counts().restored, 2U);
  const std::vector<std::string> replies = world.values("replies");
  EXPECT_EQ(std::count(replies.begin(), replies.end(), "ab"), 1);
  EXPECT_EQ(std::count(replies.begin(), replies.end(), "xy"), 1);
}

// A crash repeats what was not committed, from the last commit on and in order, and skips nothing.
TEST(SessionProcessor, C7_ACrashBeforeAnyCommitRepeatsAndSkipsNothing) {
  SessionWorld world;
  world.options.lanes.commit_interval = std::chrono::hours(1);
  std::vector<std::string> seen;
  const SessionHandler handler = [&](const SessionRecord& record, SessionContext& context) {
    seen.emplace_back(record.record.value.view());
    return append(record, context);
  };
  world.open(handler);
  world.send("s", "a");
  world.send("s", "b");
  world.run_ok(5);
  world.processor.reset();  // as a crash

  EXPECT_EQ(world.committed(), 0);
  world.open(handler);
  world.run_ok(5);
  EXPECT_EQ(seen, (std::vector<std::string>{"a", "b", "a", "b"}));
}

// The crash is between the changelog and the commit of the offsets: state counts nothing twice.
TEST(SessionProcessor, T47_SkipsWhatItsStateHasWhenOffsetsWereNotCommitted) {
  for (const bool skips_applied : {true, false}) {
    SessionWorld world;
    world.options.skips_applied = skips_applied;
    world.open(append);
    world.send("s", "a");
    world.send("s", "b");
    world.backend.fail_next(testing::MemoryBackend::FaultPoint::kCommit,
                            Error(Errc::kIo, "power went"));
    EXPECT_FALSE(world.run().ok());
    world.processor.reset();
    EXPECT_EQ(world.committed(), 0);

    world.open(append);
    world.send("s", "c");
    world.run_ok();
    EXPECT_EQ(world.values("replies").back(), skips_applied ? "abc" : "ababc");
    EXPECT_EQ(world.processor->counts().skipped_applied, skips_applied ? 2U : 0U);
  }
}

// What a flush could not make durable is not committed, also not by the close that follows.
TEST(SessionProcessor, C7_ALostOutputIsNeverCommitted) {
  SessionWorld world;
  world.open(append);
  world.send("s", "a");
  world.backend.fail_next(testing::MemoryBackend::FaultPoint::kFlush,
                          Error(Errc::kNoSpace, "disk is full"));
  const Status status = world.run();
  ASSERT_FALSE(status.ok());
  EXPECT_EQ(status.error().code(), Errc::kNoSpace);
  world.processor->close(SessionEngine::Close::kDrainQueued, std::chrono::seconds(1))
      .ignore("it says the same");
  EXPECT_EQ(world.committed(), 0);
}

TEST(SessionProcessor, AHandlerSeesEventIdAttemptAndFencingToken) {
  SessionWorld world;
  std::vector<std::string> ids;
  FencingToken fence;
  world.open([&](const SessionRecord& record, SessionContext&) {
    ids.emplace_back(record.event_id);
    fence = record.fence;
    return Outcome::ok();
  });
  Headers headers;
  headers.add("event.id", ByteView("order-17"));
  world.send("s", "a");
  world.send("s", "b", headers.view());
  world.run_ok();
  EXPECT_EQ(ids, (std::vector<std::string>{"chat/0/0", "order-17"}));
  EXPECT_GE(fence.generation, 0);
}

TEST(SessionProcessor, AHandlerIsAskedToStopAtItsTimeOut) {
  SessionWorld world;
  world.options.lanes.handler_timeout = std::chrono::milliseconds(100);
  std::vector<bool> asked;
  world.open([&](const SessionRecord&, SessionContext& context) {
    asked.push_back(context.is_stop_requested());
    world.clock.advance(std::chrono::milliseconds(100));
    asked.push_back(context.is_stop_requested());
    return Outcome::ok();
  });
  world.send("s", "a");
  world.run_ok();
  EXPECT_EQ(asked, (std::vector<bool>{false, true}));
}

TEST(SessionProcessor, T46_AnExceptionGoesThroughTheClassifier) {
  SessionWorld world;
  world.options.classify = [](const std::exception& thrown) {
    return Outcome::dead(Error(Errc::kHandlerThrew, thrown.what()));
  };
  world.open([](const SessionRecord&, SessionContext&) -> Outcome {
    throw std::invalid_argument("no such city");
  });
  world.send("s", "a");
  world.run_ok();
  EXPECT_EQ(world.processor->counts().dead_letters, 1U);
  EXPECT_EQ(world.committed(), 1);
}

TEST(SessionProcessor, AHandlerThatSaysStopEndsTheRoundsAndItsRecordIsNotFinished) {
  SessionWorld world;
  world.open([](const SessionRecord&, SessionContext&) {
    return Outcome::stop(Error(Errc::kInvalidConfig, "no key for the model"));
  });
  world.send("s", "a");
  const Status status = world.run();
  ASSERT_FALSE(status.ok());
  EXPECT_NE(status.error().message().find("no key for the model"), std::string::npos);
  EXPECT_EQ(world.committed(), 0);
}

TEST(SessionProcessor, RefusesWhatCannotWork) {
  SessionWorld world;
  const auto open_error = [&](SessionProcessorOptions options) {
    const auto opened = SessionProcessor::open(world.backend, world.clock, options, append);
    return opened.ok() ? std::string("opened") : opened.error().to_string();
  };
  SessionProcessorOptions spread = world.options;
  spread.lanes.dispatch = SessionDispatch::kSpread;
  EXPECT_NE(open_error(spread).find("session.dispatch=local"), std::string::npos);
  SessionProcessorOptions itself = world.options;
  itself.dead_letter_topic = "chat";
  EXPECT_NE(open_error(itself).find("dead letters"), std::string::npos);
  SessionProcessorOptions unknown = world.options;
  unknown.topics = {"nobody"};
  EXPECT_NE(open_error(unknown).find("nobody"), std::string::npos);
  SessionProcessorOptions output = world.options;
  output.outputs = {"nowhere"};
  EXPECT_NE(open_error(output).find("nowhere"), std::string::npos);
  SessionProcessorOptions reset = world.options;
  reset.auto_offset_reset = "newest";
  EXPECT_NE(open_error(reset).find("newest"), std::string::npos);
}

TEST(SessionProcessor, WithoutStateGetAndPutSayWhy) {
  SessionWorld world;
  world.options.has_state = false;
  world.options.lanes.dispatch = SessionDispatch::kSpread;
  world.options.lanes.workers = 2;
  Errc got{};
  Errc emitted{};
  world.open([&](const SessionRecord&, SessionContext& context) {
    got = context.get("text").error().code();
    emitted = context.emit(5, {}).error().code();
    return Outcome::ok();
  });
  world.send("s", "a");
  world.run_ok();
  EXPECT_EQ(got, Errc::kUnsupported);
  EXPECT_EQ(emitted, Errc::kInvalidArgument);
  EXPECT_EQ(world.committed(), 1);
}

// Sessions whose names and values' names run into each other are different sessions.
TEST(SessionProcessor, SessionsAndNamesOfValuesAreNotMixedUp) {
  SessionWorld world;
  std::vector<bool> absent;
  world.open([&](const SessionRecord& record, SessionContext& context) {
    const bool is_first = record.session.view() == "a";
    const std::string name = is_first ? "bc" : "c";
    absent.push_back(context.get(name)->is_null());
    EXPECT_TRUE(context.put(name, ByteView("x")).ok());
    return Outcome::ok();
  });
  world.send("a", "1");
  world.send("ab", "1");
  world.run_ok();
  EXPECT_EQ(absent, (std::vector<bool>{true, true}));
}

// --- What is refused

TEST(SessionProcessor, StateThatIsTooLargeIsRefusedAtOnceAndOnlyForItsRecord) {
  SessionWorld world;
  world.open([](const SessionRecord& record, SessionContext& context) {
    if (record.record.value.view() == "large") {
      const std::string large(1'000'001, 'x');
      if (Status put = context.put("text", ByteView(large)); !put.ok()) {
        return Outcome::dead(std::move(put).error());
      }
    }
    return append(record, context);
  });
  world.send("s", "a");
  world.send("s", "large");
  world.send("s", "b");
  world.send("t", "x");
  world.run_ok();
  std::vector<std::string> replies = world.values("replies");
  std::sort(replies.begin(), replies.end());
  EXPECT_EQ(replies, (std::vector<std::string>{"a", "ab", "x"}));
  EXPECT_EQ(world.values("chat.dlq"), (std::vector<std::string>{"large"}));
  EXPECT_EQ(world.committed(), 4);
}

// Outputs of an attempt whose state finds no room would be seen once an attempt.
TEST(SessionProcessor, C5_AnAttemptWhoseStateFindsNoRoomHasNoOutput) {
  SessionWorld world;
  world.options.state_bytes_max = 1 << 20;
  world.options.lanes.retry.attempts_max = 3;
  world.options.lanes.retry.backoff_base = std::chrono::milliseconds(1);
  world.open([](const SessionRecord& record, SessionContext& context) {
    const std::string large(400'000, 'x');
    const Status put = context.put(record.record.value.view(), ByteView(large));
    EXPECT_TRUE(put.ok());
    const RecordRef reply{.key = record.session, .value = record.record.value, .headers = {}};
    EXPECT_TRUE(context.emit(0, reply).ok());
    return Outcome::ok();
  });
  for (const char* value : {"a", "b", "c", "d", "e"}) {
    world.send("s", value);
  }
  world.run_ok(200);
  const auto replies = world.values("replies");
  const auto letters = world.values("chat.dlq");
  EXPECT_FALSE(letters.empty());
  EXPECT_EQ(replies.size() + letters.size(), 5U);
  for (const std::string& letter : letters) {
    EXPECT_EQ(std::count(replies.begin(), replies.end(), letter), 0) << letter;
  }
}

TEST(SessionProcessor, AClassifierThatThrowsIsARetry) {
  SessionWorld world;
  world.options.classify = [](const std::exception& exception) -> Outcome {
    throw std::runtime_error(std::string("cannot sort ") + exception.what());
  };
  world.open([](const SessionRecord& record, SessionContext& context) {
    if (record.attempt == 1) {
      throw std::runtime_error("first");
    }
    return append(record, context);
  });
  world.send("s", "a");
  world.run_ok(200);
  EXPECT_EQ(world.values("replies"), (std::vector<std::string>{"a"}));
}

TEST(SessionProcessor, RefusesOptionsThatContradictSkipsApplied) {
  {
    SessionWorld world;
    world.options.skips_applied = true;
    world.options.has_state = false;
    EXPECT_EQ(
        SessionProcessor::open(world.backend, world.clock, world.options, append).error().code(),
        Errc::kInvalidConfig);
  }
  {
    SessionWorld world;
    world.options.skips_applied = true;
    world.options.lanes.has_unordered_null_sessions = true;
    EXPECT_EQ(
        SessionProcessor::open(world.backend, world.clock, world.options, append).error().code(),
        Errc::kInvalidConfig);
  }
  {
    SessionWorld world;
    world.options.skips_applied = true;
    ASSERT_TRUE(
        world.backend.admin().create_topic({"lossy", 1, {{"weir.durability", "memory"}}}).ok());
    world.options.topics = {"lossy"};
    EXPECT_EQ(
        SessionProcessor::open(world.backend, world.clock, world.options, append).error().code(),
        Errc::kInvalidConfig);
  }
}

// A crash may keep a prefix of a flush: a mark in it has everything before it that it speaks of.
TEST(SessionProcessor, T47_WhatMarksARecordAsAppliedIsWrittenBehindWhatItWrote) {
  SessionWorld world;
  world.options.skips_applied = true;
  world.open([](const SessionRecord& record, SessionContext& context) {
    EXPECT_TRUE(context.put(record.record.value.view(), record.record.value).ok());
    return Outcome::ok();
  });
  for (const char* value : {"x", "y", "z"}) {
    world.send("s", value);
    world.send("a longer session", value);
  }
  world.run_ok(2);
  world.run_ok();
  bool is_behind = false;
  std::size_t marks = 0;
  const auto changelog = world.backend.records({"bots-chat-session-changelog", PartitionId(0)});
  for (const auto& record : changelog) {
    const std::size_t kind = 1 + (static_cast<unsigned char>((*record.key)[0]) - 1U);
    const bool is_mark = (*record.key)[kind] == 'a';
    marks += is_mark ? 1 : 0;
    EXPECT_TRUE(is_mark || !is_behind) << "a value stands behind a mark of its flush";
    is_behind = is_behind || is_mark;
  }
  EXPECT_EQ(marks, 2U);
  EXPECT_EQ(changelog.size(), 8U);
}

// The source is past a block that could not be taken: to poll on would be to commit over it.
TEST(SessionProcessor, C7_AnErrorOfARecordStaysUntilTheNextStart) {
  SessionWorld world;
  bool throws = true;
  world.options.lanes.extractor_id = 1;
  world.options.extractor = [&](const RecordBlock& block) {
    if (throws) {
      throw std::runtime_error("no session");
    }
    return std::vector<NullableBytes>(block.records.size(), NullableBytes("s"));
  };
  world.open(append);
  world.send("s", "a");
  EXPECT_FALSE(world.run().ok());
  throws = false;
  world.send("s", "b");
  EXPECT_FALSE(world.run().ok());
  (void)world.processor->close(SessionEngine::Close::kDrainQueued, std::chrono::seconds(1));
  EXPECT_EQ(world.committed(), 0);
  world.open(append);
  world.run_ok();
  EXPECT_EQ(world.values("replies").back(), "ab");
}

}  // namespace
}  // namespace weir
