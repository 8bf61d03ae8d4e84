#include "runtime/lane/lane_shard.h"

// What happens by time: due timers, idle lanes that go; and what can be seen from outside.

namespace weir::internal {

void LaneShard::evict(std::uint32_t index) {
  Lane& lane = lanes_[index];
  clear_evictable(index);
  forget_failure(index);
  quarantined_ -= lane.has(Lane::kQuarantined) ? 1U : 0U;
  Partition& owner = partitions_[lane.partition];
  (lane.partition_prev == kNone ? owner.lanes : lanes_[lane.partition_prev].partition_next) =
      lane.partition_next;
  if (lane.partition_next != kNone) {
    lanes_[lane.partition_next].partition_prev = lane.partition_prev;
  }
  table_.erase(table_hash(lane.hash, lane.partition), index);
  lane.drop_session();
  lane.state = LaneState::kFree;
  lane.run_number = 0;
  lanes_.release(index);
}

void LaneShard::set_evictable(std::uint32_t index) {
  Lane& lane = lanes_[index];
  lane.set(Lane::kEvictable);
  ++evictable_;
  lane.due = now_ + options_.lane_idle;
  if (lane.has(Lane::kInIdleQueue)) {
    lane.set(Lane::kUsedSince);
  } else {
    lane.set(Lane::kInIdleQueue);
    idle_queue_.push_back(index);
  }
}

void LaneShard::clear_evictable(std::uint32_t index) {
  Lane& lane = lanes_[index];
  if (lane.has(Lane::kEvictable)) {
    lane.clear(Lane::kEvictable);
    --evictable_;
  }
}

void LaneShard::evict_idle() {
  while (!idle_queue_.empty()) {
    const std::uint32_t index = idle_queue_.front();
    if (!lanes_.contains(index) || !lanes_[index].has(Lane::kEvictable)) {
      if (lanes_.contains(index)) {
        lanes_[index].clear(Lane::kInIdleQueue);
      }
      idle_queue_.pop_front();
      continue;
    }
    Lane& lane = lanes_[index];
    if (lane.due <= now_ || lanes_.live() > options_.lanes_max) {
      idle_queue_.pop_front();
      evict(index);
    } else if (lane.has(Lane::kUsedSince)) {
      lane.clear(Lane::kUsedSince);
      idle_queue_.pop_front();
      idle_queue_.push_back(index);
    } else {
      return;
    }
  }
}

void LaneShard::advance(MonotonicTime now) {
  now_ = now;
  timers_.advance(now, [&](std::uint32_t index) {
    if (lanes_[index].state == LaneState::kLetterWait) {
      send_letter(index);
    } else if (lanes_[index].state == LaneState::kRunning) {
      // No second start: the session waits until the handler ends (2.7).
      lanes_[index].clear(Lane::kTimed);
      ++counters_.handler_timeouts;
      cancels_.push_back({index, lanes_[index].run_number});
    } else {
      make_ready(index, false);
    }
  });
  evict_idle();
  const bool is_full = lanes_.live() >= options_.lanes_max && evictable_ == 0;
  if (is_full != is_full_) {
    is_full_ = is_full;
    report_.is_full = is_full;
  }
}

std::optional<MonotonicTime> LaneShard::next_due() const {
  std::optional<MonotonicTime> due = timers_.next_due();
  // advance() left an idle lane in front, or none.
  if (!idle_queue_.empty() && lanes_.contains(idle_queue_.front())) {
    const Lane& lane = lanes_[idle_queue_.front()];
    if (lane.has(Lane::kEvictable) && (!due.has_value() || lane.due < *due)) {
      due = lane.due;
    }
  }
  return due;
}

LaneShard::Size LaneShard::size() const {
  return {.lanes = lanes_.live(),
          .records = nodes_.live(),
          .running = running_,
          .waiting = timers_.size(),
          .quarantined = quarantined_,
          .memory = lanes_.capacity() * sizeof(Lane) + table_.bytes() +
                    nodes_.capacity() * sizeof(RecordNode)};
}

std::vector<LaneShard::LaneInfo> LaneShard::busy_lanes(std::size_t count_max) const {
  std::vector<LaneInfo> infos;
  for (const Partition& partition : partitions_) {
    for (std::uint32_t index = partition.lanes; index != kNone && infos.size() < count_max;
         index = lanes_[index].partition_next) {
      const Lane& lane = lanes_[index];
      const std::uint32_t node = lane.current != kNone ? lane.current : lane.head;
      if (node == kNone && lane.state == LaneState::kIdle) {
        continue;
      }
      infos.push_back({.partition = lane.partition,
                       .session = lane.session(),
                       .state = lane.state,
                       .offset = node == kNone ? kNoOffset : nodes_[node].record->offset,
                       .failures = node == kNone ? 0U : nodes_[node].failures,
                       .queued = lane.length,
                       .is_tombstone = node != kNone && nodes_[node].epoch != partition.epoch});
    }
  }
  return infos;
}

}  // namespace weir::internal
