#include "apps/chat_sessions/bot.h"

#include "apps/chat_sessions/chat.h"
#include "apps/chat_sessions/trip.h"

#include <weir/runtime/endian.h>

#include <fmt/core.h>

#include <algorithm>
#include <bit>

namespace weir::chat_sessions {

void Latencies::add(Duration latency) {
  const auto value = static_cast<std::uint64_t>(std::max<std::int64_t>(latency.count(), kSteps));
  const auto power = static_cast<int>(std::bit_width(value)) - 1;
  const auto step = static_cast<int>((value >> static_cast<unsigned>(power - 3)) & (kSteps - 1));
  buckets_[static_cast<std::size_t>(power * kSteps + step)].fetch_add(1, std::memory_order_relaxed);
}

std::uint64_t Latencies::count() const {
  std::uint64_t sum = 0;
  for (const std::atomic<std::uint64_t>& bucket : buckets_) {
    sum += bucket.load(std::memory_order_relaxed);
  }
  return sum;
}

double Latencies::milliseconds(double part) const {
  const std::uint64_t all = count();
  const auto wanted = static_cast<std::uint64_t>(static_cast<double>(all) * part);
  std::uint64_t seen = 0;
  for (std::size_t i = 0; i < buckets_.size() && all > 0; ++i) {
    seen += buckets_[i].load(std::memory_order_relaxed);
    if (seen > wanted || seen == all) {
      const auto power = static_cast<double>(std::uint64_t{1} << (i / kSteps));
      return power * (kSteps + static_cast<double>(i % kSteps) + 1) / kSteps / 1e6;
    }
  }
  return 0;
}

Status Bot::reply(const SessionRecord& record, SessionContext& session, std::uint64_t number) {
  WEIR_TRY_ASSIGN(const Line line, Line::parse(record.record.value.view()));
  WEIR_TRY_ASSIGN(std::optional<std::string> city, session.get_as<std::string>("city"));
  Trip trip{std::move(city).value_or("")};
  WEIR_TRY_ASSIGN(const std::string said, answer(trip, line.text));
  WEIR_TRY(session.put_as<std::string>("city", trip.city));
  WEIR_TRY(session.put_as<std::int64_t>("last", static_cast<std::int64_t>(number)));
  const std::string text = Line{number, said}.to_string();
  return session.emit(0, {.key = record.session, .value = ByteView(text), .headers = {}});
}

Outcome Bot::operator()(const SessionRecord& record, SessionContext& session) {
  if (record.session.is_null() || record.record.value.is_null()) {
    return Outcome::dead(Error(Errc::kInvalidRecord, "a message needs a session and a text"));
  }
  const Result<Line> line = Line::parse(record.record.value.view());
  if (!line.ok()) {
    return Outcome::dead(line.error());
  }
  const Result<std::optional<std::int64_t>> last = session.get_as<std::int64_t>("last");
  if (!last.ok()) {
    return Outcome::retry(last.error());
  }
  if (static_cast<std::int64_t>(line->number) <= last->value_or(0)) {
    order_violations_.fetch_add(1, std::memory_order_relaxed);
  }
  Status replied = reply(record, session, line->number);
  if (!replied.ok()) {
    const bool is_nonsense = replied.error().code() == Errc::kInvalidRecord;
    return is_nonsense ? Outcome::dead(std::move(replied).error())
                       : Outcome::retry(std::move(replied).error());
  }
  // Behind the effects, so that a failed attempt has some to take back.
  if (fails(options_.seed, record.session.view(), line->number, record.attempt,
            options_.fail_rate)) {
    return Outcome::retry(Error(Errc::kTimedOut, "the booking service did not answer"));
  }
  const std::optional<NullableBytes> sent = record.record.headers.last(kSentAt);
  if (sent.has_value() && sent->size() == sizeof(std::int64_t)) {
    latencies_.add(clock_.monotonic() - Duration(load_be<std::int64_t>(sent->view().data())));
  }
  return Outcome::ok();
}

}  // namespace weir::chat_sessions
