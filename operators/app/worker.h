#pragma once

#include "operators/app/app_core.h"
#include "operators/app/restorer.h"
#include "operators/task/task.h"

#include <weir/operators/app.h>
#include <weir/runtime/backend.h>

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace weir::internal {

// One stream thread: reads for its tasks, processes, commits (streams-features 2.1 TIME-7, TIME-8,
// 2.17). Driven by step(); whether a thread or a simulation calls it makes no difference.
//
// Commit, for all tasks of the thread together, in this order:
//   1. flush caches, upstream stores first; results go to the sink
//   2. write changelogs
//   3. flush the sink: all of it is below the high watermark
//   4. commit the offsets of the FIFOs' heads with partition times
//   5. promote the stores
//   6. now and then: begin a checkpoint, delete what was read of repartition topics
// When 1 to 4 fail in a way that may pass, the same commit is tried again before anything else is
// processed. Otherwise the tasks are given up and made again from checkpoints, changelogs and
// committed offsets ("revived"): a scope whose changelog was appended is never dropped.
//
// Threading: confined to one thread, except wake().
class Worker {
 public:
  // Borrows `core`.
  Worker(AppCore& core, std::size_t index);
  ~Worker();
  Worker(const Worker&) = delete;
  Worker& operator=(const Worker&) = delete;

  // One pass; waits up to `timeout` for records when there is nothing to do.
  void step(Duration timeout);
  // Makes a step() that waits return. Thread-safe.
  void wake();
  bool is_stopped() const { return phase_ == Phase::kStopped; }

 private:
  enum class Phase {
    kIdle,       // no tasks
    kMaking,     // tasks are to be made
    kRestoring,  // stores catch up with their changelogs
    kRunning,
    kStopped,
  };
  // A partition as the source numbers it.
  struct Input {
    Task* task = nullptr;
    std::size_t fifo = 0;
    TopicPartition partition;
    bool paused = false;
    bool gone = false;  // its topic was deleted
    // What was committed last; the position at the start before that.
    Offset committed = kNoOffset;
    Offset purged = Offset(0);
  };
  using Offsets = std::vector<std::pair<TopicPartition, CommittedOffset>>;

  // worker.cc
  void follow(AppCore::Directive directive, Duration timeout);
  void adopt(Assignment assignment);
  Status make_tasks();
  Result<std::unique_ptr<TaskStore>> open_store(const std::string& name, PartitionId partition);
  Status begin_processing();
  void register_task_metrics(const Task& task);
  bool has_failed_task() const;
  void flush_dead_letters();
  Result<Offset> start_of(const TopicPartition& partition,
                          const std::optional<CommittedOffset>& committed);
  Status run(Duration timeout);
  Status restore(Duration timeout);
  Status process(Duration timeout);
  Duration poll_timeout(Duration timeout) const;
  Status take_block(RecordBlock block);
  Status handle_bad_block(Input& input, const RecordBlock& block);
  Status process_tasks();
  void set_paused(std::uint32_t index, bool paused);
  bool has_buffered() const;
  void handle(Error error);
  void give_up();
  void close_tasks();
  void close_cleanly();
  void wait_until_retry(Duration timeout);

  // worker_commit.cc
  bool commit_is_due() const;
  Status commit();
  Status write_changelogs();
  Offsets offsets_to_commit() const;
  // Takes out what belongs to topics that are gone.
  Status commit_offsets(Offsets& offsets);
  bool forget_gone(Offsets& offsets);
  Status promote(const std::vector<FlushedPartition>& flushed);
  void after_commit(const Offsets& offsets);
  Status tend_checkpoints();
  Status checkpoint_all();
  void purge_repartition_topics();

  struct Metrics {
    Counter commits;
    Counter commit_failures;
    Counter restored_records;
    Counter revivals;
  };
  Metrics metrics_;
  AppCore& core_;
  const std::size_t index_;
  Phase phase_ = Phase::kIdle;
  std::uint64_t generation_ = 0;
  Assignment assignment_;
  // Stores are not checkpointed at the end once it has passed.
  MonotonicTime deadline_ = MonotonicTime::max();

  CacheBudget cache_budget_;
  std::unique_ptr<RecordSink> sink_;
  std::unique_ptr<RecordSource> source_;
  std::unique_ptr<Group> group_;
  std::vector<std::unique_ptr<Task>> tasks_;
  std::vector<Input> inputs_;
  std::unique_ptr<Restorer> restorer_;
  std::vector<MetricsRegistry::Handle> metric_handles_;  // of the thread
  std::vector<MetricsRegistry::Handle> task_metric_handles_;

  MonotonicTime last_commit_{};
  MonotonicTime last_purge_{};
  bool commit_pending_ = false;  // one failed and is to be tried again
  bool start_refused_ = false;   // auto.offset.reset is none
  bool cannot_purge_ = false;    // the log does not delete records
  std::optional<MonotonicTime> failing_since_;
  MonotonicTime retry_at_{};

  Mutex wake_mutex_;
  RecordSource* wake_source_ WEIR_GUARDED_BY(wake_mutex_) = nullptr;
};

}  // namespace weir::internal
