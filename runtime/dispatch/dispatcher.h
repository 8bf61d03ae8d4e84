#pragma once

#include "runtime/dispatch/commit_tracker.h"
#include "runtime/dispatch/finished_records.h"
#include "runtime/dispatch/held_blocks.h"
#include "runtime/dispatch/slot_table.h"
#include "runtime/lane/lane_messages.h"

#include <weir/runtime/backend.h>
#include <weir/runtime/commit_metadata.h>

#include <deque>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <vector>

namespace weir::internal {

enum class DispatchMode : std::uint8_t {
  kLocal,   // a partition's worker has all its lanes; for partitions >= workers
  kSpread,  // sessions over all workers by the slot table; one partition uses all of them
};

// The bit above says in a lane map that records without a key are sessions of their own.
inline constexpr std::uint16_t kExtractorsMax = 0x8000;

struct DispatchOptions {
  std::uint32_t workers = 1;
  DispatchMode mode = DispatchMode::kLocal;
  bool has_unordered_null_sessions = false;  // records without a key wait for nobody
  std::size_t window_max = 1U << 22U;        // records of a partition that a commit may wait for
  std::uint64_t bytes_max = 256U << 20U;     // of all blocks held; exceeded by one poll at most
  std::uint32_t batches_max = 4;             // messages under way to a worker
  bool writes_lane_map = true;
  std::uint16_t extractor = 0;  // names how sessions are made of records; below kExtractorsMax
  Duration commit_interval = std::chrono::seconds(1);
  std::uint64_t commit_records = 10'000;
  Duration gap_timeout{};  // 0: never skipped
  bool has_gap_guard = true;
  std::uint64_t gap_token_records = 50;  // finished records that pay for one skip
};

struct PauseChange {
  std::uint32_t partition = 0;
  bool is_paused = false;
};

struct PartitionCommit {
  std::uint32_t partition = 0;
  std::uint32_t epoch = 0;
  std::uint64_t version = 0;  // of the tracker, from the same moment (C3)
  CommittedOffset offset;
  bool may_have_map = false;  // refused as too large: without it, it may pass
};

enum class CommitResult : std::uint8_t {
  kOk,
  kRetry,             // rebalance in progress, time-out: stays dirty (C6)
  kMetadataTooLarge,  // again at once, without lane map
  kFenced,            // the partitions are lost: the caller calls lost() for them
};

// C9: an operational error that somebody must see.
struct SkippedGap {
  std::uint32_t partition = 0;
  Offset offset;
  Duration age{};
};

struct DispatchCounters {
  std::uint64_t accepted = 0;
  std::uint64_t duplicates = 0;      // C8
  std::uint64_t replay_skipped = 0;  // finished by a former owner
  std::uint64_t terminal = 0;
  std::uint64_t discarded = 0;     // handed to the next owner
  std::uint64_t stale = 0;         // completions of an epoch that ended
  std::uint64_t gate_dropped = 0;  // fetched for a partition that is not open
  std::uint64_t maps_ignored = 0;  // E3: another base, extractor or writer
  std::uint64_t maps_dropped = 0;  // C6 error 12
  std::uint64_t gaps_skipped = 0;
  std::uint64_t commit_regressions = 0;  // C2; must stay 0
};

// Tier one, a pure state machine: accepts fetched records, gives each to the worker of its session,
// collects what became of it and says what may be committed (session-workers 2.2 to 2.6, 2.10). It
// owns every fetched block until nobody reads it.
//
// Inputs are the calls below; outputs are messages(), pauses(), gaps() and what begin_commit()
// returns, which the driver takes after each round.
//
// Ordering:  messages of a worker are delivered in order, reports of a worker too.
// Bounds:    a partition whose window is full, whose worker has batches_max messages under way or
//            whose stash is high keeps the rest of its blocks, in order, and is paused alone.
//            Bytes: above three quarters the partitions above their share, at bytes_max all.
// Threading: confined to the polling thread.
class Dispatcher {
 public:
  explicit Dispatcher(const DispatchOptions& options);

  // --- assignment (2.6) ---------------------------------------------------------------------
  // `number` names one topic partition for the dispatcher's whole life. Reads
  // `committed.metadata`; what it cannot use is counted and not used (E3). `log_end`: records at or
  // above it are new (E4); kNoOffset: unknown. Requires: not assigned.
  void assign(std::uint32_t number, const CommittedOffset& committed, std::int32_t generation,
              Offset log_end);
  // Closes the gate and lets the workers drain; is_drained() follows. Blocks not dispatched go.
  enum class Drain { kRunning, kQueued };
  void drain(std::uint32_t number, Drain drain);
  bool is_drained(std::uint32_t number) const;
  // Ends the epoch: what is not terminal belongs to the next owner. After drain() and the final
  // commit, at its deadline, or at once when the partition is lost.
  void release(std::uint32_t number);
  bool is_assigned(std::uint32_t partition) const;
  std::uint32_t epoch(std::uint32_t partition) const { return partitions_[partition].epoch; }

  // --- records ------------------------------------------------------------------------------
  // `sessions`: of each record, borrowing from the block; empty: the keys.
  void offer(std::uint32_t number, RecordBlock block, std::vector<NullableBytes> sessions,
             MonotonicTime now);
  // A worker's report, cleared by the call.
  void take(std::uint32_t worker, ShardReport& report, MonotonicTime now);
  // Messages for `worker`, in order, since the last call.
  std::vector<ShardMessage> messages(std::uint32_t worker);
  // Gives a vector's memory back for the next message.
  void recycle(std::vector<Delivery> records);
  // Partitions to pause or resume since the last call, each at most once.
  std::vector<PauseChange> pauses();

  // --- commits (2.3) ------------------------------------------------------------------------
  bool is_commit_due(MonotonicTime now) const;
  // One snapshot of every partition that changed, or of `only`; empty: nothing to do. The caller
  // makes durable what was promoted before the call, then commits, then calls finish_commit().
  // Requires: no commit is in flight.
  std::vector<PartitionCommit> begin_commit(MonotonicTime now,
                                            std::span<const std::uint32_t> only = {});
  void finish_commit(CommitResult result);
  bool has_commit_in_flight() const { return !in_flight_.empty(); }
  // Partition time and operator times, written at every commit.
  CommitMetadata& times(std::uint32_t partition) { return partitions_[partition].times; }

  // --- stuck gaps (2.8) and signals -----------------------------------------------------------
  void check_gaps(MonotonicTime now);
  std::vector<SkippedGap> gaps() { return std::exchange(gaps_, {}); }
  std::vector<CommitTracker::Unfinished> stuck(std::uint32_t partition, std::size_t count) const;

  const std::optional<Error>& stop_cause() const { return stop_; }
  const CommitTracker& tracker(std::uint32_t partition) const {
    return *partitions_[partition].tracker;
  }
  Offset acked(std::uint32_t partition) const { return partitions_[partition].acked; }
  std::uint64_t bytes() const { return blocks_.bytes(); }
  // How much more may be fetched before everything pauses.
  std::uint64_t bytes_left() const {
    return blocks_.bytes() < options_.bytes_max ? options_.bytes_max - blocks_.bytes() : 0;
  }
  std::size_t blocks() const { return blocks_.live(); }
  SlotTable& slots() { return slots_; }
  const DispatchCounters& counters() const { return counters_; }

 private:
  enum class State : std::uint8_t { kUnassigned, kOpen, kDraining };
  struct Pending {
    std::uint32_t block = 0;
    std::uint32_t next = 0;  // record
  };
  struct Partition {
    State state = State::kUnassigned;
    std::uint32_t epoch = 0;
    std::unique_ptr<CommitTracker> tracker;  // assigned only
    std::optional<FinishedRecords> finished;
    std::deque<Pending> pending;
    std::uint32_t pressed = 0;   // workers whose stash is high
    std::vector<bool> draining;  // workers that have not drained yet
    std::uint64_t bytes = 0;
    bool is_paused = false;  // what the driver was told
    bool is_window_full = false;
    bool is_over_bytes = false;
    CommitMetadata times;
    Offset acked = kNoOffset;
    std::string acked_metadata;
    std::uint64_t acked_version = 0;
    std::uint64_t newly_terminal = 0;
    bool drops_map = false;                           // for the next commit
    std::map<std::uint64_t, std::uint16_t> failures;  // noted attempts, by seq
    std::uint64_t gap_credit = 0;                     // finished records that no skip was paid with
    std::uint64_t skipping = UINT64_MAX;              // seq that was asked to be skipped
    MonotonicTime skipping_since{};
  };

  std::uint32_t worker_of(std::uint32_t partition, std::uint64_t hash) const {
    return options_.mode == DispatchMode::kLocal ? partition % options_.workers
                                                 : slots_.worker(slot_of(hash));
  }
  void send_command(std::uint32_t worker, const ShardCommand& command);
  void command_workers(std::uint32_t number, ShardCommand::Kind kind);
  void pump(std::uint32_t number, MonotonicTime now);
  // False: no room; what is left stays pending.
  bool dispatch(std::uint32_t number, Pending& pending, MonotonicTime now);
  void route(std::uint32_t number, std::uint32_t block, std::uint32_t index);
  NullableBytes session_of(const HeldBlock& held, std::uint32_t index, std::uint64_t* hash) const;
  void drop_block(std::uint32_t id);
  void drop_pending(Partition& partition);
  void complete(const Completion& completion, MonotonicTime now);
  void finish_record(const Completion& completion, MonotonicTime now);
  void take_notes(const ShardReport& report);
  bool wants_pause(const Partition& partition) const;
  void update_bytes_pause(Partition& partition);
  bool has_congested_worker(std::uint32_t number) const;

  // dispatcher_commit.cc
  std::uint16_t session_maker() const;
  void read_map(Partition& partition, const CommittedOffset& committed, Offset log_end);
  std::string lane_map(const Partition& partition, std::size_t bytes_max);
  void list_unfinished(const CommitTracker& tracker, LaneMap& offsets, LaneMap& sessions);
  std::optional<PartitionCommit> snapshot(std::uint32_t number);
  bool may_skip(const Partition& partition, Duration age) const;

  DispatchOptions options_;
  std::vector<Partition> partitions_;
  HeldBlocks blocks_;
  SlotTable slots_;
  std::vector<std::vector<ShardMessage>> outbox_;  // by worker
  std::vector<std::uint32_t> under_way_;           // messages, by worker
  std::vector<bool> has_all_lanes_;                // by worker
  std::vector<std::vector<Delivery>> spare_;
  std::vector<PartitionCommit> in_flight_;
  std::vector<SkippedGap> gaps_;
  std::vector<std::uint64_t> seen_sessions_;  // scratch of lane_map()
  MonotonicTime last_commit_{};
  std::size_t assigned_ = 0;
  std::optional<Error> stop_;
  DispatchCounters counters_;
};

}  // namespace weir::internal
