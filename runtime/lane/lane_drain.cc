#include "runtime/lane/lane_shard.h"

#include <weir/runtime/assert.h>

// Handing a partition over (session-workers 2.6).

namespace weir::internal {

void LaneShard::drain(std::uint32_t number, Drain drain) {
  WEIR_ASSERT(number < partitions_.size());
  Partition& partition = partitions_[number];
  if (!partition.is_open) {
    return;
  }
  partition.is_draining = true;
  partition.keeps_queued = drain == Drain::kQueued;
  if (drain == Drain::kRunning) {
    discard_stash(number);
    partition.ready_head = partition.ready_tail = kNone;
  }
  for (std::uint32_t index = partition.lanes; index != kNone;) {
    const std::uint32_t next = lanes_[index].partition_next;
    if (drain == Drain::kRunning || lanes_[index].state == LaneState::kStopped) {
      discard_lane(index);
    }
    index = next;
  }
  check_drained(number);
}

void LaneShard::discard_stash(std::uint32_t number) {
  Partition& partition = partitions_[number];
  for (std::uint32_t node = partition.stash_head; node != kNone;) {
    const std::uint32_t next = nodes_[node].next;
    --lanes_[nodes_[node].lane].stashed;
    push_completion(lanes_[nodes_[node].lane], nodes_[node], Fate::kDiscarded, true);
    --partition.records;
    nodes_.release(node);
    node = next;
  }
  partition.stash_head = partition.stash_tail = kNone;
  partition.stash_count = 0;
  partition.is_pressed = false;
}

// What is stashed for one lane; others behind it may find room now.
void LaneShard::discard_stashed(std::uint32_t index) {
  Lane& lane = lanes_[index];
  Partition& partition = partitions_[lane.partition];
  std::uint32_t kept = kNone;
  for (std::uint32_t node = partition.stash_head; node != kNone && lane.stashed > 0;) {
    const std::uint32_t next = nodes_[node].next;
    if (nodes_[node].lane != index) {
      kept = node;
    } else {
      (kept == kNone ? partition.stash_head : nodes_[kept].next) = next;
      partition.stash_tail = next == kNone ? kept : partition.stash_tail;
      --partition.stash_count;
      --lane.stashed;
      push_completion(lane, nodes_[node], Fate::kDiscarded, true);
      --partition.records;
      nodes_.release(node);
    }
    node = next;
  }
  drain_stash(lane.partition);
}

void LaneShard::discard_queue(std::uint32_t index) {
  Lane& lane = lanes_[index];
  if (lane.length > options_.lane_records_max) {
    overflow_ -= lane.length - options_.lane_records_max;
  }
  Partition& partition = partitions_[lane.partition];
  for (std::uint32_t node = lane.head; node != kNone;) {
    const std::uint32_t next = nodes_[node].next;
    push_completion(lane, nodes_[node], Fate::kDiscarded, true);
    --partition.records;
    nodes_.release(node);
    node = next;
  }
  lane.head = lane.tail = kNone;
  lane.length = 0;
}

// What waits goes; what runs, and a letter that is being written, may end.
void LaneShard::discard_lane(std::uint32_t index) {
  Lane& lane = lanes_[index];
  if (lane.state == LaneState::kWaiting) {
    timers_.remove(index);
  }
  if (lane.stashed > 0) {
    discard_stashed(index);
  }
  discard_queue(index);
  if (lane.state == LaneState::kRunning) {
    // A tombstone of an earlier epoch was told before.
    if (nodes_[lane.current].epoch == partitions_[lane.partition].epoch) {
      cancels_.push_back({index, lane.run_number});
    }
  } else if (lane.state != LaneState::kLetter && lane.state != LaneState::kLetterWait) {
    evict(index);
  }
}

void LaneShard::check_drained(std::uint32_t number) {
  Partition& partition = partitions_[number];
  if (partition.is_draining && partition.keeps_queued) {
    // A stopped lane keeps its records; nothing will run them here.
    for (std::uint32_t index = partition.lanes; index != kNone;) {
      const std::uint32_t next = lanes_[index].partition_next;
      if (lanes_[index].state == LaneState::kStopped) {
        discard_lane(index);
      }
      index = next;
    }
  }
  if (partition.is_draining && partition.records == 0) {
    report_.drained.push_back({number, partition.epoch});
  }
}

void LaneShard::detach(std::uint32_t number, std::uint32_t next_epoch) {
  if (number >= partitions_.size() || !partitions_[number].is_open) {
    return;
  }
  Partition& partition = partitions_[number];
  partition.is_draining = false;
  discard_stash(number);
  partition.ready_head = partition.ready_tail = kNone;
  for (std::uint32_t index = partition.lanes; index != kNone;) {
    const std::uint32_t next = lanes_[index].partition_next;
    Lane& lane = lanes_[index];
    if (lane.state == LaneState::kLetter || lane.state == LaneState::kLetterWait) {
      if (lane.state == LaneState::kLetterWait) {
        timers_.remove(index);
      }
      push_completion(lane, nodes_[lane.current], Fate::kDiscarded, true);
      --partition.records;
      nodes_.release(lane.current);
      lane.current = kNone;
      lane.state = LaneState::kIdle;
    } else if (lane.state == LaneState::kRunning && nodes_[lane.current].epoch == partition.epoch) {
      WEIR_ASSERT(running_ > 0);
      --running_;
      stop_handler_timer(index);
      --partition.records;
      forget_failure(index);
      quarantined_ -= lane.has(Lane::kQuarantined) ? 1U : 0U;
      lane.clear(Lane::kQuarantined);
    }
    discard_lane(index);
    index = next;
  }
  WEIR_ASSERT(partition.records == 0);
  partition.epoch = next_epoch;
  partition.is_open = false;
}

}  // namespace weir::internal
