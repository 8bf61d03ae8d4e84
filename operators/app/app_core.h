#pragma once

#include "operators/app/state_directory.h"
#include "operators/app/topic_plan.h"
#include "operators/task/task_id.h"

#include <weir/operators/app.h>
#include <weir/runtime/thread_annotations.h>

#include <atomic>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

namespace weir::internal {

struct TaskSpec {
  TaskId id;
  std::vector<TopicPartition> inputs;  // on the log
};

// Which tasks a thread runs. A new generation begins when the topics have changed: every thread
// commits and closes its tasks, then the tasks are spread anew.
struct Assignment {
  std::uint64_t generation = 0;
  std::vector<TaskSpec> tasks;
};

// What the threads of an application share. Everything that one thread tells another goes through
// here.
//
// Threading: thread-safe; no lock is held across calls of the log, the disk or user code.
class AppCore {
 public:
  // Borrows backend and environment.
  AppCore(Topology topology, AppOptions options, Backend& backend, Environment environment);

  const Plan& plan() const { return topology_.plan(); }
  const AppOptions& options() const { return options_; }
  Backend& backend() { return backend_; }
  Environment& environment() { return environment_; }
  StateDirectory& directory() { return *directory_; }
  MetricsRegistry& metrics_registry() { return registry_; }
  MonotonicTime now() const { return environment_.clock.monotonic(); }
  bool is_repartition(const std::string& topic_on_log) const {
    return repartition_topics_.contains(topic_on_log);
  }

  // Opens the state directory and makes the first assignment. Errors: as App::start().
  Status open();
  Status close();

  // What thread `worker` has to do. `assignment` is set when it is of the wanted generation.
  struct Directive {
    std::uint64_t generation = 0;
    bool stop = false;                              // close: commit and leave
    bool abort = false;                             // close: leave
    MonotonicTime deadline = MonotonicTime::max();  // of the close
    std::optional<Assignment> assignment;
  };
  // `adopted`: the generation whose tasks the thread has.
  Directive directive(std::size_t worker, std::uint64_t adopted);
  void released(std::size_t worker, std::uint64_t generation);
  void running(std::size_t worker, std::uint64_t generation);
  // The thread has closed its tasks for good.
  void stopped(std::size_t worker, Status outcome);

  // Looks after topics: input topics that are missing, at most every 100 ms, and the next
  // assignment once all threads let go. Called by each thread between its steps; one at a time does
  // the work.
  void supervise();
  // A source said that the topic is not there any more.
  void topic_gone(const std::string& topic);
  // The topic has this id now: if its tasks read another one, that one is gone.
  void check_input(const std::string& topic, const Uuid& id);
  // The internal topics must be looked at again.
  void request_rebalance();

  void publish_commit(const std::vector<std::pair<TopicPartition, Offset>>& offsets);
  std::map<TopicPartition, Offset> committed_offsets() const;

  // The first error wins; the application is in kError from now on.
  void fail(Error error);
  AppState state() const;
  Status error() const;
  void set_state(AppState state);
  void request_stop(bool abort, MonotonicTime deadline);
  bool all_stopped() const;
  // Of the threads' closing commits.
  Status stop_outcome() const;
  // Waits until all threads have stopped; false when `deadline` (of the monotonic clock) passed.
  bool wait_stopped(Duration timeout);
  // For a thread that has nothing to read: waits for news, at most `timeout`.
  void wait_for_news(Duration timeout);

 private:
  struct Slot {
    Assignment assignment;
    std::uint64_t released = 0;
    std::uint64_t running = 0;
    bool stopped = false;
  };

  Status rebalance();
  Result<KnownTopics> list_topics();
  Status check_outputs(const KnownTopics& known) const;
  Status make_internal_topics(const TopicPlan& topics);
  Status notice_new_inputs(const TopicPlan& topics, const KnownTopics& known);
  RecordedPlan record_of(const TopicPlan& topics, const KnownTopics& known) const;
  void assign(const TopicPlan& topics, const KnownTopics& known);
  void check_missing_topics();
  void handle_rebalance_failure(Error error);
  // The state that follows from threads and topics; true when it changed.
  bool settle_state() WEIR_REQUIRES(mutex_);
  void log_state(bool changed) const;
  bool all_released() const WEIR_REQUIRES(mutex_);

  const Topology topology_;
  const AppOptions options_;
  Backend& backend_;
  Environment environment_;
  std::set<std::string> repartition_topics_;
  std::unique_ptr<StateDirectory> directory_;
  MetricsRegistry registry_;

  // Only of the thread that supervises.
  std::unique_ptr<Group> group_;
  std::optional<RecordedPlan> recorded_;

  mutable Mutex mutex_;
  CondVar changed_;
  bool supervising_ WEIR_GUARDED_BY(mutex_) = false;
  MonotonicTime next_check_ WEIR_GUARDED_BY(mutex_){};
  MonotonicTime next_rebalance_ WEIR_GUARDED_BY(mutex_){};
  std::optional<MonotonicTime> failing_since_ WEIR_GUARDED_BY(mutex_);
  AppState state_ WEIR_GUARDED_BY(mutex_) = AppState::kCreated;
  Status error_ WEIR_GUARDED_BY(mutex_);
  bool stop_ WEIR_GUARDED_BY(mutex_) = false;
  bool abort_ WEIR_GUARDED_BY(mutex_) = false;
  MonotonicTime deadline_ WEIR_GUARDED_BY(mutex_) = MonotonicTime::max();
  Status stop_outcome_ WEIR_GUARDED_BY(mutex_);
  std::uint64_t wanted_generation_ WEIR_GUARDED_BY(mutex_) = 1;
  std::uint64_t assigned_generation_ WEIR_GUARDED_BY(mutex_) = 0;
  std::vector<Slot> slots_ WEIR_GUARDED_BY(mutex_);
  std::map<std::string, Uuid> known_inputs_ WEIR_GUARDED_BY(mutex_);
  std::set<std::string> missing_ WEIR_GUARDED_BY(mutex_);  // never made, or deleted
  std::map<TopicPartition, Offset> committed_ WEIR_GUARDED_BY(mutex_);
};

}  // namespace weir::internal
