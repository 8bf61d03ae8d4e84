#include "tests/operators/session/session_world.h"

#include <weir/operators/async_session.h>
#include <weir/runtime/thread_annotations.h>

#include <boost/asio/buffer.hpp>
#include <boost/asio/executor_work_guard.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/local/connect_pair.hpp>
#include <boost/asio/local/stream_protocol.hpp>
#include <boost/asio/read.hpp>
#include <boost/asio/steady_timer.hpp>
#include <boost/asio/write.hpp>
#include <boost/system/error_code.hpp>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <map>
#include <stdexcept>
#include <thread>

// Handlers that wait without a thread: coroutines and completion tokens, on simulated time and on
// Asio's timers and sockets.

namespace weir {
namespace {

using std::chrono::milliseconds;
using testing::append;
using testing::broken;
using testing::SessionWorld;

void open(SessionWorld& world, AsyncSessionHandler handler) {
  auto opened = open_async_sessions(world.backend, world.clock, world.options, std::move(handler));
  ASSERT_TRUE(opened.ok()) << opened.error().to_string();
  world.processor = std::move(opened).value();
}

SessionTask sleep_then_append(const SessionRecord& record, AsyncSessionContext& session) {
  co_await session.wait_for(milliseconds(100));
  co_return append(record, session);
}

TEST(AsyncSession, SessionsWaitAtTheSameTimeEachInItsOrder) {
  SessionWorld world;
  open(world, sleep_then_append);
  for (const char* value : {"a", "b"}) {
    for (int i = 0; i < 20; ++i) {
      world.send("s" + std::to_string(i), value, {}, i % 2);
    }
  }
  world.run_ok(19);  // 95 ms: all of the first ones wait
  EXPECT_TRUE(world.values("replies").empty());
  EXPECT_EQ(world.processor->counts().attempts, 20U);
  world.run_ok(60);

  std::map<std::string, std::string> last;
  for (const auto& record : world.records("replies")) {
    std::string& before = last[*record.key];
    EXPECT_EQ(*record.value, before + (before.empty() ? "a" : "b"));
    before = *record.value;
  }
  EXPECT_EQ(last.size(), 20U);
  EXPECT_EQ(world.committed(0), 20);
  EXPECT_EQ(world.committed(1), 20);
}

// What an attempt wrote before and behind a wait counts when it ends, or not at all.
TEST(AsyncSession, C5_AFailedAttemptLeavesNothingOfWhatItWroteAroundItsWait) {
  SessionWorld world;
  open(world, [](const SessionRecord& record, AsyncSessionContext& session) -> SessionTask {
    if (record.attempt == 1) {
      (void)session.put_as<std::string>("text", "half");
      co_await session.wait_for(milliseconds(10));
      (void)session.put_as<std::string>("text", "whole");
      co_return Outcome::retry(broken());
    }
    co_await session.wait_for(milliseconds(10));
    co_return append(record, session);
  });
  world.send("s", "a");
  world.send("s", "b");
  world.run_ok(200);
  EXPECT_EQ(world.values("replies"), (std::vector<std::string>{"a", "ab"}));
  EXPECT_EQ(world.processor->counts().retries, 2U);
}

TEST(AsyncSession, WhatIsThrownBeforeOrBehindAWaitIsClassified) {
  SessionWorld world;
  world.options.classify = [](const std::exception& exception) {
    return std::string_view(exception.what()) == "hopeless" ? Outcome::dead(broken("hopeless"))
                                                            : Outcome::retry(broken());
  };
  open(world, [](const SessionRecord& record, AsyncSessionContext& session) -> SessionTask {
    const ByteView value = record.record.value.view();
    if (value == "early" && record.attempt == 1) {
      throw std::runtime_error("early");
    }
    co_await session.wait_for(milliseconds(5));
    if (value == "late") {
      throw std::runtime_error("hopeless");
    }
    co_await session.until([&](const SessionResume& resume) {
      if (value == "start" && record.attempt == 1) {
        throw std::runtime_error("a start that fails");
      }
      resume();
    });
    co_return append(record, session);
  });
  for (const char* value : {"early", "late", "start", "end"}) {
    world.send("s", value);
  }
  world.run_ok(300);
  EXPECT_EQ(world.values("replies").back(), "earlystartend");
  EXPECT_EQ(world.values("chat.dlq"), (std::vector<std::string>{"late"}));
}

TEST(AsyncSession, ACompletionCountsOnceAndOneThatIsDroppedIsTriedAgain) {
  SessionWorld world;
  std::vector<SessionDone> kept;
  int dropped = 0;
  open(world, async_session_handler([&](const SessionRecord& record, AsyncSessionContext& session,
                                        const SessionDone& done) {
         const ByteView value = record.record.value.view();
         if (value == "dropped" && record.attempt <= 2) {
           ++dropped;
           return;
         }
         EXPECT_TRUE(append(record, session).kind == Outcome::Kind::kOk);
         if (value == "later") {
           kept.push_back(done);
           return;
         }
         done(Outcome::ok());
         done(Outcome::dead(broken("the second answer")));
       }));
  for (const char* value : {"twice", "dropped", "later", "end"}) {
    world.send("s", value);
  }
  world.run_ok(200);
  EXPECT_EQ(dropped, 2);
  ASSERT_EQ(kept.size(), 1U);
  EXPECT_EQ(world.values("replies").back(), "twicedropped");
  kept[0](Outcome::ok());
  kept[0](Outcome::stop(broken("much too late")));
  world.run_ok();
  EXPECT_EQ(world.values("replies").back(), "twicedroppedlaterend");
  kept[0](Outcome::stop(broken("even later")));
  world.run_ok();
  EXPECT_EQ(world.values("chat.dlq").size(), 0U);
  EXPECT_EQ(world.processor->counts().handled, 4U);
}

// T4: the attempt is told once; its token's callbacks end what it waits for.
TEST(AsyncSession, T4_AStopEndsASleepAndReachesWhatIsWaitedFor) {
  SessionWorld world;
  world.options.lanes.handler_timeout = milliseconds(50);
  bool was_cut = false;
  int stopped = 0;
  open(world, [&](const SessionRecord& record, AsyncSessionContext& session) -> SessionTask {
    if (record.record.value.view() == "sleeps" && record.attempt == 1) {
      was_cut = !co_await session.wait_for(std::chrono::hours(1));
      EXPECT_TRUE(session.is_stop_requested());
      co_return Outcome::retry(broken());
    }
    if (record.record.value.view() == "waits" && record.attempt == 1) {
      std::optional<std::stop_callback<std::function<void()>>> on_stop;
      const Status ended = co_await session.until([&](const SessionResume& resume) {
        on_stop.emplace(session.stop_token(), [&stopped, resume] {
          ++stopped;
          resume();
        });
      });
      EXPECT_TRUE(ended.ok());
      co_return Outcome::retry(broken());
    }
    co_return append(record, session);
  });
  world.send("s", "sleeps");
  world.send("t", "waits");
  world.run_ok(200);
  EXPECT_TRUE(was_cut);
  EXPECT_EQ(stopped, 1);
  EXPECT_EQ(world.committed(), 2);
}

TEST(AsyncSession, CloseAsksHandlersToStopAndWaitsForThem) {
  SessionWorld world;
  bool was_cut = false;
  open(world, [&](const SessionRecord& record, AsyncSessionContext& session) -> SessionTask {
    was_cut = !co_await session.wait_for(std::chrono::hours(1));
    co_return append(record, session);
  });
  world.send("s", "a");
  world.run_ok(3);
  ASSERT_TRUE(
      world.processor->close(SessionEngine::Close::kDrainRunning, std::chrono::seconds(30)).ok());
  EXPECT_TRUE(was_cut);
  EXPECT_EQ(world.values("replies"), (std::vector<std::string>{"a"}));
  EXPECT_EQ(world.committed(), 1);
}

TEST(AsyncSession, WhoEndsAWaitOfAProcessorThatIsGoneHarmsNobody) {
  std::vector<SessionResume> kept;
  {
    SessionWorld world;
    open(world, [&](const SessionRecord& record, AsyncSessionContext& session) -> SessionTask {
      co_await session.until([&](SessionResume resume) { kept.push_back(std::move(resume)); });
      co_return append(record, session);
    });
    world.send("s", "a");
    world.run_ok(3);
    world.processor.reset();  // as a crash
    EXPECT_TRUE(world.values("replies").empty());
    EXPECT_EQ(world.committed(), 0);
  }
  ASSERT_EQ(kept.size(), 1U);
  kept[0]();
}

// A handler that outlives the hand-over has its store and its record, and changes nothing.
TEST(AsyncSession, R4_WhatEndsBehindAHandOverChangesNothing) {
  SessionWorld world;
  std::vector<SessionResume> kept;
  const AsyncSessionHandler handler = [&](const SessionRecord& record,
                                          AsyncSessionContext& session) -> SessionTask {
    if (kept.empty()) {
      co_await session.until([&](SessionResume resume) { kept.push_back(std::move(resume)); });
    }
    co_return append(record, session);
  };
  open(world, handler);
  world.send("s", "a");
  world.run_ok(3);
  ASSERT_EQ(kept.size(), 1U);
  // The deadline passes, the handler does not.
  (void)world.processor->close(SessionEngine::Close::kDrainRunning, milliseconds(20));
  kept[0]();
  world.processor.reset();
  EXPECT_TRUE(world.values("replies").empty());
  open(world, handler);
  world.run_ok();
  EXPECT_EQ(world.values("replies"), (std::vector<std::string>{"a"}));
}

// --- On threads

class AsioSessions : public ::testing::Test {
 protected:
  static constexpr int kSessions = 100;
  static constexpr int kMessages = 20;

  AsioSessions() : guard_(boost::asio::make_work_guard(io_)), thread_([this] { io_.run(); }) {
    world_.options.lanes.has_threads = true;
    world_.options.lanes.workers = 2;
    world_.options.has_state = true;
  }
  ~AsioSessions() override {
    world_.processor.reset();
    guard_.reset();
    io_.stop();
    thread_.join();
  }
  // Sends everything, handles it, and looks at the answers of each session.
  void expect_order(AsyncSessionHandler handler) {
    auto opened =
        open_async_sessions(world_.backend, system_clock(), world_.options, std::move(handler));
    ASSERT_TRUE(opened.ok()) << opened.error().to_string();
    world_.processor = std::move(opened).value();
    for (int i = 0; i < kMessages; ++i) {
      for (int s = 0; s < kSessions; ++s) {
        world_.send("s" + std::to_string(s), std::string(1, static_cast<char>('a' + i)), {}, s % 2);
      }
    }
    const MonotonicTime deadline = system_clock().monotonic() + std::chrono::seconds(60);
    while (world_.committed(0) + world_.committed(1) < kSessions * kMessages) {
      ASSERT_LT(system_clock().monotonic(), deadline) << "some never end";
      const Status round = world_.processor->run_once(milliseconds(10));
      ASSERT_TRUE(round.ok()) << round.error().to_string();
    }
    std::map<std::string, std::string> last;
    for (const auto& record : world_.records("replies")) {
      std::string& before = last[*record.key];
      ASSERT_EQ(*record.value, before + static_cast<char>('a' + before.size())) << *record.key;
      before = *record.value;
    }
    EXPECT_EQ(last.size(), static_cast<std::size_t>(kSessions));
    for (const auto& [session, text] : last) {
      EXPECT_EQ(text.size(), static_cast<std::size_t>(kMessages)) << session;
    }
  }

  SessionWorld world_;
  boost::asio::io_context io_;
  boost::asio::executor_work_guard<boost::asio::io_context::executor_type> guard_;
  std::thread thread_;
};

TEST_F(AsioSessions, HandlersWaitForTimers) {
  expect_order([this](const SessionRecord& record, AsyncSessionContext& session) -> SessionTask {
    boost::asio::steady_timer timer(io_, std::chrono::microseconds(200));
    boost::system::error_code failure;
    const Status ended = co_await session.until([&](const SessionResume& resume) {
      timer.async_wait([&failure, resume](const boost::system::error_code& error) {
        failure = error;
        resume();
      });
    });
    EXPECT_TRUE(ended.ok() && !failure);
    co_return append(record, session);
  });
}

// Every session asks the other end of a socket and takes what comes back.
TEST_F(AsioSessions, HandlersWaitForSockets) {
  using Socket = boost::asio::local::stream_protocol::socket;
  expect_order([this](const SessionRecord& record, AsyncSessionContext& session) -> SessionTask {
    // Shared with the operations that nobody waits for.
    const auto mine = std::make_shared<Socket>(io_);
    const auto echo = std::make_shared<Socket>(io_);
    boost::asio::local::connect_pair(*mine, *echo);
    const std::string question(record.record.value.view());
    std::string answer(question.size(), '\0');
    boost::system::error_code failure;
    const Status ended = co_await session.until([&](const SessionResume& resume) {
      const auto on_answer = [&failure, resume](const boost::system::error_code& error,
                                                std::size_t /*bytes*/) {
        failure = error;
        resume();
      };
      boost::asio::async_read(*mine, boost::asio::buffer(answer), on_answer);
      const auto hear = std::make_shared<std::string>(question.size(), '\0');
      boost::asio::async_read(
          *echo, boost::asio::buffer(*hear),
          [echo, hear](const boost::system::error_code& /*error*/, std::size_t /*bytes*/) {
            boost::asio::async_write(
                *echo, boost::asio::buffer(*hear),
                [echo, hear](const boost::system::error_code& /*error*/, std::size_t /*bytes*/) {});
          });
      const auto asked = std::make_shared<std::string>(question);
      boost::asio::async_write(
          *mine, boost::asio::buffer(*asked),
          [mine, asked](const boost::system::error_code& /*error*/, std::size_t /*bytes*/) {});
    });
    EXPECT_TRUE(ended.ok() && !failure);
    EXPECT_EQ(answer, question);
    co_return append(record, session);
  });
}

TEST_F(AsioSessions, AnswersComeFromAnyThread) {
  expect_order(async_session_handler(
      [this](const SessionRecord& record, AsyncSessionContext& session, SessionDone done) {
        Outcome outcome = append(record, session);
        io_.post([done = std::move(done), outcome = std::move(outcome)]() mutable {
          done(std::move(outcome));
        });
      }));
}

}  // namespace
}  // namespace weir
