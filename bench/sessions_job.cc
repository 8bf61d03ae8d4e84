#include "bench/jobs.h"
#include "bench/session_fixture.h"

#include <weir/runtime/clock.h>
#include <weir/runtime/session_engine.h>
#include <weir/runtime/testing/manual_clock.h>

#include <fmt/core.h>

#include <algorithm>
#include <chrono>
#include <memory>

// sessions: lanes without a log. B1 of the session benchmark (50,000 messages, 10 sessions, 10 %
// fail once) on a simulated clock beside the ideal lanes of the same draw, and what the engine
// costs with nothing to wait for. The order of every message is checked.

namespace weir::bench {
namespace {

constexpr Duration kBackoffMean = std::chrono::microseconds(5'900);
constexpr double kPaced = 14'250;  // messages a second
constexpr double kEfficiencyMin = 0.98;
constexpr std::uint64_t kSeed = 1;

// The handler of every message, and the oracle of the order.
class Handler : public LaneWorker {
 public:
  // `clock`: null when latencies are not wanted.
  Handler(const Traffic& traffic, const Clock* clock)
      : traffic_(traffic),
        clock_(clock),
        start_(clock != nullptr ? clock->monotonic() : Duration{}),
        next_(traffic.sessions, 0) {}

  void run(LaneRuns& runs) override {
    Attempt attempt;
    while (runs.next(attempt)) {
      const Message& message =
          traffic_.messages[static_cast<std::size_t>(attempt.record->offset.value())];
      if (attempt.number == 1 && message.backoff > Duration::zero()) {
        Outcome outcome;
        outcome.kind = Outcome::Kind::kRetry;
        outcome.min_delay = clock_ != nullptr ? message.backoff : Duration::zero();
        runs.finish(attempt.run, std::move(outcome));
        continue;
      }
      violations_ += next_[message.session] != message.number ? 1U : 0U;
      next_[message.session] = message.number + 1;
      ++done_;
      if (clock_ != nullptr) {
        times_.push_back(clock_->monotonic() - start_ - message.arrival);
      }
      runs.finish(attempt.run, Outcome::ok());
    }
  }
  void write(std::span<const DeadLetter> letters, LaneRuns& runs) override {
    for (const DeadLetter& letter : letters) {
      runs.answer_letter(letter.id, true);
    }
  }

  std::uint64_t done() const { return done_; }
  std::uint64_t violations() const { return violations_; }
  const std::vector<Duration>& times() const { return times_; }

 private:
  const Traffic& traffic_;
  const Clock* clock_;
  MonotonicTime start_;
  std::vector<std::uint32_t> next_;
  std::vector<Duration> times_;
  std::uint64_t done_ = 0;
  std::uint64_t violations_ = 0;
};

SessionOptions zero_backoff() {
  SessionOptions options;
  options.retry.backoff_base = Duration::zero();
  options.retry.jitter = 0;
  return options;
}

struct Rig {
  Rig(const Traffic& traffic, const Clock* clock)
      : source(traffic, clock), handler(new Handler(traffic, clock)) {}

  Status open(const SessionOptions& options, const Clock& clock) {
    SessionEngine::Parts parts;
    parts.clock = &clock;
    parts.group = &group;
    parts.source = &source;
    parts.make_worker = [this](std::uint32_t) { return std::unique_ptr<LaneWorker>(handler); };
    parts.start_offset = [](const TopicPartition&) { return Offset(0); };
    WEIR_TRY_ASSIGN(engine, SessionEngine::open(options, std::move(parts), {"messages"}));
    return {};
  }
  // Everything ran, once, in order, and is committed.
  Status finish(std::uint64_t messages) {
    WEIR_TRY(engine->close(SessionEngine::Close::kDrainQueued, std::chrono::seconds(60)));
    WEIR_TRY(expect_equal(handler->done(), messages, "messages handled"));
    WEIR_TRY(expect_equal(handler->violations(), 0, "messages out of order"));
    return expect_equal(static_cast<std::uint64_t>(group.last_commit().value()), messages,
                        "the committed offset");
  }

  LoneGroup group;
  PreloadedSource source;
  Handler* handler;  // the engine's
  std::unique_ptr<SessionEngine> engine;
};

Traffic traffic_of_b1(std::uint64_t messages, double rate) {
  return make_traffic({.messages = messages,
                       .sessions = 10,
                       .failing_per_cent = 10,
                       .backoff_mean = kBackoffMean,
                       .rate = rate},
                      kSeed);
}

// Returns the efficiency.
double note_beside_ideal(Run& run, const Traffic& traffic, const Latencies& is) {
  const Latencies ideal = ideal_lanes(traffic);
  run.note("throughput", is.per_second, "messages/s");
  run.note("ideal_throughput", ideal.per_second, "messages/s");
  run.note("efficiency", is.per_second / ideal.per_second, "share");
  run.note("p50", is.p50_ms, "ms");
  run.note("ideal_p50", ideal.p50_ms, "ms");
  run.note("p99", is.p99_ms, "ms");
  run.note("ideal_p99", ideal.p99_ms, "ms");
  return is.per_second / ideal.per_second;
}

// Moves the clock from event to event: what is left is what the engine adds to the ideal lanes.
Status run_simulated(Run& run, double rate) {
  const Traffic traffic = traffic_of_b1(run.items(), rate);
  testing::ManualClock clock;
  Rig rig(traffic, &clock);
  SessionOptions options = zero_backoff();
  options.has_threads = false;
  WEIR_TRY(rig.open(options, clock));
  run.start();
  while (rig.handler->done() < run.items()) {
    const std::uint64_t before = rig.handler->done() + rig.engine->signals().accepted;
    WEIR_TRY(rig.engine->run_once(Duration::zero()));
    const std::optional<MonotonicTime> arrival = rig.source.next_arrival();
    const std::optional<MonotonicTime> due = rig.engine->next_due();
    if (rig.handler->done() + rig.engine->signals().accepted != before ||
        (arrival.has_value() && *arrival <= clock.monotonic())) {
      continue;
    }
    const MonotonicTime next =
        std::min(arrival.value_or(MonotonicTime::max()), due.value_or(MonotonicTime::max()));
    if (next > clock.monotonic() && next != MonotonicTime::max()) {
      clock.advance(next - clock.monotonic());
    }
  }
  run.stop();
  const double efficiency =
      note_beside_ideal(run, traffic, latencies(rig.handler->times(), clock.monotonic()));
  WEIR_TRY(expect(efficiency >= kEfficiencyMin,
                  fmt::format("{:.3f} of what ideal lanes do, 0.98 must be", efficiency)));
  return rig.finish(run.items());
}

// The same with the machine's clock and timers: what those add is in the figures.
Status run_paced(Run& run, double rate) {
  const Traffic traffic = traffic_of_b1(run.items(), rate);
  Rig rig(traffic, &system_clock());
  WEIR_TRY(rig.open(zero_backoff(), system_clock()));
  const MonotonicTime start = system_clock().monotonic();
  run.start();
  while (rig.engine->signals().terminal < run.items()) {
    WEIR_TRY(rig.engine->run_once(std::chrono::milliseconds(1)));
  }
  run.stop();
  const Duration span = system_clock().monotonic() - start;
  WEIR_TRY(rig.finish(run.items()));
  note_beside_ideal(run, traffic, latencies(rig.handler->times(), span));
  return {};
}

// Real time, nothing to wait for: one worker's thread and the polling thread.
Status run_saturated(Run& run, std::uint32_t sessions, std::uint32_t failing_per_cent) {
  const Traffic traffic = make_traffic(
      {.messages = run.items(), .sessions = sessions, .failing_per_cent = failing_per_cent}, kSeed);
  Rig rig(traffic, nullptr);
  WEIR_TRY(rig.open(zero_backoff(), system_clock()));
  run.start();
  while (rig.engine->signals().terminal < run.items()) {
    WEIR_TRY(rig.engine->run_once(std::chrono::milliseconds(1)));
  }
  WEIR_TRY(rig.finish(run.items()));
  run.stop();
  return {};
}

Case beside_ideal(const char* name, Status (*contest)(Run&, double), double rate) {
  Case made;
  made.name = name;
  made.unit = "message";
  made.items = 50'000;
  made.counted = 5'000;
  made.contenders.push_back({"weir", [=](Run& run) { return contest(run, rate); }});
  // Not of the same work: what the source article published, paced, with real failures.
  made.elsewhere.push_back({"article", 1e9 / 14'027, "InfoQ: 14,027 messages/s, median 11.7 ms"});
  return made;
}

Case saturated(const char* name, std::uint32_t sessions, std::uint32_t failing_per_cent) {
  Case made;
  made.name = name;
  made.unit = "message";
  made.items = 4'000'000;
  made.counted = 100'000;
  made.budget_ns = 200;
  made.contenders.push_back(
      {"weir", [=](Run& run) { return run_saturated(run, sessions, failing_per_cent); }});
  return made;
}

}  // namespace

std::vector<Case> sessions_cases() {
  return {beside_ideal("b1a.simulated", run_simulated, kPaced),
          beside_ideal("b1b.simulated", run_simulated, 0),
          beside_ideal("b1a.real", run_paced, kPaced), saturated("b1d.memory", 10, 10),
          saturated("b3.1.memory", 1'000, 0)};
}

}  // namespace weir::bench
