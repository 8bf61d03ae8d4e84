#pragma once

#include "runtime/dispatch/dispatcher.h"
#include "runtime/lane/lane_runner.h"

#include <weir/runtime/session_engine.h>
#include <weir/runtime/thread_annotations.h>

#include <atomic>
#include <memory>
#include <string>
#include <unordered_map>
#include <vector>

namespace weir::internal {

// The driver around Dispatcher and LaneRunners.
//
// A commit is in three steps, so that no poll waits for a disk: a snapshot; every worker flushes
// what was promoted before it; the offsets are written when all have answered (C3, C7).
//
// Threading: as SessionEngine; notify() is called by the workers' threads.
class SessionEngineImpl final : public SessionEngine, GroupListener {
 public:
  SessionEngineImpl(const SessionOptions& options, Parts parts);
  ~SessionEngineImpl() override;

  Status join(std::vector<std::string> topics);
  Status run_once(Duration timeout) override;
  Status close(Close mode, Duration deadline) override;
  void finish(std::uint32_t worker, RunId run, Outcome outcome) override;
  void answer_letter(std::uint32_t worker, RunId letter, bool ok) override;
  void wake() override;
  SessionSignals signals() const override;
  std::vector<StuckRecord> stuck(std::size_t count_max) const override;
  std::vector<std::pair<TopicPartition, Offset>> positions() const override;
  std::optional<MonotonicTime> next_due() const override;

 private:
  void on_assigned(std::span<const TopicPartition> partitions) override;
  void on_revoked(std::span<const TopicPartition> partitions) override;
  void on_lost(std::span<const TopicPartition> partitions) override;

  MonotonicTime now() const { return parts_.clock->monotonic(); }
  std::uint32_t number_of(const TopicPartition& partition);
  std::vector<std::uint32_t> owned() const;
  Status assign_partitions(std::span<const TopicPartition> partitions);
  // Tells the source what is owned now; positions and pauses of what stays are kept.
  Status assign_source();
  // Reports in, messages out, rounds of workers without threads. True: something happened.
  bool exchange();
  void send_messages();
  void apply_pauses();
  // Begins a commit of `only` (empty: of all) and asks for the flushes.
  void begin_commit(std::span<const std::uint32_t> only);
  // Writes the offsets once every worker has flushed. Errors: those that no other commit mends.
  Status continue_commit();
  struct WrittenCommit {
    Status status;
    bool is_worth_repeating = false;
  };
  // Requires: a commit is in flight, every worker has flushed.
  WrittenCommit write_commit();
  // Commits `numbers` and repeats it while that may help, until `deadline`.
  Status commit_last(std::span<const std::uint32_t> numbers, MonotonicTime deadline);
  // What it would have committed stays to be committed.
  void give_up_commit();
  CommitResult commit_result(const Status& status) const;
  void lose_all();
  // Ends the epoch of a partition and says so.
  void release(std::uint32_t number);
  // Drains and commits `numbers`, until `deadline` at the latest, and gives them up. Requires: they
  // are assigned.
  Status hand_over(std::span<const std::uint32_t> numbers, Dispatcher::Drain drain,
                   MonotonicTime deadline);
  // Exchanges until `is_done` or the deadline. False: the deadline. A close goes on polling the
  // group meanwhile (2.14, T55); a callback must not.
  template <class IsDone>
  bool exchange_until(MonotonicTime deadline, IsDone is_done);
  Status poll_records(Duration timeout);
  Status take_block(RecordBlock& block, MonotonicTime time);
  // How long a poll may wait: not at all when a worker has reported meanwhile.
  Duration poll_timeout(Duration wanted);
  void report_gaps();
  Status keep_first(Status status);
  void notify();

  SessionOptions options_;
  Parts parts_;
  Dispatcher dispatcher_;
  std::vector<std::unique_ptr<LaneRunner>> workers_;
  std::vector<TopicPartition> names_;  // by the dispatcher's number
  std::unordered_map<TopicPartition, std::uint32_t> numbers_;
  std::vector<std::uint32_t> assignment_;  // the dispatcher's number of each index at the source
  std::vector<bool> paused_;               // by number
  std::vector<PartitionCommit> commit_;    // being flushed or written
  std::uint32_t flushes_left_ = 0;
  // Of the first flush that failed: what it lost may be below every later commit, so there is none.
  Status flush_failure_;
  Status poll_failure_;    // records were fetched that nobody handles: nothing more is polled
  Status callback_error_;  // of a callback of the group, for run_once() to return
  LaneRunner::Outbox outbox_;
  std::uint64_t commits_ = 0;
  std::uint64_t commit_failures_ = 0;
  bool is_joined_ = false;
  bool is_closed_ = false;
  bool is_in_callback_ = false;

  std::atomic<bool> wants_wakeup_{false};  // the polling thread may be in a poll
  Mutex mutex_;
  CondVar condition_;
  bool has_reports_ WEIR_GUARDED_BY(mutex_) = false;
};

}  // namespace weir::internal
