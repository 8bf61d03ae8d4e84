#pragma once

#include "runtime/lane/chunked_pool.h"
#include "runtime/lane/lane.h"
#include "runtime/lane/lane_messages.h"
#include "runtime/lane/lane_table.h"
#include "runtime/lane/timer_wheel.h"

#include <weir/runtime/lanes.h>
#include <weir/runtime/retry_policy.h>
#include <weir/runtime/rng.h>

#include <cstddef>
#include <cstdint>
#include <deque>
#include <optional>
#include <span>
#include <unordered_map>
#include <vector>

namespace weir::internal {

struct LaneOptions {
  RetryPolicy retry;
  std::uint32_t lane_records_max = 1'024;
  // Further records behind heads in back-off, of all lanes: failing sessions wait on this budget of
  // their own, so that healthy sessions of their partitions go on.
  std::uint32_t backoff_records_max = 131'072;
  std::uint32_t stash_records_high = 2'048;
  std::uint32_t stash_records_low = 512;
  std::uint32_t running_max = 1'024;
  std::uint32_t lanes_max = 1'000'000;
  std::uint32_t quarantined_max = 10'000;
  Duration lane_idle = std::chrono::seconds(30);
  Duration handler_timeout{};            // 0: none; then the attempt is asked to stop, once
  std::uint8_t lane_quantum = 16;        // records of a lane before it goes to the tail
  std::uint32_t partition_quantum = 64;  // records of a partition before the next one's turn
};

struct ShardCounters {
  std::uint64_t finished = 0;
  std::uint64_t retries = 0;
  std::uint64_t dead_lettered = 0;
  std::uint64_t dropped = 0;
  std::uint64_t quarantined_records = 0;
  std::uint64_t letter_failures = 0;
  std::uint64_t duplicate_completions = 0;    // T8: a second completion of an attempt
  std::uint64_t late_success_after_skip = 0;  // 2.8
  std::uint64_t handler_timeouts = 0;
  std::uint64_t detached_returns = 0;
  std::uint64_t quarantine_overflow = 0;  // sessions that found the quarantine full
};

// The lanes of one worker: a pure state machine (session-workers 2.2 to 2.10). Records of a session
// run one after the other, in the order of their partition; a failed one waits on a timer with the
// later ones behind it; nothing here knows a thread, a clock or a handler.
//
// Inputs are the calls below, each with the time where it matters; outputs are what start() gives,
// report(), letters() and cancels(), which the driver takes after each round.
//
// Fairness:  ready lanes of a partition in turn, lane_quantum records each; partitions in turn,
//            partition_quantum records each; a retry enters at the tail.
// Bounds:    lane full: the record and all that follow it in its partition wait in the partition's
//            stash, in order; stash high: report().pressure asks to pause that partition alone. The
//            dispatcher's window bounds what may still arrive. In back-off a lane grows on
//            backoff_records_max. Idle lanes go after lane_idle, the oldest at once above
//            lanes_max.
// Threading: confined to its worker.
class LaneShard {
 public:
  LaneShard(const LaneOptions& options, std::uint64_t seed);
  LaneShard(const LaneShard&) = delete;
  LaneShard& operator=(const LaneShard&) = delete;
  ~LaneShard();

  // What the dispatcher sends: the calls below, in its order.
  void apply(const ShardMessage& message, MonotonicTime now);

  // Records of `partition` arrive under `epoch` from now on.
  void open(std::uint32_t partition, std::uint32_t epoch, std::int32_t generation);
  // Appends records in the order given. Requires: their partitions are open.
  void deliver(std::span<const Delivery> records, MonotonicTime now);

  // The next attempt; false when nothing is ready or running_max attempts are open.
  bool start(Attempt& attempt, MonotonicTime now);
  // The attempt's outcome, from the handler or later. A second one for the same run is ignored and
  // counted (T8).
  void finish(RunId run, Outcome outcome, MonotonicTime now);
  // Whether the dead-letter topic has the record for good. Not ok: written again after a back-off.
  void letter_done(RunId letter, bool ok, MonotonicTime now);
  // Due timers and idle lanes.
  void advance(MonotonicTime now);
  std::optional<MonotonicTime> next_due() const;

  enum class Drain {
    kRunning,  // what runs may end, what waits is the next owner's
    kQueued,   // everything that is here runs to its end
  };
  // report().drained follows once nothing of the partition is left here. (2.6 steps 1 to 3)
  void drain(std::uint32_t number, Drain drain);
  // Ends the epoch whatever is left: queued records are discarded, letters forgotten, running
  // handlers become tombstones behind which the session waits (2.6 step 6).
  void detach(std::uint32_t number, std::uint32_t next_epoch);
  // 2.8: dead-letters a stuck record that runs or waits for its retry. Nothing when it does
  // neither.
  void skip(std::uint32_t partition, std::uint32_t epoch, std::uint32_t seq, MonotonicTime now);
  // Puts a session into quarantine (restored state), or lets it out once its letters are redriven.
  void quarantine(std::uint32_t partition, NullableBytes session, std::uint64_t hash);
  void release(std::uint32_t partition, NullableBytes session, std::uint64_t hash);

  // Outputs since the caller last cleared them.
  ShardReport& report() { return report_; }
  std::vector<DeadLetter>& letters() { return letters_; }
  // Attempts whose handlers should stop.
  std::vector<RunId>& cancels() { return cancels_; }

  struct Size {
    std::size_t lanes = 0;
    std::size_t records = 0;
    std::size_t running = 0;
    std::size_t waiting = 0;  // timers: in back-off, or running with a time-out
    std::size_t quarantined = 0;
    std::size_t memory = 0;  // bytes of lanes, table and records
  };
  Size size() const;
  const ShardCounters& counters() const { return counters_; }

  struct LaneInfo {
    std::uint32_t partition = 0;
    NullableBytes session;
    LaneState state = LaneState::kIdle;
    Offset offset;  // of the record at its head; kNoOffset: none
    std::uint32_t failures = 0;
    std::uint32_t queued = 0;
    bool is_tombstone = false;
  };
  // Lanes that are not idle, at most `count_max`. Borrows their sessions until the next call.
  std::vector<LaneInfo> busy_lanes(std::size_t count_max) const;

 private:
  struct Partition {
    std::uint32_t epoch = 0;
    std::int32_t generation = -1;
    bool is_open = false;
    bool is_draining = false;
    bool keeps_queued = false;  // draining with Drain::kQueued
    bool is_pressed = false;
    bool in_turn = false;  // in the ring of partitions with ready lanes
    std::uint32_t ready_head = kNone;
    std::uint32_t ready_tail = kNone;
    std::uint32_t turn_next = kNone;
    std::uint32_t credit = 0;  // records left of its turn
    std::uint32_t lanes = kNone;
    std::uint32_t stash_head = kNone;
    std::uint32_t stash_tail = kNone;
    std::uint32_t stash_count = 0;
    std::uint64_t records = 0;  // of this epoch, here
  };
  struct Failure {
    MonotonicTime first{};
    MonotonicTime last{};
    Status cause;
    DeadLetterReason reason = DeadLetterReason::kPermanent;
    std::uint32_t letter = 0;           // number of the letter in flight; 0: none
    std::uint32_t letter_failures = 0;  // of this record
  };

  static std::uint32_t table_hash(std::uint64_t hash, std::uint32_t partition) {
    return static_cast<std::uint32_t>((hash + partition * 0x9e3779b97f4a7c15ULL) >> 24U);
  }
  void prefetch(std::span<const Delivery> records, std::size_t at) const;
  bool has_room(const Lane& lane) const;
  std::uint32_t find_lane(std::uint32_t partition, NullableBytes session, std::uint64_t hash) const;
  std::uint32_t make_lane(std::uint32_t partition, NullableBytes session, std::uint64_t hash);
  void evict(std::uint32_t index);
  void append(std::uint32_t index, std::uint32_t node);
  void push_front(std::uint32_t index, std::uint32_t node);
  std::uint32_t pop_front(std::uint32_t index);
  void stash(Partition& partition, std::uint32_t number, std::uint32_t node);
  void drain_stash(std::uint32_t number);
  void make_ready(std::uint32_t index, bool at_front);
  std::uint32_t next_ready();
  // The lane has no current record: ready, idle or gone.
  void settle(std::uint32_t index, bool in_turn);
  void set_evictable(std::uint32_t index);
  void clear_evictable(std::uint32_t index);
  void evict_idle();
  void complete(std::uint32_t index, std::uint32_t node, Fate fate);
  void push_completion(const Lane& lane, const RecordNode& node, Fate fate, bool releases);
  void release_node(Partition& partition, std::uint32_t node);

  // lane_failure.cc
  void stop_handler_timer(std::uint32_t index);
  void finish_skipped(std::uint32_t index, Outcome outcome);
  void finish_detached(std::uint32_t index, Outcome outcome);
  Failure& failure(std::uint32_t index, MonotonicTime now);
  void forget_failure(std::uint32_t index);
  void retry(std::uint32_t index, Outcome outcome, MonotonicTime now);
  void exhaust(std::uint32_t index, Duration min_delay, MonotonicTime now);
  void wait(std::uint32_t index, Duration delay, MonotonicTime now);
  void begin_letter(std::uint32_t index, DeadLetterReason reason, MonotonicTime now);
  void send_letter(std::uint32_t index);
  void set_quarantined(std::uint32_t index);
  void report_stop(Status cause);
  void halt(std::uint32_t index, Status cause);

  // lane_drain.cc
  void discard_stash(std::uint32_t number);
  void discard_stashed(std::uint32_t index);
  void discard_queue(std::uint32_t index);
  void discard_lane(std::uint32_t index);
  void check_drained(std::uint32_t number);

  LaneOptions options_;
  Rng rng_;
  ChunkedPool<Lane> lanes_;
  ChunkedPool<RecordNode> nodes_;
  LaneTable table_;
  TimerWheel<ChunkedPool<Lane>> timers_;
  std::vector<Partition> partitions_;
  std::unordered_map<std::uint32_t, Failure> failures_;  // by lane
  std::uint32_t turn_head_ = kNone;
  std::uint32_t turn_tail_ = kNone;
  // Lanes that may be idle, about the longest idle first; at most one entry a lane, so that a lane
  // that works on touches no other. An entry of a lane that went may be left: it names a free lane,
  // or one that took its place and is then looked at early.
  std::deque<std::uint32_t> idle_queue_;
  std::size_t evictable_ = 0;
  std::uint32_t running_ = 0;
  std::uint32_t run_number_ = 0;
  std::uint32_t quarantined_ = 0;
  std::uint64_t overflow_ = 0;  // records above lane_records_max, of all lanes
  bool is_full_ = false;        // as last reported
  MonotonicTime now_{};
  ShardReport report_;
  std::vector<DeadLetter> letters_;
  std::vector<RunId> cancels_;
  ShardCounters counters_;
};

}  // namespace weir::internal
