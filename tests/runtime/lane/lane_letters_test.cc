#include "tests/runtime/lane/lanes_world.h"

#include <weir/runtime/session_hash.h>

#include <gtest/gtest.h>

namespace weir::internal {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;
using Names = std::vector<std::string>;

LaneOptions options_for(OnExhausted policy) {
  LaneOptions options;
  options.retry.jitter = 0;
  options.retry.backoff_base = milliseconds(100);
  options.retry.attempts_max = 2;
  options.retry.on_exhausted = policy;
  return options;
}

// C6: a permanent error goes to the dead-letter topic at once, with what is known about it.
TEST(DeadLetters, C6_WritesAPermanentErrorAtOnce) {
  LanesTest test(options_for(OnExhausted::kDeadLetter));
  test.assign();
  test.feed({"a", "a"});
  test.finish(*test.start(), Outcome::dead(Error(Errc::kInvalidRecord, "no such city")));

  ASSERT_EQ(test.engine.letters[0].size(), 1U);
  const DeadLetter letter = test.engine.letters[0][0];
  EXPECT_EQ(letter.reason, DeadLetterReason::kPermanent);
  EXPECT_EQ(letter.attempts, 1U);
  EXPECT_EQ(letter.record->offset, Offset(0));
  EXPECT_EQ(letter.session.view(), "a");
  EXPECT_EQ(letter.cause, "INVALID_RECORD: no such city");
}

// T43 (KP #217), 2.9: not passed by a commit, nor by its session, before it is acknowledged; a
// failed write is tried again.
TEST(DeadLetters, T43_KeepsTheOffsetPendingUntilTheLetterIsWritten) {
  LanesTest test(options_for(OnExhausted::kDeadLetter));
  test.assign();
  test.feed({"a", "a", "b"});
  test.finish(*test.start(), Outcome::dead(Error(Errc::kInvalidRecord, "bad")));
  EXPECT_EQ(test.run_all(), (Names{"b/1"}));
  for (int i = 0; i < 5; ++i) {
    test.engine.answer_letters(false);
    test.engine.settle();
    EXPECT_EQ(test.commit_value(), Offset(0));
    EXPECT_FALSE(test.start().has_value());
    test.engine.advance(seconds(40));
  }
  test.engine.answer_letters(true);
  test.engine.settle();

  EXPECT_EQ(test.counters().letter_failures, 5U);
  EXPECT_EQ(test.commit_value(), Offset(1));
  EXPECT_EQ(test.run_all(), (Names{"a/2"}));
}

TEST(DeadLetters, ExhaustedAttemptsGoThere) {
  LanesTest test(options_for(OnExhausted::kDeadLetter));
  test.assign();
  test.feed({"a"});
  test.fail(*test.start());
  test.engine.advance(milliseconds(100));
  test.fail(*test.start());

  ASSERT_EQ(test.engine.letters[0].size(), 1U);
  EXPECT_EQ(test.engine.letters[0][0].reason, DeadLetterReason::kExhausted);
  EXPECT_EQ(test.engine.letters[0][0].last_failure - test.engine.letters[0][0].first_failure,
            milliseconds(100));
}

// T33 (ziggurat #265): the later records of the session follow, in order, and none runs.
TEST(DeadLetters, T33_QuarantineHoldsTheSessionsLaterRecordsInOrder) {
  LanesTest test(options_for(OnExhausted::kQuarantine));
  test.assign();
  test.feed({"a", "a", "b", "a"});
  test.finish(*test.start(), Outcome::dead(Error(Errc::kInvalidRecord, "bad")));
  EXPECT_EQ(test.run_all(), (Names{"b/1"}));
  std::vector<std::uint64_t> order;
  for (int i = 0; i < 3; ++i) {
    ASSERT_EQ(test.engine.letters[0].size(), 1U);
    order.push_back(number_of(*test.engine.letters[0][0].record));
    test.engine.answer_letters(true);
    EXPECT_TRUE(test.run_all().empty());
    test.engine.settle();
  }
  EXPECT_EQ(order, (std::vector<std::uint64_t>{1, 2, 3}));
  EXPECT_EQ(test.commit_value(), Offset(4));

  test.engine.shards[0]->release(0, ByteView("a"), session_hash("a"));
  test.feed({"a"});
  EXPECT_EQ(test.run_all(), (Names{"a/4"}));
}

// An answer to no letter is none, also while a letter waits to be written again.
TEST(DeadLetters, AnAnswerToLetterZeroIsIgnored) {
  LanesTest test(options_for(OnExhausted::kDeadLetter));
  test.assign();
  test.feed({"a"});
  test.finish(*test.start(), Outcome::dead(Error(Errc::kInvalidRecord, "bad")));
  const std::uint32_t lane = test.engine.letters[0][0].id.lane;
  test.engine.answer_letters(false);
  test.engine.shards[0]->letter_done({lane, 0}, true, test.engine.now);
  test.engine.settle();
  EXPECT_EQ(test.commit_value(), Offset(0));
}

TEST(DeadLetters, WaitsAsLongAsAnOutcomeSays) {
  LanesTest test;
  test.assign();
  test.feed({"a"});
  test.finish(*test.start(), Outcome::retry(Error(Errc::kTimedOut, "later"), Duration::max()));
  test.engine.advance(std::chrono::hours(1'000));
  EXPECT_FALSE(test.start().has_value());
}

// A skip that its handler overtook leaves no letter, and no quarantine that nobody could redrive.
TEST(DeadLetters, QuarantineBeginsWhenTheLetterIsWritten) {
  LanesTest test(options_for(OnExhausted::kQuarantine));
  test.assign();
  test.feed({"a", "a"});
  const Attempt attempt = *test.start();
  LaneShard& shard = *test.engine.shards[0];
  shard.skip(0, test.engine.dispatcher.epoch(0), 0, test.engine.now);
  EXPECT_EQ(shard.size().quarantined, 0U);
  test.finish(attempt, Outcome::ok());
  EXPECT_EQ(test.run_all(), (Names{"a/2"}));

  test.feed({"a"});
  test.finish(*test.start(), Outcome::dead(Error(Errc::kInvalidRecord, "bad")));
  EXPECT_EQ(shard.size().quarantined, 0U);
  test.engine.answer_letters(true);
  EXPECT_EQ(shard.size().quarantined, 1U);
}

TEST(DeadLetters, QuarantineIsRestoredAndIsBounded) {
  LaneOptions options = options_for(OnExhausted::kQuarantine);
  options.quarantined_max = 1;
  LanesTest test(options);
  test.assign();
  test.engine.shards[0]->quarantine(0, ByteView("a"), session_hash("a"));
  test.engine.shards[0]->quarantine(0, ByteView("b"), session_hash("b"));
  test.feed({"a", "b"});

  EXPECT_EQ(test.run_all(), (Names{"b/1"}));
  ASSERT_EQ(test.engine.shards[0]->size().quarantined, 1U);
  EXPECT_EQ(test.counters().quarantine_overflow, 1U);
  test.engine.take_report(0);
  EXPECT_EQ(test.engine.letters[0][0].reason, DeadLetterReason::kQuarantined);
}

// 2.6 step 3: letters are waited for while draining.
TEST(DeadLetters, DrainWaitsForLetters) {
  LanesTest test(options_for(OnExhausted::kDeadLetter));
  test.assign();
  test.feed({"a", "a"});
  test.finish(*test.start(), Outcome::dead(Error(Errc::kInvalidRecord, "bad")));
  test.engine.dispatcher.drain(0, Dispatcher::Drain::kRunning);
  test.engine.settle();
  EXPECT_FALSE(test.engine.dispatcher.is_drained(0));
  test.engine.answer_letters(true);
  test.engine.settle();

  EXPECT_TRUE(test.engine.dispatcher.is_drained(0));
  EXPECT_EQ(test.commit_value(), Offset(1));
}

// --- 2.8 stuck gaps -----------------------------------------------------------------------------

DispatchOptions skipping() {
  DispatchOptions options;
  options.gap_timeout = seconds(10);
  options.gap_token_records = 2;
  return options;
}

// A stuck handler of session "a" and finished records behind it.
Attempt stuck_handler(LanesTest& test) {
  test.assign();
  test.feed({"a"});
  const Attempt stuck = *test.start();
  test.feed({"a", "b", "c", "d"});
  test.run_all();
  return stuck;
}

void check_gaps_after(LanesTest& test, Duration age) {
  test.engine.advance(age);
  test.engine.dispatcher.check_gaps(test.engine.now);
  test.engine.settle();
}

TEST(GapSkip, IsOffByDefault) {
  LanesTest test;
  stuck_handler(test);
  check_gaps_after(test, std::chrono::hours(1'000));
  EXPECT_TRUE(test.engine.letters[0].empty());
}

// C9: dead letter, then an operational error, then the commit goes on; the session still waits.
TEST(GapSkip, C9_CommitsPastAStuckHandlerAfterItsLetterIsWritten) {
  LanesTest test({}, skipping());
  const Attempt stuck = stuck_handler(test);
  check_gaps_after(test, seconds(11));
  EXPECT_TRUE(test.engine.letters[0].empty());  // the guard: neither a full window nor very old
  check_gaps_after(test, seconds(100));
  ASSERT_EQ(test.engine.letters[0].size(), 1U);
  EXPECT_EQ(test.engine.letters[0][0].reason, DeadLetterReason::kGapTimeout);
  EXPECT_EQ(test.commit_value(), Offset(0));
  test.engine.answer_letters(true);
  test.engine.settle();

  EXPECT_EQ(test.commit_value(), Offset(1));  // a/2 waits for the handler (R1)
  EXPECT_FALSE(test.start().has_value());
  const std::vector<SkippedGap> gaps = test.engine.dispatcher.gaps();
  ASSERT_EQ(gaps.size(), 1U);
  EXPECT_EQ(gaps[0].offset, Offset(0));
  EXPECT_EQ(gaps[0].age, seconds(111));
  test.finish(stuck, Outcome::ok());
  EXPECT_EQ(test.counters().late_success_after_skip, 1U);
  EXPECT_EQ(test.run_all(), (Names{"a/2"}));
  EXPECT_EQ(test.commit_value(), Offset(5));
}

// No skip while the dead-letter topic is down.
TEST(GapSkip, DoesNotSkipWithoutALetter) {
  LanesTest test({}, skipping());
  const Attempt stuck = stuck_handler(test);
  check_gaps_after(test, seconds(111));
  test.engine.answer_letters(false);
  test.engine.settle();
  EXPECT_EQ(test.commit_value(), Offset(0));

  test.finish(stuck, Outcome::ok());
  EXPECT_EQ(test.commit_value(), Offset(1));
  EXPECT_EQ(test.engine.dispatcher.counters().gaps_skipped, 0U);
}

TEST(GapSkip, TakesARecordOutOfItsBackOff) {
  LaneOptions lanes;
  lanes.retry.backoff_base = lanes.retry.backoff_max = std::chrono::hours(1);
  LanesTest test(lanes, skipping());
  const Attempt failing = stuck_handler(test);
  test.fail(failing);
  check_gaps_after(test, seconds(111));
  test.engine.answer_letters(true);
  test.engine.settle();

  EXPECT_EQ(test.run_all(), (Names{"a/2"}));
  EXPECT_EQ(test.commit_value(), Offset(5));
}

// An outage must not dump the log: skips are paid for with successes.
TEST(GapSkip, IsPaidForWithSuccesses) {
  DispatchOptions dispatch = skipping();
  dispatch.gap_token_records = 50;
  LanesTest test({}, dispatch);
  stuck_handler(test);
  check_gaps_after(test, seconds(1'000));
  EXPECT_TRUE(test.engine.letters[0].empty());
}

// 2.6: no letter for a lost partition; and none that names what is gone.
TEST(GapSkip, LetterThatIsNotSentGoesWithItsPartition) {
  for (const bool is_waiting : {true, false}) {
    LanesTest test({}, skipping());
    const Attempt attempt = stuck_handler(test);
    if (is_waiting) {
      test.fail(attempt);
    }
    const std::uint32_t epoch = test.engine.dispatcher.epoch(0);
    LaneShard& shard = *test.engine.shards[0];
    shard.skip(0, epoch, 0, test.engine.now);
    EXPECT_EQ(shard.letters().size(), 1U);
    shard.detach(0, epoch + 1);
    EXPECT_TRUE(shard.letters().empty());
  }
}

TEST(GapSkip, LetterThatIsNotSentGoesWhenItsHandlerSucceeds) {
  LanesTest test({}, skipping());
  const Attempt attempt = stuck_handler(test);
  LaneShard& shard = *test.engine.shards[0];
  shard.skip(0, test.engine.dispatcher.epoch(0), 0, test.engine.now);
  shard.finish(attempt.run, Outcome::ok(), test.engine.now);
  EXPECT_TRUE(shard.letters().empty());
}

TEST(GapSkip, HandlerThatEndsBeforeItsLetterCounts) {
  LanesTest test({}, skipping());
  const Attempt stuck = stuck_handler(test);
  check_gaps_after(test, seconds(111));
  test.finish(stuck, Outcome::ok());
  EXPECT_EQ(test.commit_value(), Offset(1));
  test.engine.answer_letters(true);
  test.engine.settle();

  EXPECT_EQ(test.engine.dispatcher.counters().gaps_skipped, 0U);
  EXPECT_EQ(test.run_all(), (Names{"a/2"}));
}

}  // namespace
}  // namespace weir::internal
