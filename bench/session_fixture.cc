#include "bench/session_fixture.h"

#include <weir/runtime/rng.h>

#include <fmt/core.h>

#include <algorithm>
#include <utility>

namespace weir::bench {

Traffic make_traffic(const TrafficShape& shape, std::uint64_t seed) {
  Rng rng(seed);
  Traffic traffic{.messages = {}, .sessions = shape.sessions};
  traffic.messages.reserve(shape.messages);
  std::vector<std::uint32_t> numbers(shape.sessions, 0);
  const double gap_ns = shape.rate > 0 ? 1e9 / shape.rate : 0;
  for (std::uint64_t i = 0; i < shape.messages; ++i) {
    Message message;
    message.session = static_cast<std::uint32_t>(rng.below(shape.sessions));
    message.number = numbers[message.session]++;
    message.arrival = Duration(static_cast<std::int64_t>(gap_ns * static_cast<double>(i)));
    if (rng.chance(shape.failing_per_cent, 100)) {
      const double mean = static_cast<double>(shape.backoff_mean.count());
      // At least a nanosecond, so that it fails also where back-offs are zero.
      message.backoff =
          Duration(std::max<std::int64_t>(1, static_cast<std::int64_t>(mean * (0.5 + rng.unit()))));
    }
    traffic.messages.push_back(message);
  }
  return traffic;
}

Latencies latencies(const std::vector<Duration>& times, Duration span) {
  std::vector<Duration> sorted = times;
  std::sort(sorted.begin(), sorted.end());
  const auto at = [&](double share) {
    const auto index = static_cast<std::size_t>(share * static_cast<double>(sorted.size() - 1));
    return static_cast<double>(sorted[index].count()) / 1e6;
  };
  return {.per_second = static_cast<double>(sorted.size()) * 1e9 /
                        static_cast<double>(std::max<std::int64_t>(1, span.count())),
          .p50_ms = at(0.5),
          .p99_ms = at(0.99)};
}

Latencies ideal_lanes(const Traffic& traffic) {
  std::vector<Duration> free_at(traffic.sessions, Duration{});
  std::vector<Duration> times;
  Duration end{};
  for (const Message& message : traffic.messages) {
    const Duration done = std::max(message.arrival, free_at[message.session]) + message.backoff;
    free_at[message.session] = done;
    times.push_back(done - message.arrival);
    end = std::max(end, done);
  }
  return latencies(times, end);
}

PreloadedSource::PreloadedSource(const Traffic& traffic, const Clock* clock)
    : traffic_(traffic), clock_(clock), start_(clock != nullptr ? clock->monotonic() : Duration{}) {
  for (std::uint32_t session = 0; session < traffic.sessions; ++session) {
    keys_.push_back(fmt::format("session-{:08}", session));
  }
}

Status PreloadedSource::assign(std::vector<TopicPartition> partitions) {
  is_assigned_ = !partitions.empty();
  return {};
}

Status PreloadedSource::seek(std::uint32_t /*assignment*/, Offset offset) {
  next_ = static_cast<std::size_t>(offset.value());
  return {};
}

Offset PreloadedSource::position(std::uint32_t /*assignment*/) const {
  return Offset(static_cast<std::int64_t>(next_));
}

void PreloadedSource::pause(std::uint32_t /*assignment*/) {
  is_paused_ = true;
}

void PreloadedSource::resume(std::uint32_t /*assignment*/) {
  is_paused_ = false;
}

void PreloadedSource::wakeup() {
  const MutexLock lock(mutex_);
  is_woken_ = true;
  condition_.notify_one();
}

std::optional<MonotonicTime> PreloadedSource::next_arrival() const {
  return next_ == traffic_.messages.size()
             ? std::nullopt
             : std::optional(start_ + traffic_.messages[next_].arrival);
}

Result<std::vector<RecordBlock>> PreloadedSource::poll(Duration timeout) {
  std::vector<RecordBlock> blocks;
  const Duration now = clock_ != nullptr ? clock_->monotonic() - start_ : Duration::max();
  const bool has_more = is_assigned_ && !is_paused_ && next_ < traffic_.messages.size();
  if (has_more && traffic_.messages[next_].arrival > now) {
    timeout = std::min(timeout, traffic_.messages[next_].arrival - now);
  }
  if (!has_more || traffic_.messages[next_].arrival > now) {
    const MutexLock lock(mutex_);
    if (!is_woken_ && timeout > Duration::zero()) {
      condition_.wait_for(mutex_, timeout);
    }
    is_woken_ = false;
    return blocks;
  }
  RecordBlock block;
  if (clock_ == nullptr) {
    block.records.reserve(std::min(kBlockRecords, traffic_.messages.size() - next_));
  }
  for (; next_ < traffic_.messages.size() && traffic_.messages[next_].arrival <= now &&
         block.records.size() < kBlockRecords;
       ++next_) {
    RecordView record;
    record.key = ByteView(keys_[traffic_.messages[next_].session]);
    record.offset = Offset(static_cast<std::int64_t>(next_));
    block.records.push_back(record);
  }
  if (!block.records.empty()) {
    block.next_offset = Offset(static_cast<std::int64_t>(next_));
    blocks.push_back(std::move(block));
  }
  return blocks;
}

Status LoneGroup::join(std::vector<std::string> /*topics*/, std::string /*user_data*/,
                       GroupListener& listener) {
  listener_ = &listener;
  return {};
}

Status LoneGroup::poll() {
  if (GroupListener* const listener = std::exchange(listener_, nullptr); listener != nullptr) {
    const TopicPartition partition{"messages", PartitionId(0)};
    listener->on_assigned({&partition, 1});
  }
  return {};
}

Status LoneGroup::commit(std::span<const std::pair<TopicPartition, CommittedOffset>> offsets) {
  last_commit_ = offsets.back().second.offset;
  return {};
}

Result<std::vector<std::optional<CommittedOffset>>> LoneGroup::committed(
    std::span<const TopicPartition> partitions) {
  return std::vector<std::optional<CommittedOffset>>(partitions.size());
}

}  // namespace weir::bench
