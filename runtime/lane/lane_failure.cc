#include "runtime/lane/lane_shard.h"

#include <algorithm>
#include <utility>

// What happens in a lane when a record does not simply succeed: back-off, dead letters, quarantine,
// skipped gaps, handlers that return after their epoch.

namespace weir {

std::string_view dead_letter_reason_name(DeadLetterReason reason) {
  switch (reason) {
    case DeadLetterReason::kPermanent:
      return "permanent";
    case DeadLetterReason::kExhausted:
      return "exhausted";
    case DeadLetterReason::kGapTimeout:
      return "gap_timeout";
    case DeadLetterReason::kQuarantined:
      return "quarantined";
  }
  return "unknown";
}

namespace internal {

namespace {

// From so many failures on they go into the lane map (2.4).
constexpr std::uint16_t kNotedFailures = 3;
// A wait that outlives every process, and a time that can be computed.
constexpr Duration kDelayMax = std::chrono::hours(24 * 365);

}  // namespace

LaneShard::Failure& LaneShard::failure(std::uint32_t index, MonotonicTime now) {
  Lane& lane = lanes_[index];
  Failure& entry = failures_[index];
  if (!lane.has(Lane::kFailing)) {
    lane.set(Lane::kFailing);
    entry = {};
    entry.first = now;
  }
  entry.last = now;
  return entry;
}

void LaneShard::forget_failure(std::uint32_t index) {
  if (!lanes_[index].has(Lane::kFailing)) {
    return;
  }
  lanes_[index].clear(Lane::kFailing);
  lanes_[index].clear(Lane::kSkipping);
  const auto entry = failures_.find(index);
  if (entry->second.letter != 0) {
    // Not written yet: it would name what is gone.
    std::erase_if(letters_, [id = RunId{index, entry->second.letter}](const DeadLetter& letter) {
      return letter.id == id;
    });
  }
  failures_.erase(entry);
}

void LaneShard::retry(std::uint32_t index, Outcome outcome, MonotonicTime now) {
  Lane& lane = lanes_[index];
  const Partition& partition = partitions_[lane.partition];
  RecordNode& node = nodes_[lane.current];
  Failure& entry = failure(index, now);
  entry.cause = std::move(outcome.cause);
  if (outcome.is_counted) {
    node.failures = static_cast<std::uint16_t>(std::min(node.failures + 1, 0xffff));
  }
  if (outcome.is_counted && node.failures >= kNotedFailures) {
    report_.notes.push_back({lane.partition, node.epoch, node.seq, node.failures});
  }
  if (partition.is_draining && !partition.keeps_queued) {
    forget_failure(index);
    complete(index, lane.current, Fate::kDiscarded);
    settle(index, false);
    return;
  }
  if (outcome.is_counted && options_.retry.is_exhausted(node.failures, now - entry.first)) {
    exhaust(index, outcome.min_delay, now);
    return;
  }
  ++counters_.retries;
  const std::uint32_t failures = std::max<std::uint32_t>(node.failures, 1);
  wait(index, std::max(options_.retry.backoff(failures, rng_), outcome.min_delay), now);
}

void LaneShard::exhaust(std::uint32_t index, Duration min_delay, MonotonicTime now) {
  switch (options_.retry.on_exhausted) {
    case OnExhausted::kDeadLetter:
    case OnExhausted::kQuarantine:
      begin_letter(index, DeadLetterReason::kExhausted, now);
      break;
    case OnExhausted::kBlock:
      ++counters_.retries;
      wait(index, std::max(options_.retry.backoff_max, min_delay), now);
      break;
    case OnExhausted::kStop:
      halt(index, std::move(failures_[index].cause));
      break;
    case OnExhausted::kDrop:
      ++counters_.dropped;
      forget_failure(index);
      complete(index, lanes_[index].current, Fate::kDropped);
      settle(index, false);
      break;
  }
}

void LaneShard::wait(std::uint32_t index, Duration delay, MonotonicTime now) {
  Lane& lane = lanes_[index];
  push_front(index, lane.current);
  lane.current = kNone;
  lane.served = 0;
  if (delay <= Duration::zero()) {
    make_ready(index, false);
  } else {
    lane.state = LaneState::kWaiting;
    timers_.add(index, now + std::min(delay, kDelayMax));
  }
  // A lane in back-off may hold more than before.
  if (partitions_[lane.partition].stash_head != kNone) {
    drain_stash(lane.partition);
  }
}

void LaneShard::begin_letter(std::uint32_t index, DeadLetterReason reason, MonotonicTime now) {
  Failure& entry = failure(index, now);
  entry.reason = reason;
  if (reason == DeadLetterReason::kQuarantined) {
    ++counters_.quarantined_records;
  }
  send_letter(index);
}

void LaneShard::send_letter(std::uint32_t index) {
  Lane& lane = lanes_[index];
  Failure& entry = failures_[index];
  if (lane.state != LaneState::kRunning) {
    lane.state = LaneState::kLetter;
  }
  run_number_ = run_number_ == UINT32_MAX ? 1 : run_number_ + 1;
  entry.letter = run_number_;
  letters_.push_back({.id = {index, entry.letter},
                      .partition = lane.partition,
                      .record = nodes_[lane.current].record,
                      .session = lane.session(),
                      .reason = entry.reason,
                      .attempts = nodes_[lane.current].failures,
                      .first_failure = entry.first,
                      .last_failure = entry.last,
                      .cause = entry.cause.ok() ? std::string() : entry.cause.error().to_string()});
}

void LaneShard::letter_done(RunId letter, bool ok, MonotonicTime now) {
  const auto found = failures_.find(letter.lane);
  if (letter.number == 0 || found == failures_.end() || found->second.letter != letter.number) {
    return;  // nobody's, of an epoch that ended, or of a skip that its handler overtook
  }
  now_ = now;
  Failure& entry = found->second;
  Lane& lane = lanes_[letter.lane];
  entry.letter = 0;
  if (!ok) {
    ++counters_.letter_failures;
    if (lane.state == LaneState::kRunning) {
      lane.clear(Lane::kSkipping);  // no skip while the dead-letter topic is down
      return;
    }
    ++entry.letter_failures;
    lane.state = LaneState::kLetterWait;
    const Duration delay = options_.retry.backoff(entry.letter_failures, rng_);
    timers_.add(letter.lane, now + std::max<Duration>(delay, std::chrono::milliseconds(1)));
    return;
  }
  ++counters_.dead_lettered;
  // Only now: a session in quarantine has its head in the dead-letter topic.
  if (options_.retry.on_exhausted == OnExhausted::kQuarantine &&
      entry.reason != DeadLetterReason::kQuarantined) {
    set_quarantined(letter.lane);
  }
  const Fate fate =
      entry.reason == DeadLetterReason::kGapTimeout ? Fate::kGapSkipped : Fate::kDeadLettered;
  if (lane.state == LaneState::kRunning) {
    // The commit goes on, the session waits for the handler (R1).
    nodes_[lane.current].is_terminal = true;
    push_completion(lane, nodes_[lane.current], fate, false);
    return;
  }
  forget_failure(letter.lane);
  complete(letter.lane, lane.current, fate);
  settle(letter.lane, false);
}

void LaneShard::skip(std::uint32_t partition, std::uint32_t epoch, std::uint32_t seq,
                     MonotonicTime now) {
  if (partition >= partitions_.size() || partitions_[partition].epoch != epoch) {
    return;
  }
  now_ = now;
  for (std::uint32_t index = partitions_[partition].lanes; index != kNone;
       index = lanes_[index].partition_next) {
    Lane& lane = lanes_[index];
    const std::uint32_t node = lane.current != kNone ? lane.current : lane.head;
    if (node == kNone || nodes_[node].epoch != epoch || nodes_[node].seq != seq) {
      continue;
    }
    if (lane.state == LaneState::kWaiting) {
      timers_.remove(index);
      lane.current = pop_front(index);
      begin_letter(index, DeadLetterReason::kGapTimeout, now);
    } else if (lane.state == LaneState::kRunning && !lane.has(Lane::kSkipping)) {
      cancels_.push_back({index, lane.run_number});
      begin_letter(index, DeadLetterReason::kGapTimeout, now);
      lane.set(Lane::kSkipping);
    }
    return;
  }
}

void LaneShard::stop_handler_timer(std::uint32_t index) {
  if (lanes_[index].has(Lane::kTimed)) {
    lanes_[index].clear(Lane::kTimed);
    timers_.remove(index);
  }
}

void LaneShard::finish_skipped(std::uint32_t index, Outcome outcome) {
  Lane& lane = lanes_[index];
  if (outcome.kind == Outcome::Kind::kStop) {
    report_stop(std::move(outcome.cause));
  }
  const bool is_ok = outcome.kind == Outcome::Kind::kOk;
  counters_.late_success_after_skip += is_ok ? 1U : 0U;
  if (nodes_[lane.current].is_terminal) {
    forget_failure(index);
    complete(index, lane.current, Fate::kReleased);
  } else if (is_ok) {
    ++counters_.finished;
    forget_failure(index);  // its letter is answered to nobody
    complete(index, lane.current, Fate::kDone);
  } else {
    lane.clear(Lane::kSkipping);
    lane.state = LaneState::kLetter;
    return;
  }
  settle(index, false);
}

void LaneShard::finish_detached(std::uint32_t index, Outcome outcome) {
  Lane& lane = lanes_[index];
  if (outcome.kind == Outcome::Kind::kStop) {
    report_stop(std::move(outcome.cause));
  }
  ++counters_.detached_returns;
  forget_failure(index);
  complete(index, lane.current, Fate::kDetached);
  settle(index, false);
}

void LaneShard::set_quarantined(std::uint32_t index) {
  Lane& lane = lanes_[index];
  if (lane.has(Lane::kQuarantined)) {
    return;
  }
  if (quarantined_ >= options_.quarantined_max) {
    ++counters_.quarantine_overflow;
    return;
  }
  lane.set(Lane::kQuarantined);
  ++quarantined_;
}

void LaneShard::quarantine(std::uint32_t partition, NullableBytes session, std::uint64_t hash) {
  std::uint32_t index = find_lane(partition, session, hash);
  if (index == kNone) {
    index = make_lane(partition, session, hash);
  }
  clear_evictable(index);
  set_quarantined(index);
  if (lanes_[index].state == LaneState::kIdle && !lanes_[index].has(Lane::kQuarantined) &&
      lanes_[index].stashed == 0) {
    set_evictable(index);
  }
}

void LaneShard::release(std::uint32_t partition, NullableBytes session, std::uint64_t hash) {
  const std::uint32_t index = find_lane(partition, session, hash);
  if (index == kNone || !lanes_[index].has(Lane::kQuarantined)) {
    return;
  }
  lanes_[index].clear(Lane::kQuarantined);
  --quarantined_;
  if (lanes_[index].state == LaneState::kIdle && lanes_[index].stashed == 0) {
    set_evictable(index);
  }
}

void LaneShard::report_stop(Status cause) {
  if (!report_.stop.has_value()) {
    report_.stop = cause.ok()
                       ? Error(Errc::kHandlerThrew, "a handler asked to stop and gave no cause")
                       : std::move(cause).error();
  }
}

void LaneShard::halt(std::uint32_t index, Status cause) {
  report_stop(std::move(cause));
  Lane& lane = lanes_[index];
  const Partition& partition = partitions_[lane.partition];
  if (partition.is_draining && !partition.keeps_queued) {
    forget_failure(index);
    complete(index, lane.current, Fate::kDiscarded);
    settle(index, false);
    return;
  }
  push_front(index, lane.current);
  lane.current = kNone;
  lane.state = LaneState::kStopped;
  check_drained(lane.partition);
}

}  // namespace internal

}  // namespace weir
