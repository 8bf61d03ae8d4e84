#include "runtime/lane/lane_shard.h"

#include "runtime/dispatch/slot_table.h"

#include <weir/runtime/assert.h>

#include <utility>

namespace weir::internal {

namespace {

// Far enough for a miss in the table, then one in the lanes.
constexpr std::size_t kTableAhead = 16;
constexpr std::size_t kLaneAhead = 8;

}  // namespace

LaneShard::LaneShard(const LaneOptions& options, std::uint64_t seed)
    : options_(options), rng_(seed), timers_(lanes_) {}

LaneShard::~LaneShard() {
  for (const Partition& partition : partitions_) {
    for (std::uint32_t lane = partition.lanes; lane != kNone; lane = lanes_[lane].partition_next) {
      lanes_[lane].drop_session();
    }
  }
}

void LaneShard::open(std::uint32_t partition, std::uint32_t epoch, std::int32_t generation) {
  if (partition >= partitions_.size()) {
    partitions_.resize(partition + 1);
  }
  Partition& opened = partitions_[partition];
  WEIR_ASSERT(!opened.is_open && opened.records == 0);
  opened.epoch = epoch;
  opened.generation = generation;
  opened.is_open = true;
  opened.is_draining = false;
}

void LaneShard::apply(const ShardMessage& message, MonotonicTime now) {
  for (const ShardCommand& command : message.commands) {
    switch (command.kind) {
      case ShardCommand::Kind::kOpen:
        open(command.partition, command.epoch, command.generation);
        break;
      case ShardCommand::Kind::kDrainRunning:
        drain(command.partition, Drain::kRunning);
        break;
      case ShardCommand::Kind::kDrainQueued:
        drain(command.partition, Drain::kQueued);
        break;
      case ShardCommand::Kind::kDetach:
        detach(command.partition, command.epoch);
        break;
      case ShardCommand::Kind::kSkip:
        skip(command.partition, command.epoch, command.seq, now);
        break;
    }
  }
  if (!message.records.empty()) {
    deliver(message.records, now);
  }
}

bool LaneShard::has_room(const Lane& lane) const {
  return lane.length < options_.lane_records_max ||
         (lane.has(Lane::kFailing) && overflow_ < options_.backoff_records_max);
}

std::uint32_t LaneShard::find_lane(std::uint32_t partition, NullableBytes session,
                                   std::uint64_t hash) const {
  return table_.find(table_hash(hash, partition), [&](std::uint32_t index) {
    const Lane& lane = lanes_[index];
    return lane.hash == hash && lane.partition == partition && lane.is_session(session);
  });
}

std::uint32_t LaneShard::make_lane(std::uint32_t partition, NullableBytes session,
                                   std::uint64_t hash) {
  const std::uint32_t index = lanes_.acquire();
  Lane& lane = lanes_[index];
  lane = Lane{};
  lane.state = LaneState::kIdle;
  lane.hash = hash;
  lane.partition = partition;
  lane.take_session(session);
  Partition& owner = partitions_[partition];
  lane.partition_next = owner.lanes;
  if (owner.lanes != kNone) {
    lanes_[owner.lanes].partition_prev = index;
  }
  owner.lanes = index;
  table_.insert(table_hash(hash, partition), index);
  return index;
}

// Two steps ahead: the table's line, then the lane that it names.
void LaneShard::prefetch(std::span<const Delivery> records, std::size_t at) const {
  if (at + kTableAhead < records.size()) {
    const Delivery& ahead = records[at + kTableAhead];
    table_.prefetch(table_hash(ahead.hash, ahead.partition));
  }
  if (at + kLaneAhead < records.size()) {
    const Delivery& ahead = records[at + kLaneAhead];
    const std::uint32_t lane = table_.guess(table_hash(ahead.hash, ahead.partition));
    if (lane != kNone) {
      const char* const bytes = reinterpret_cast<const char*>(&lanes_[lane]);
      __builtin_prefetch(bytes);
      __builtin_prefetch(bytes + 64);
    }
  }
}

void LaneShard::deliver(std::span<const Delivery> records, MonotonicTime now) {
  now_ = now;
  ++report_.batches_received;
  for (std::size_t i = 0; i < records.size(); ++i) {
    prefetch(records, i);
    const Delivery& record = records[i];
    WEIR_ASSERT(record.partition < partitions_.size() && partitions_[record.partition].is_open);
    Partition& partition = partitions_[record.partition];
    std::uint32_t index = find_lane(record.partition, record.session, record.hash);
    if (index == kNone) {
      index = make_lane(record.partition, record.session, record.hash);
    }
    const std::uint32_t node = nodes_.acquire();
    nodes_[node] = {.record = record.record,
                    .seq = record.seq,
                    .block = record.block,
                    .epoch = partition.epoch,
                    .lane = index,
                    .failures = record.failures};
    ++partition.records;
    if (partition.stash_head != kNone || !has_room(lanes_[index])) {
      stash(partition, record.partition, node);
    } else {
      append(index, node);
    }
  }
}

void LaneShard::append(std::uint32_t index, std::uint32_t node) {
  Lane& lane = lanes_[index];
  nodes_[node].next = kNone;
  (lane.tail == kNone ? lane.head : nodes_[lane.tail].next) = node;
  lane.tail = node;
  ++lane.length;
  overflow_ += lane.length > options_.lane_records_max ? 1U : 0U;
  if (lane.state == LaneState::kIdle) {
    clear_evictable(index);
    make_ready(index, false);
  }
}

void LaneShard::push_front(std::uint32_t index, std::uint32_t node) {
  Lane& lane = lanes_[index];
  nodes_[node].next = lane.head;
  lane.head = node;
  lane.tail = lane.tail == kNone ? node : lane.tail;
  ++lane.length;
  overflow_ += lane.length > options_.lane_records_max ? 1U : 0U;
}

std::uint32_t LaneShard::pop_front(std::uint32_t index) {
  Lane& lane = lanes_[index];
  const std::uint32_t node = lane.head;
  overflow_ -= lane.length > options_.lane_records_max ? 1U : 0U;
  lane.head = nodes_[node].next;
  lane.tail = lane.head == kNone ? kNone : lane.tail;
  --lane.length;
  if (partitions_[lane.partition].stash_head != kNone) {
    drain_stash(lane.partition);
  }
  return node;
}

void LaneShard::stash(Partition& partition, std::uint32_t number, std::uint32_t node) {
  nodes_[node].next = kNone;
  (partition.stash_tail == kNone ? partition.stash_head : nodes_[partition.stash_tail].next) = node;
  partition.stash_tail = node;
  ++lanes_[nodes_[node].lane].stashed;
  // A lane that is only in the stash is not idle.
  clear_evictable(nodes_[node].lane);
  ++partition.stash_count;
  if (!partition.is_pressed && partition.stash_count >= options_.stash_records_high) {
    partition.is_pressed = true;
    report_.pressure.push_back({number, partition.epoch, true});
  }
}

void LaneShard::drain_stash(std::uint32_t number) {
  Partition& partition = partitions_[number];
  while (partition.stash_head != kNone && has_room(lanes_[nodes_[partition.stash_head].lane])) {
    const std::uint32_t node = partition.stash_head;
    partition.stash_head = nodes_[node].next;
    partition.stash_tail = partition.stash_head == kNone ? kNone : partition.stash_tail;
    --partition.stash_count;
    --lanes_[nodes_[node].lane].stashed;
    append(nodes_[node].lane, node);
  }
  if (partition.is_pressed && partition.stash_count <= options_.stash_records_low) {
    partition.is_pressed = false;
    report_.pressure.push_back({number, partition.epoch, false});
  }
}

void LaneShard::make_ready(std::uint32_t index, bool at_front) {
  Lane& lane = lanes_[index];
  lane.state = LaneState::kReady;
  Partition& partition = partitions_[lane.partition];
  if (at_front && partition.ready_head != kNone) {
    lane.next = partition.ready_head;
    partition.ready_head = index;
  } else {
    lane.next = kNone;
    (partition.ready_tail == kNone ? partition.ready_head : lanes_[partition.ready_tail].next) =
        index;
    partition.ready_tail = index;
  }
  if (!partition.in_turn) {
    partition.in_turn = true;
    partition.credit = options_.partition_quantum;
    partition.turn_next = kNone;
    (turn_tail_ == kNone ? turn_head_ : partitions_[turn_tail_].turn_next) = lane.partition;
    turn_tail_ = lane.partition;
  }
}

std::uint32_t LaneShard::next_ready() {
  while (turn_head_ != kNone) {
    const std::uint32_t number = turn_head_;
    Partition& partition = partitions_[number];
    if (partition.ready_head != kNone && partition.credit > 0) {
      --partition.credit;
      const std::uint32_t index = partition.ready_head;
      partition.ready_head = lanes_[index].next;
      if (partition.ready_head == kNone) {
        partition.ready_tail = kNone;
      } else {
        __builtin_prefetch(reinterpret_cast<const char*>(&lanes_[partition.ready_head]) + 64);
      }
      return index;
    }
    turn_head_ = partition.turn_next;
    turn_tail_ = turn_head_ == kNone ? kNone : turn_tail_;
    partition.in_turn = partition.ready_head != kNone;
    if (partition.in_turn) {
      partition.credit = options_.partition_quantum;
      partition.turn_next = kNone;
      (turn_tail_ == kNone ? turn_head_ : partitions_[turn_tail_].turn_next) = number;
      turn_tail_ = number;
    }
  }
  return kNone;
}

bool LaneShard::start(Attempt& attempt, MonotonicTime now) {
  while (running_ < options_.running_max) {
    const std::uint32_t index = next_ready();
    if (index == kNone) {
      return false;
    }
    Lane& lane = lanes_[index];
    lane.current = pop_front(index);
    if (lane.has(Lane::kQuarantined)) {
      begin_letter(index, DeadLetterReason::kQuarantined, now);
      continue;
    }
    const RecordNode& node = nodes_[lane.current];
    const Partition& partition = partitions_[lane.partition];
    lane.state = LaneState::kRunning;
    run_number_ = run_number_ == UINT32_MAX ? 1 : run_number_ + 1;
    lane.run_number = run_number_;
    ++running_;
    if (options_.handler_timeout > Duration::zero()) {
      lane.set(Lane::kTimed);
      timers_.add(index, now + options_.handler_timeout);
    }
    attempt = {.run = {index, lane.run_number},
               .partition = lane.partition,
               .number = node.failures + 1U,
               .record = node.record,
               .session = lane.session(),
               .fence = {partition.generation, partition.epoch}};
    return true;
  }
  return false;
}

void LaneShard::finish(RunId run, Outcome outcome, MonotonicTime now) {
  if (run.number == 0 || !lanes_.contains(run.lane) ||
      lanes_[run.lane].state != LaneState::kRunning || lanes_[run.lane].run_number != run.number) {
    ++counters_.duplicate_completions;
    return;
  }
  now_ = now;
  Lane& lane = lanes_[run.lane];
  lane.run_number = 0;
  if (nodes_[lane.current].epoch != partitions_[lane.partition].epoch) {
    finish_detached(run.lane, std::move(outcome));
    return;
  }
  WEIR_ASSERT(running_ > 0);
  --running_;
  stop_handler_timer(run.lane);
  lane.state = LaneState::kIdle;  // until what follows says otherwise
  if (lane.has(Lane::kSkipping)) [[unlikely]] {
    finish_skipped(run.lane, std::move(outcome));
    return;
  }
  switch (outcome.kind) {
    case Outcome::Kind::kOk:
      ++counters_.finished;
      if (lane.has(Lane::kFailing)) {
        forget_failure(run.lane);
      }
      complete(run.lane, lane.current, Fate::kDone);
      settle(run.lane, true);
      break;
    case Outcome::Kind::kRetry:
      retry(run.lane, std::move(outcome), now);
      break;
    case Outcome::Kind::kDead:
      failure(run.lane, now).cause = std::move(outcome.cause);
      if (nodes_[lane.current].failures < 0xffff) {
        ++nodes_[lane.current].failures;
      }
      begin_letter(run.lane, DeadLetterReason::kPermanent, now);
      break;
    case Outcome::Kind::kStop:
      halt(run.lane, std::move(outcome.cause));
      break;
  }
}

void LaneShard::settle(std::uint32_t index, bool in_turn) {
  Lane& lane = lanes_[index];
  lane.current = kNone;
  if (lane.length > 0) {
    const bool stays = in_turn && ++lane.served < options_.lane_quantum;
    lane.served = stays ? lane.served : std::uint8_t{0};
    make_ready(index, stays);
    return;
  }
  lane.served = 0;
  lane.state = LaneState::kIdle;
  if (lane.stashed > 0 || lane.has(Lane::kQuarantined)) {
    return;
  }
  const Partition& partition = partitions_[lane.partition];
  if (!partition.is_open || partition.is_draining) {
    evict(index);
  } else {
    set_evictable(index);
  }
}

void LaneShard::push_completion(const Lane& lane, const RecordNode& node, Fate fate,
                                bool releases) {
  report_.completions.push_back({.partition = lane.partition,
                                 .epoch = node.epoch,
                                 .seq = node.seq,
                                 .block = node.block,
                                 .slot = slot_of(lane.hash),
                                 .fate = fate,
                                 .releases = releases});
}

void LaneShard::complete(std::uint32_t index, std::uint32_t node, Fate fate) {
  push_completion(lanes_[index], nodes_[node], fate, true);
  release_node(partitions_[lanes_[index].partition], node);
}

void LaneShard::release_node(Partition& partition, std::uint32_t node) {
  if (nodes_[node].epoch == partition.epoch) {
    --partition.records;
    if (partition.records == 0 && partition.is_draining) {
      report_.drained.push_back(
          {static_cast<std::uint32_t>(&partition - partitions_.data()), partition.epoch});
    }
  }
  nodes_.release(node);
}

}  // namespace weir::internal
