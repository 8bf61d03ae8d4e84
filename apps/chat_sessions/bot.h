#pragma once

#include <weir/operators/session.h>
#include <weir/runtime/clock.h>

#include <array>
#include <atomic>
#include <cstdint>

namespace weir::chat_sessions {

// Latencies in buckets an eighth wide. Threading: thread-safe.
class Latencies {
 public:
  void add(Duration latency);
  std::uint64_t count() const;
  // The bucket's upper bound, milliseconds; 0 when there is none. `part` in [0, 1].
  double milliseconds(double part) const;

 private:
  static constexpr int kSteps = 8;  // a power of two
  std::array<std::atomic<std::uint64_t>, std::size_t{64} * kSteps> buckets_{};
};

// Header of a message: monotonic nanoseconds of its (intended) sending, big-endian.
inline constexpr std::string_view kSentAt = "sent.at";

// The handler: keeps each traveller's trip and the number of the last message, answers, and fails
// as often as it was told to. Threading: its call is thread-safe.
class Bot {
 public:
  struct Options {
    std::uint64_t seed = 1;
    double fail_rate = 0;
  };
  Bot(const Options& options, const Clock& clock) : options_(options), clock_(clock) {}

  Outcome operator()(const SessionRecord& record, SessionContext& session);

  const Latencies& latencies() const { return latencies_; }
  // Messages that came at or before the last one of their session; must stay 0.
  std::uint64_t order_violations() const { return order_violations_; }

 private:
  Status reply(const SessionRecord& record, SessionContext& session, std::uint64_t number);

  Options options_;
  const Clock& clock_;
  Latencies latencies_;
  std::atomic<std::uint64_t> order_violations_{0};
};

}  // namespace weir::chat_sessions
