#include <weir/runtime/session_settings.h>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace weir {
namespace {

using std::chrono::milliseconds;
using ::testing::HasSubstr;

// The table of settings and the struct of options have the same defaults.
TEST(SessionSettings, DefaultsAreThoseOfTheOptions) {
  const SessionOptions read = *parse_session_options({});
  const SessionOptions is;
  EXPECT_EQ(read.workers, is.workers);
  EXPECT_EQ(read.dispatch, is.dispatch);
  EXPECT_EQ(read.retry.backoff_base, is.retry.backoff_base);
  EXPECT_EQ(read.retry.backoff_multiplier, is.retry.backoff_multiplier);
  EXPECT_EQ(read.retry.backoff_max, is.retry.backoff_max);
  EXPECT_EQ(read.retry.jitter, is.retry.jitter);
  EXPECT_EQ(read.retry.attempts_max, is.retry.attempts_max);
  EXPECT_EQ(read.retry.elapsed_max, is.retry.elapsed_max);
  EXPECT_EQ(read.retry.on_exhausted, is.retry.on_exhausted);
  EXPECT_EQ(read.has_unordered_null_sessions, is.has_unordered_null_sessions);
  EXPECT_EQ(read.lane_records_max, is.lane_records_max);
  EXPECT_EQ(read.backoff_records_max, is.backoff_records_max);
  EXPECT_EQ(read.stash_records_high, is.stash_records_high);
  EXPECT_EQ(read.stash_records_low, is.stash_records_low);
  EXPECT_EQ(read.window_records_max, is.window_records_max);
  EXPECT_EQ(read.buffer_bytes_max, is.buffer_bytes_max);
  EXPECT_EQ(read.lanes_max, is.lanes_max);
  EXPECT_EQ(read.running_max, is.running_max);
  EXPECT_EQ(read.quarantine_sessions_max, is.quarantine_sessions_max);
  EXPECT_EQ(read.lane_idle, is.lane_idle);
  EXPECT_EQ(read.handler_timeout, is.handler_timeout);
  EXPECT_EQ(read.commit_interval, is.commit_interval);
  EXPECT_EQ(read.commit_records_max, is.commit_records_max);
  EXPECT_EQ(read.writes_lane_map, is.writes_lane_map);
  EXPECT_EQ(read.gap_timeout, is.gap_timeout);
  EXPECT_EQ(read.has_gap_guard, is.has_gap_guard);
  EXPECT_EQ(read.drain_max, is.drain_max);
}

TEST(SessionSettings, ReadsWordsAndMilliseconds) {
  const Result<SessionOptions> read = parse_session_options({{"session.dispatch", "spread"},
                                                             {"session.on.exhausted", "quarantine"},
                                                             {"session.retry.backoff.base.ms", "7"},
                                                             {"session.retry.jitter.percent", "50"},
                                                             {"session.null.session", "unordered"},
                                                             {"session.commit.metadata", "none"},
                                                             {"session.gap.guard", "false"}});
  ASSERT_TRUE(read.ok()) << read.error().to_string();
  EXPECT_EQ(read->dispatch, SessionDispatch::kSpread);
  EXPECT_EQ(read->retry.on_exhausted, OnExhausted::kQuarantine);
  EXPECT_EQ(read->retry.backoff_base, milliseconds(7));
  EXPECT_EQ(read->retry.jitter, 0.5);
  EXPECT_TRUE(read->has_unordered_null_sessions);
  EXPECT_FALSE(read->writes_lane_map);
  EXPECT_FALSE(read->has_gap_guard);
}

TEST(SessionSettings, ReportsAllMistakesTogether) {
  const Result<SessionOptions> read =
      parse_session_options({{"session.retry.max.attempt", "3"}, {"session.workers", "0"}});
  ASSERT_EQ(read.error().code(), Errc::kInvalidConfig);
  EXPECT_THAT(read.error().message(), HasSubstr("session.retry.max.attempts"));
  EXPECT_THAT(read.error().message(), HasSubstr("session.workers"));
  EXPECT_EQ(parse_session_options({{"session.stash.records.low", "9999"}}).error().code(),
            Errc::kInvalidConfig);
}

// One check for the parser and for whoever fills in the options.
TEST(SessionSettings, RefusesOptionsOutOfRange) {
  const auto refuses = [](auto change, const char* name) {
    SessionOptions options;
    change(options);
    const Status status = check_session_options(options);
    ASSERT_FALSE(status.ok()) << name;
    EXPECT_THAT(status.error().message(), HasSubstr(name));
    EXPECT_EQ(SessionEngine::open(options, {}, {}).error().message(), status.error().message());
  };
  EXPECT_TRUE(check_session_options({}).ok());
  refuses([](SessionOptions& o) { o.workers = 5'000; }, "session.workers");
  refuses([](SessionOptions& o) { o.buffer_bytes_max = 0; }, "session.buffer.bytes.max");
  refuses([](SessionOptions& o) { o.window_records_max = 1U << 31U; },
          "session.window.records.max");
  refuses([](SessionOptions& o) { o.commit_interval = {}; }, "session.commit.interval.ms");
  refuses([](SessionOptions& o) { o.drain_max = milliseconds(-1); },
          "session.rebalance.drain.max.ms");
  refuses([](SessionOptions& o) { o.retry.jitter = 1.5; }, "session.retry.jitter.percent");
  refuses([](SessionOptions& o) { o.retry.backoff_multiplier = 0; },
          "session.retry.backoff.multiplier");
  refuses([](SessionOptions& o) { o.retry.attempts_max = 65'536; }, "session.retry.max.attempts");
  // A lane in quarantine is never evicted: there must be room beside them.
  refuses([](SessionOptions& o) { o.quarantine_sessions_max = o.lanes_max; },
          "session.quarantine.max.sessions");
  EXPECT_THAT(parse_session_options({{"session.lanes.max", "10000"}}).error().message(),
              HasSubstr("session.quarantine.max.sessions"));
  EXPECT_THAT(SessionEngine::open({}, {}, {}).error().message(), HasSubstr("make_worker"));
}

TEST(SessionSettings, DescribesEverySetting) {
  for (const SettingDescription& setting : describe_session_options()) {
    EXPECT_TRUE(setting.name.starts_with("session.")) << setting.name;
    EXPECT_FALSE(setting.doc.empty()) << setting.name;
  }
}

}  // namespace
}  // namespace weir
