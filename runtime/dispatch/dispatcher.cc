#include "runtime/dispatch/dispatcher.h"

#include <weir/runtime/assert.h>
#include <weir/runtime/session_hash.h>

#include <algorithm>
#include <utility>

namespace weir::internal {

namespace {

// What stands for records without a key; any other value would do.
constexpr std::uint64_t kNullSessionHash = 0x6e756c6c20736573ULL;
constexpr std::size_t kSpareVectorsMax = 16;

}  // namespace

Dispatcher::Dispatcher(const DispatchOptions& options)
    : options_(options),
      slots_(options.workers),
      outbox_(options.workers),
      under_way_(options.workers, 0),
      has_all_lanes_(options.workers, false) {}

void Dispatcher::assign(std::uint32_t number, const CommittedOffset& committed,
                        std::int32_t generation, Offset log_end) {
  if (number >= partitions_.size()) {
    partitions_.resize(number + 1);
  }
  Partition& partition = partitions_[number];
  WEIR_ASSERT(partition.state == State::kUnassigned);
  const std::uint32_t epoch = partition.epoch + 1;
  const std::uint64_t bytes = partition.bytes;  // of blocks that detached handlers still read
  partition = Partition{};
  partition.bytes = bytes;
  partition.epoch = epoch;
  partition.state = State::kOpen;
  partition.acked = committed.offset;
  partition.tracker = std::make_unique<CommitTracker>(committed.offset, committed.leader_epoch,
                                                      options_.window_max);
  partition.acked_version = partition.tracker->version();
  read_map(partition, committed, log_end);
  ++assigned_;
  for (std::uint32_t worker = 0; worker < options_.workers; ++worker) {
    if (options_.mode == DispatchMode::kSpread || worker == worker_of(number, 0)) {
      send_command(worker, {.kind = ShardCommand::Kind::kOpen,
                            .partition = number,
                            .epoch = epoch,
                            .generation = generation});
    }
  }
}

bool Dispatcher::is_assigned(std::uint32_t partition) const {
  return partition < partitions_.size() && partitions_[partition].state != State::kUnassigned;
}

void Dispatcher::send_command(std::uint32_t worker, const ShardCommand& command) {
  std::vector<ShardMessage>& messages = outbox_[worker];
  if (messages.empty() || !messages.back().records.empty()) {
    messages.emplace_back();
  }
  messages.back().commands.push_back(command);
}

void Dispatcher::command_workers(std::uint32_t number, ShardCommand::Kind kind) {
  for (std::uint32_t worker = 0; worker < options_.workers; ++worker) {
    if (options_.mode == DispatchMode::kSpread || worker == worker_of(number, 0)) {
      send_command(worker, {.kind = kind, .partition = number, .epoch = partitions_[number].epoch});
    }
  }
}

void Dispatcher::drain(std::uint32_t number, Drain drain) {
  Partition& partition = partitions_[number];
  WEIR_ASSERT(partition.state != State::kUnassigned);
  // A second call may only ask for less.
  if (partition.state == State::kDraining && drain == Drain::kQueued) {
    return;
  }
  partition.state = State::kDraining;
  partition.draining.assign(options_.workers, options_.mode == DispatchMode::kSpread);
  partition.draining[worker_of(number, 0)] = true;
  drop_pending(partition);
  command_workers(number, drain == Drain::kQueued ? ShardCommand::Kind::kDrainQueued
                                                  : ShardCommand::Kind::kDrainRunning);
}

bool Dispatcher::is_drained(std::uint32_t number) const {
  const Partition& partition = partitions_[number];
  return partition.state == State::kUnassigned ||
         (partition.state == State::kDraining &&
          std::find(partition.draining.begin(), partition.draining.end(), true) ==
              partition.draining.end());
}

void Dispatcher::release(std::uint32_t number) {
  Partition& partition = partitions_[number];
  WEIR_ASSERT(partition.state != State::kUnassigned);
  drop_pending(partition);
  ++partition.epoch;
  partition.state = State::kUnassigned;
  partition.tracker.reset();
  partition.finished.reset();
  partition.failures.clear();
  partition.pressed = 0;
  partition.is_paused = false;
  --assigned_;
  command_workers(number, ShardCommand::Kind::kDetach);
}

void Dispatcher::drop_pending(Partition& partition) {
  for (const Pending& pending : partition.pending) {
    counters_.discarded += blocks_[pending.block].block.records.size() - pending.next;
    drop_block(pending.block);
  }
  partition.pending.clear();
}

void Dispatcher::drop_block(std::uint32_t id) {
  HeldBlock& held = blocks_[id];
  WEIR_ASSERT(held.readers > 0);
  if (--held.readers == 0) {
    partitions_[held.partition].bytes -= held.bytes;
    blocks_.drop(id);
  }
}

void Dispatcher::offer(std::uint32_t number, RecordBlock block, std::vector<NullableBytes> sessions,
                       MonotonicTime now) {
  if (!is_assigned(number) || partitions_[number].state != State::kOpen || stop_.has_value()) {
    counters_.gate_dropped += block.records.size();
    return;
  }
  Partition& partition = partitions_[number];
  const std::uint32_t id = blocks_.hold(std::move(block), std::move(sessions), number);
  partition.bytes += blocks_[id].bytes;
  partition.pending.push_back({id, 0});
  pump(number, now);
}

bool Dispatcher::has_congested_worker(std::uint32_t number) const {
  if (options_.mode == DispatchMode::kLocal) {
    return under_way_[worker_of(number, 0)] >= options_.batches_max;
  }
  return std::any_of(under_way_.begin(), under_way_.end(),
                     [&](std::uint32_t count) { return count >= options_.batches_max; });
}

void Dispatcher::pump(std::uint32_t number, MonotonicTime now) {
  Partition& partition = partitions_[number];
  while (!partition.pending.empty() && dispatch(number, partition.pending.front(), now)) {
    const std::uint32_t block = partition.pending.front().block;
    partition.tracker->skip_to(blocks_[block].block.next_offset);
    partition.pending.pop_front();
    drop_block(block);
  }
}

bool Dispatcher::dispatch(std::uint32_t number, Pending& pending, MonotonicTime now) {
  Partition& partition = partitions_[number];
  HeldBlock& held = blocks_[pending.block];
  if (held.block.records.empty()) {
    return true;
  }
  if (has_congested_worker(number)) {
    return false;
  }
  CommitTracker& tracker = *partition.tracker;
  tracker.begin_batch(now, held.block.leader_epoch);
  const auto end = static_cast<std::uint32_t>(held.block.records.size());
  for (; pending.next < end; ++pending.next) {
    if (tracker.full()) {
      partition.is_window_full = true;
      return false;
    }
    route(number, pending.block, pending.next);
  }
  return true;
}

NullableBytes Dispatcher::session_of(const HeldBlock& held, std::uint32_t index,
                                     std::uint64_t* hash) const {
  const RecordView& record = held.block.records[index];
  const NullableBytes session = held.sessions.empty() ? record.key : held.sessions[index];
  if (!session.is_null()) {
    *hash = session_hash(session.view());
    return session;
  }
  if (options_.has_unordered_null_sessions) {
    // Its offset is its session: the same after a restart, so a lane map can name it.
    const ByteView own(reinterpret_cast<const char*>(&record.offset), sizeof(record.offset));
    *hash = session_hash(own);
    return own;
  }
  *hash = kNullSessionHash;
  return {};
}

void Dispatcher::route(std::uint32_t number, std::uint32_t block, std::uint32_t index) {
  Partition& partition = partitions_[number];
  HeldBlock& held = blocks_[block];
  const RecordView& record = held.block.records[index];
  Delivery delivery{.record = &record, .partition = number, .block = block};
  delivery.session = session_of(held, index, &delivery.hash);
  const std::optional<std::uint64_t> seq = partition.tracker->accept(record.offset, delivery.hash);
  if (!seq.has_value()) {
    ++counters_.duplicates;
    return;
  }
  ++counters_.accepted;
  partition.times.partition_time = std::max(partition.times.partition_time, record.timestamp);
  if (partition.finished.has_value()) [[unlikely]] {
    if (partition.finished->contains(record.offset, delivery.hash)) {
      ++counters_.replay_skipped;
      ++counters_.terminal;
      partition.tracker->done(*seq);
      return;
    }
    delivery.failures = partition.finished->failures(record.offset);
    if (delivery.failures > 0) {
      partition.failures[*seq] = delivery.failures;
    }
    if (record.offset > partition.finished->last()) {
      partition.finished.reset();
    }
  }
  delivery.seq = static_cast<std::uint32_t>(*seq);
  ++held.readers;
  if (options_.mode == DispatchMode::kSpread) {
    slots_.sent(slot_of(delivery.hash));
  }
  std::vector<ShardMessage>& messages = outbox_[worker_of(number, delivery.hash)];
  if (messages.empty()) {
    messages.emplace_back();
  }
  if (messages.back().records.capacity() == 0 && !spare_.empty()) {
    messages.back().records = std::move(spare_.back());
    spare_.pop_back();
  }
  messages.back().records.push_back(delivery);
}

std::vector<ShardMessage> Dispatcher::messages(std::uint32_t worker) {
  std::vector<ShardMessage> taken = std::exchange(outbox_[worker], {});
  for (const ShardMessage& message : taken) {
    under_way_[worker] += message.records.empty() ? 0U : 1U;
  }
  return taken;
}

void Dispatcher::recycle(std::vector<Delivery> records) {
  if (spare_.size() < kSpareVectorsMax && records.capacity() > 0) {
    records.clear();
    spare_.push_back(std::move(records));
  }
}

void Dispatcher::finish_record(const Completion& completion, MonotonicTime now) {
  Partition& partition = partitions_[completion.partition];
  if (completion.epoch != partition.epoch || partition.tracker == nullptr) {
    ++counters_.stale;
    return;
  }
  CommitTracker& tracker = *partition.tracker;
  const std::uint64_t seq = tracker.widen(completion.seq);
  if (completion.fate == Fate::kGapSkipped) [[unlikely]] {
    ++counters_.gaps_skipped;
    const CommitTracker::Unfinished first = tracker.stuck(1).front();
    gaps_.push_back({completion.partition, tracker.offset_of(seq),
                     first.seq == seq ? now - first.accepted_at : Duration{}});
  }
  const bool is_first_end = tracker.done(seq);
  WEIR_ASSERT(is_first_end);
  ++counters_.terminal;
  ++partition.newly_terminal;
  ++partition.gap_credit;
  if (!partition.failures.empty()) [[unlikely]] {
    partition.failures.erase(seq);
  }
}

void Dispatcher::complete(const Completion& completion, MonotonicTime now) {
  if (is_terminal(completion.fate)) {
    finish_record(completion, now);
  } else if (completion.fate == Fate::kDiscarded) {
    ++counters_.discarded;
  }
  if (completion.releases) {
    drop_block(completion.block);
    if (options_.mode == DispatchMode::kSpread) {
      slots_.returned(completion.slot);
    }
  }
}

void Dispatcher::take_notes(const ShardReport& report) {
  for (const AttemptNote& note : report.notes) {
    Partition& partition = partitions_[note.partition];
    if (note.epoch == partition.epoch && partition.tracker != nullptr) {
      const std::uint64_t seq = partition.tracker->widen(note.seq);
      if (!partition.tracker->is_done(seq)) {
        partition.failures[seq] = note.failures;
      }
    }
  }
  for (const Pressure& pressure : report.pressure) {
    Partition& partition = partitions_[pressure.partition];
    if (pressure.epoch != partition.epoch || partition.state == State::kUnassigned) {
      continue;
    }
    if (pressure.is_high) {
      ++partition.pressed;
    } else {
      WEIR_ASSERT(partition.pressed > 0);
      --partition.pressed;
    }
  }
}

void Dispatcher::take(std::uint32_t worker, ShardReport& report, MonotonicTime now) {
  for (const Completion& completion : report.completions) {
    complete(completion, now);
  }
  take_notes(report);
  for (const Drained& drained : report.drained) {
    Partition& partition = partitions_[drained.partition];
    if (drained.epoch == partition.epoch && partition.state == State::kDraining) {
      partition.draining[worker] = false;
    }
  }
  if (report.stop.has_value() && !stop_.has_value()) {
    stop_ = std::move(report.stop);
  }
  has_all_lanes_[worker] = report.is_full.value_or(has_all_lanes_[worker]);
  under_way_[worker] -= report.batches_received;
  report.clear();
  for (std::uint32_t number = 0; number < partitions_.size(); ++number) {
    Partition& partition = partitions_[number];
    if (partition.state == State::kOpen && !partition.pending.empty()) {
      pump(number, now);
    }
  }
}

void Dispatcher::update_bytes_pause(Partition& partition) {
  const std::uint64_t total = blocks_.bytes();
  const std::uint64_t share =
      std::max<std::uint64_t>(1U << 20U, options_.bytes_max / std::max<std::size_t>(1, assigned_));
  const std::uint64_t high = options_.bytes_max / 4 * 3;
  if (total >= options_.bytes_max || (total >= high && partition.bytes >= share)) {
    partition.is_over_bytes = true;
  } else if (total < options_.bytes_max / 2 || (total < high && partition.bytes < share / 2)) {
    partition.is_over_bytes = false;
  }
}

bool Dispatcher::wants_pause(const Partition& partition) const {
  return partition.state == State::kDraining || stop_.has_value() || !partition.pending.empty() ||
         partition.pressed > 0 || partition.is_window_full || partition.is_over_bytes ||
         std::find(has_all_lanes_.begin(), has_all_lanes_.end(), true) != has_all_lanes_.end();
}

std::vector<PauseChange> Dispatcher::pauses() {
  std::vector<PauseChange> changes;
  for (std::uint32_t number = 0; number < partitions_.size(); ++number) {
    Partition& partition = partitions_[number];
    if (partition.state == State::kUnassigned) {
      continue;
    }
    update_bytes_pause(partition);
    // Wide hysteresis: a pause costs a remote client what it has prefetched (2.10).
    if (partition.tracker->window() <= options_.window_max / 4 * 3) {
      partition.is_window_full = false;
    }
    const bool wanted = wants_pause(partition);
    if (wanted != partition.is_paused) {
      partition.is_paused = wanted;
      changes.push_back({number, wanted});
    }
  }
  return changes;
}

}  // namespace weir::internal
