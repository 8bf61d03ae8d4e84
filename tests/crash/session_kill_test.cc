#include "tests/crash/killing.h"
#include "tests/crash/support/session_ledger.h"
#include "tests/support/size_of_run.h"

#include <weir/log/embedded_log.h>

#include <fmt/core.h>
#include <gtest/gtest.h>

#include <string>

// kill -9 in the middle of 1,000 sessions with 10 % failures, between the steps of a commit and at
// any time, over and over on the same directory: no inversion, no skip (session-workers 2.11).
namespace weir::crash {
namespace {

const std::vector<Point> kSessionPoints = {Point::kChangelogWritten,
                                           Point::kSinkFlushed,
                                           Point::kOffsetsCommitted,
                                           Point::kPromoted,
                                           Point::kAppend,
                                           Point::kSync,
                                           Point::kClose};

class SessionKilling final : public Killing {
 public:
  explicit SessionKilling(std::uint64_t seed) : Killing("crash_sessions", kSessionPoints, seed) {}

  void drain() {
    is_draining_ = true;
    run_to_end();
  }
  void print() const {
    print_kills();
    fmt::print("messages={} answers={} repeated={} letters={} commits={}\n", ledger_.messages(),
               ledger_.answers(), ledger_.repeated(), ledger_.letters(), commits_);
  }
  void expect_that_all_happened() const {
    EXPECT_TRUE(has_hit_every_point());
    EXPECT_GT(ledger_.answers(), 0U);
    EXPECT_GT(ledger_.letters(), 0U);
    EXPECT_GT(commits_, 0);
  }

 private:
  std::string first_number() override { return is_draining_ ? "1" : "0"; }
  std::uint64_t passes(Point point) const override {
    switch (point) {
      case Point::kAppend:
      case Point::kSync:
        return 60;
      case Point::kClose:
        return static_cast<std::uint64_t>(changes_of_close());
      default:
        return 8;
    }
  }
  void take(const std::string& what, Words& words) override {
    if (what == "commit") {
      ++commits_;
    } else if (what != "ready") {
      ADD_FAILURE() << what << " " << words.text() << " " << words.text() << " " << words.number();
    }
  }
  void check(const Run& /*run*/) override {
    log::EmbeddedLogOptions options;
    options.background = false;
    options.offsets_partitions = 2;
    auto log = log::EmbeddedLog::open(directory(), options);
    ASSERT_TRUE(log.ok()) << log.error().to_string();
    if (is_draining_) {
      ledger_.check_drained(**log);
    } else {
      ledger_.check_after_crash(**log);
    }
    // No close(): the next start recovers once more.
  }

  SessionLedger ledger_;
  bool is_draining_ = false;
  int commits_ = 0;
};

TEST(SessionKill, P4_NoSessionIsInvertedOrSkippedWhereverTheProcessIsKilled) {
  const std::uint64_t seed = weir::testing::seed_of_run();
  SCOPED_TRACE(fmt::format("WEIR_TEST_SEED={}", seed));
  fmt::print("seed={}\n", seed);
  SessionKilling killing(seed);
  killing.run(weir::testing::is_full_run() ? 200 : 20);
  killing.drain();
  killing.print();
  killing.expect_that_all_happened();
}

}  // namespace
}  // namespace weir::crash
