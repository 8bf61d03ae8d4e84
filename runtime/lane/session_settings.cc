#include <weir/runtime/session_settings.h>

#include <array>
#include <span>
#include <string>
#include <utility>

namespace weir {

namespace {

// The settings as they are written: milliseconds, per cent, words.
struct SessionSettings {
  std::int64_t workers = 1;
  std::string dispatch = "local";
  std::string null_session = "ordered";
  std::int64_t backoff_base_ms = 50;
  std::int64_t backoff_multiplier = 2;
  std::int64_t backoff_max_ms = 30'000;
  std::int64_t jitter_percent = 20;
  std::int64_t attempts_max = 10;
  std::int64_t elapsed_max_ms = 120'000;
  std::string on_exhausted = "dlq";
  std::int64_t lane_records = 1'024;
  std::int64_t backoff_records = 131'072;
  std::int64_t stash_high = 2'048;
  std::int64_t stash_low = 512;
  std::int64_t window = 1 << 22;
  std::int64_t buffer_bytes = 256 << 20;
  std::int64_t lanes = 1'000'000;
  std::int64_t running = 1'024;
  std::int64_t quarantine_sessions = 10'000;
  std::int64_t lane_idle_ms = 30'000;
  std::int64_t handler_timeout_ms = 0;
  std::int64_t commit_interval_ms = 1'000;
  std::int64_t commit_records = 10'000;
  std::string commit_metadata = "map";
  std::int64_t gap_timeout_ms = 0;
  bool gap_guard = true;
  std::int64_t drain_max_ms = 30'000;
};

using Member = Property<SessionSettings>;
constexpr std::int64_t kMsMax = std::int64_t{365} * 24 * 3'600 * 1'000;
constexpr std::int64_t kCountMax = 1 << 30;

const std::array kProperties{
    Member{.name = "session.workers",
           .member = &SessionSettings::workers,
           .min = 1,
           .max = 4'096,
           .one_of = {},
           .doc = "Threads that run lanes."},
    Member{.name = "session.dispatch",
           .member = &SessionSettings::dispatch,
           .one_of = "local,spread",
           .doc = "local: a partition's sessions on one worker; spread: over all of them."},
    Member{.name = "session.null.session",
           .member = &SessionSettings::null_session,
           .one_of = "ordered,unordered",
           .doc = "Records without a key: one session of each partition, or no order at all."},
    Member{.name = "session.retry.backoff.base.ms",
           .member = &SessionSettings::backoff_base_ms,
           .min = 0,
           .max = kMsMax,
           .one_of = {},
           .doc = "Wait before the second attempt."},
    Member{.name = "session.retry.backoff.multiplier",
           .member = &SessionSettings::backoff_multiplier,
           .min = 1,
           .max = 100,
           .one_of = {},
           .doc = "Each wait is so many times the one before."},
    Member{.name = "session.retry.backoff.max.ms",
           .member = &SessionSettings::backoff_max_ms,
           .min = 0,
           .max = kMsMax,
           .one_of = {},
           .doc = "The longest wait."},
    Member{.name = "session.retry.jitter.percent",
           .member = &SessionSettings::jitter_percent,
           .min = 0,
           .max = 100,
           .one_of = {},
           .doc = "Waits vary by so much, both ways."},
    Member{.name = "session.retry.max.attempts",
           .member = &SessionSettings::attempts_max,
           .min = 0,
           .max = 65'535,
           .one_of = {},
           .doc = "Attempts of a record, the first included; 0: no bound."},
    Member{.name = "session.retry.max.elapsed.ms",
           .member = &SessionSettings::elapsed_max_ms,
           .min = 0,
           .max = kMsMax,
           .one_of = {},
           .doc = "Time from a record's first failure to its last attempt; 0: no bound."},
    Member{.name = "session.on.exhausted",
           .member = &SessionSettings::on_exhausted,
           .one_of = "dlq,block,stop,drop,quarantine",
           .doc = "What happens to a record whose attempts or time are used up."},
    Member{.name = "session.lane.records.max",
           .member = &SessionSettings::lane_records,
           .min = 1,
           .max = kCountMax,
           .one_of = {},
           .doc = "Records that wait in a lane; more wait in the partition's stash."},
    Member{.name = "session.backoff.records.max",
           .member = &SessionSettings::backoff_records,
           .min = 0,
           .max = kCountMax,
           .one_of = {},
           .doc = "Further records of a worker behind failing ones, so that other sessions go on."},
    Member{.name = "session.stash.records.high",
           .member = &SessionSettings::stash_high,
           .min = 1,
           .max = kCountMax,
           .one_of = {},
           .doc = "A partition pauses at so many stashed records."},
    Member{.name = "session.stash.records.low",
           .member = &SessionSettings::stash_low,
           .min = 0,
           .max = kCountMax,
           .one_of = {},
           .doc = "And resumes at so many."},
    Member{.name = "session.window.records.max",
           .member = &SessionSettings::window,
           .min = 1,
           .max = kCountMax,
           .one_of = {},
           .doc = "Records of a partition from the first unfinished one on; it pauses there."},
    Member{.name = "session.buffer.bytes.max",
           .member = &SessionSettings::buffer_bytes,
           .min = 1 << 20,
           .one_of = {},
           .doc = "Fetched bytes that the process holds."},
    Member{.name = "session.lanes.max",
           .member = &SessionSettings::lanes,
           .min = 1,
           .max = kCountMax,
           .one_of = {},
           .doc = "Lanes of a worker; idle ones go first."},
    Member{.name = "session.in.flight.max",
           .member = &SessionSettings::running,
           .min = 1,
           .max = kCountMax,
           .one_of = {},
           .doc = "Attempts of a worker that are open at once."},
    Member{.name = "session.quarantine.max.sessions",
           .member = &SessionSettings::quarantine_sessions,
           .min = 0,
           .max = kCountMax,
           .one_of = {},
           .doc = "Sessions in quarantine; beyond, on.exhausted is dlq."},
    Member{.name = "session.lane.idle.ms",
           .member = &SessionSettings::lane_idle_ms,
           .min = 0,
           .max = kMsMax,
           .one_of = {},
           .doc = "A lane with nothing to do goes after this time."},
    Member{.name = "session.handler.timeout.ms",
           .member = &SessionSettings::handler_timeout_ms,
           .min = 0,
           .max = kMsMax,
           .one_of = {},
           .doc = "An attempt is asked to stop after this time; 0: never."},
    Member{.name = "session.commit.interval.ms",
           .member = &SessionSettings::commit_interval_ms,
           .min = 1,
           .max = kMsMax,
           .one_of = {},
           .doc = "Time between commits."},
    Member{.name = "session.commit.records.max",
           .member = &SessionSettings::commit_records,
           .min = 1,
           .one_of = {},
           .doc = "Finished records that bring the next commit forward."},
    Member{.name = "session.commit.metadata",
           .member = &SessionSettings::commit_metadata,
           .one_of = "map,none",
           .doc = "map: a commit names what is finished above its offset, and it is not repeated."},
    Member{.name = "session.gap.timeout.ms",
           .member = &SessionSettings::gap_timeout_ms,
           .min = 0,
           .max = kMsMax,
           .one_of = {},
           .doc = "A stuck record is dead-lettered and passed after this time; 0: never."},
    Member{.name = "session.gap.guard",
           .member = &SessionSettings::gap_guard,
           .one_of = {},
           .doc = "Only while nearly all others finish and the window is nearly full, or at ten "
                  "times the time-out."},
    Member{.name = "session.rebalance.drain.max.ms",
           .member = &SessionSettings::drain_max_ms,
           .min = 0,
           .max = kMsMax,
           .one_of = {},
           .doc = "How long a partition that is taken away waits for running handlers."},
};

OnExhausted exhausted_policy(const std::string& word) {
  return word == "block"        ? OnExhausted::kBlock
         : word == "stop"       ? OnExhausted::kStop
         : word == "drop"       ? OnExhausted::kDrop
         : word == "quarantine" ? OnExhausted::kQuarantine
                                : OnExhausted::kDeadLetter;
}

Duration ms(std::int64_t count) {
  return std::chrono::milliseconds(count);
}

std::uint32_t count(std::int64_t value) {
  return static_cast<std::uint32_t>(value);
}

SessionOptions options_of(const SessionSettings& settings) {
  SessionOptions options;
  options.workers = count(settings.workers);
  options.dispatch =
      settings.dispatch == "spread" ? SessionDispatch::kSpread : SessionDispatch::kLocal;
  options.retry = {.backoff_base = ms(settings.backoff_base_ms),
                   .backoff_multiplier = static_cast<double>(settings.backoff_multiplier),
                   .backoff_max = ms(settings.backoff_max_ms),
                   .jitter = static_cast<double>(settings.jitter_percent) / 100,
                   .attempts_max = count(settings.attempts_max),
                   .elapsed_max = ms(settings.elapsed_max_ms),
                   .on_exhausted = exhausted_policy(settings.on_exhausted)};
  options.has_unordered_null_sessions = settings.null_session == "unordered";
  options.lane_records_max = count(settings.lane_records);
  options.backoff_records_max = count(settings.backoff_records);
  options.stash_records_high = count(settings.stash_high);
  options.stash_records_low = count(settings.stash_low);
  options.window_records_max = count(settings.window);
  options.buffer_bytes_max = static_cast<std::uint64_t>(settings.buffer_bytes);
  options.lanes_max = count(settings.lanes);
  options.running_max = count(settings.running);
  options.quarantine_sessions_max = count(settings.quarantine_sessions);
  options.lane_idle = ms(settings.lane_idle_ms);
  options.handler_timeout = ms(settings.handler_timeout_ms);
  options.commit_interval = ms(settings.commit_interval_ms);
  options.commit_records_max = static_cast<std::uint64_t>(settings.commit_records);
  options.writes_lane_map = settings.commit_metadata == "map";
  options.gap_timeout = ms(settings.gap_timeout_ms);
  options.has_gap_guard = settings.gap_guard;
  options.drain_max = ms(settings.drain_max_ms);
  return options;
}

}  // namespace

Result<SessionOptions> parse_session_options(const std::map<std::string, std::string>& given) {
  const std::span<const Member> properties(kProperties);
  WEIR_TRY_ASSIGN(const SessionSettings settings,
                  parse_settings("sessions", properties, given, SessionSettings{}));
  SessionOptions options = options_of(settings);
  WEIR_TRY(check_session_options(options));
  return options;
}

Status check_session_options(const SessionOptions& options) {
  const RetryPolicy& retry = options.retry;
  const struct {
    bool holds;
    const char* rule;
  } rules[] = {
      {options.workers >= 1 && options.workers <= 4'096, "session.workers is 1 to 4096"},
      {options.lane_records_max >= 1, "session.lane.records.max is at least 1"},
      {options.stash_records_low < options.stash_records_high,
       "session.stash.records.low is below session.stash.records.high"},
      {options.window_records_max >= 1 && options.window_records_max < 1U << 31U,
       "session.window.records.max is 1 to 2^31 - 1"},
      {options.buffer_bytes_max >= 1, "session.buffer.bytes.max is at least 1"},
      {options.running_max >= 1, "session.in.flight.max is at least 1"},
      {options.lanes_max >= 1, "session.lanes.max is at least 1"},
      {options.quarantine_sessions_max < options.lanes_max,
       "session.quarantine.max.sessions is below session.lanes.max"},
      {options.commit_interval > Duration::zero(), "session.commit.interval.ms is above 0"},
      {options.commit_records_max >= 1, "session.commit.records.max is at least 1"},
      {options.lane_idle >= Duration::zero() && options.handler_timeout >= Duration::zero() &&
           options.gap_timeout >= Duration::zero() && options.drain_max >= Duration::zero(),
       "session.lane.idle.ms, session.handler.timeout.ms, session.gap.timeout.ms and "
       "session.rebalance.drain.max.ms are not negative"},
      {retry.backoff_base >= Duration::zero() && retry.backoff_max >= Duration::zero() &&
           retry.elapsed_max >= Duration::zero(),
       "session.retry.backoff.base.ms, session.retry.backoff.max.ms and "
       "session.retry.max.elapsed.ms are not negative"},
      {retry.backoff_multiplier >= 1 && retry.backoff_multiplier <= 100,
       "session.retry.backoff.multiplier is 1 to 100"},
      {retry.jitter >= 0 && retry.jitter <= 1, "session.retry.jitter.percent is 0 to 100"},
      {retry.attempts_max <= 65'535, "session.retry.max.attempts is at most 65535"},
  };
  std::string broken;
  for (const auto& [holds, rule] : rules) {
    if (!holds) {
      broken.append(broken.empty() ? "" : "; ").append(rule);
    }
  }
  return broken.empty() ? Status() : Status(Error(Errc::kInvalidConfig, std::move(broken)));
}

std::vector<SettingDescription> describe_session_options() {
  return describe_settings(std::span<const Member>(kProperties));
}

}  // namespace weir
