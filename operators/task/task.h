#pragma once

#include "operators/plan/plan.h"
#include "operators/task/partition_group.h"
#include "operators/task/punctuation_queue.h"
#include "operators/task/task_id.h"

#include <weir/operators/internal/flow.h>
#include <weir/operators/internal/processor_host.h>
#include <weir/operators/internal/sink_buffer.h>
#include <weir/operators/internal/store_cache.h>
#include <weir/runtime/backend.h>
#include <weir/state/key_value_store.h>

#include <cstddef>
#include <map>
#include <memory>
#include <string>
#include <vector>

namespace weir::internal {

// One partition of one store, with the partition of its changelog.
struct TaskStore {
  std::string name;
  std::unique_ptr<state::CheckpointStore> checkpoint;  // null in mode `memory`
  std::unique_ptr<state::KeyValueStore> store;
  TopicPartition changelog;
  SinkTopicInfo changelog_topic;
  std::unique_ptr<StoreCache> cache;  // goes before the store
  std::uint64_t changelog_bytes = 0;  // since the last checkpoint
  MonotonicTime last_checkpoint{};
  bool in_commit = false;  // its scope was written by the commit that is under way
};

// What a task is made of. All borrowed things outlive it.
struct TaskParts {
  const Plan* plan = nullptr;
  TaskId id;
  std::string application_id;
  RecordSink* sink = nullptr;
  CacheBudget* cache_budget = nullptr;
  const Clock* clock = nullptr;
  ErrorPolicies errors;
  std::vector<std::unique_ptr<TaskStore>> stores;  // as many as the sub-topology has
  std::size_t sink_records_max = SinkBuffer::kRecordsMax;
};

// An instance of a sub-topology for one partition: typed nodes, FIFOs, stores, sinks
// (streams-features 2.1, 2.2, 2.17).
//
// Guarantee: a record travels through the whole sub-topology before the next one starts. When a
//            user's function throws, status() says so and the position stays at that record.
// Threading: confined to one thread.
class Task final : private ProcessorHost {
 public:
  // Errors: kUnknownTopic (an output topic does not exist).
  static Result<std::unique_ptr<Task>> make(TaskParts parts);
  ~Task() override;
  Task(const Task&) = delete;
  Task& operator=(const Task&) = delete;

  const TaskId& id() const { return parts_.id; }

  // Input partitions: source topics that have the task's partition, by topic name on the log.
  // Index i belongs to fifo i. `partition_time` as committed.
  std::size_t add_input(const TopicPartition& partition, Timestamp partition_time);
  // Calls the processors' init(). Once, behind add_input() and when the stores are restored.
  // Errors: what stopped the task.
  Status init();
  const std::vector<TopicPartition>& inputs() const { return inputs_; }
  // Takes a block of input `index`.
  void add(std::size_t index, RecordBlock block);
  PartitionGroup& fifos() { return fifos_; }
  const PartitionGroup& fifos() const { return fifos_; }

  // Processes up to `records_max` records of the FIFOs and returns how many.
  // Errors: what stopped the task; status() and failure_kind() keep it.
  Result<std::size_t> process(std::size_t records_max);
  // Runs the wall-clock punctuators that are due; stream-time ones run as records are processed.
  Status punctuate_wall_clock();
  // When the next of them is due, milliseconds since 1970; INT64_MAX: none.
  Timestamp next_wall_clock_punctuation() const { return wall_clock_punctuations_.next_due(); }
  // A processor asked for a commit.
  bool wants_commit() const { return wants_commit_; }
  // Empties the record caches, upstream stores first, and hands all output to the sink.
  Status flush_results();

  const Status& status() const { return context_.status(); }
  bool failed_on_record() const {
    return context_.failed() && context_.failure_kind() == FailureKind::kRecord;
  }
  std::vector<std::unique_ptr<TaskStore>>& stores() { return parts_.stores; }
  const std::vector<std::unique_ptr<TaskStore>>& stores() const { return parts_.stores; }
  TaskStore* find_store(std::string_view name);
  std::uint64_t processed() const { return processed_.value(); }
  const Counter& processed_counter() const { return processed_; }
  const Counter& dropped_counter() const { return context_.dropped_counter(); }
  // Records or results since the last call of clear_work().
  bool has_work() const { return has_work_; }
  void clear_work() {
    has_work_ = false;
    wants_commit_ = false;
  }

 private:
  class Builder;
  struct Source {
    std::string topic;  // on the log
    SourceEntry* entry = nullptr;
    bool is_internal = false;
  };

  explicit Task(TaskParts parts);
  Status build();
  Result<std::unique_ptr<SinkBuffer>> make_sink(const std::string& topic_on_log);
  void make_nodes();
  template <class F>
  bool run_users_code(F&& function);

  // ProcessorHost
  std::uint64_t schedule(PunctuationType type, std::int64_t interval_ms,
                         std::optional<Timestamp> start,
                         std::function<void(Timestamp)> function) override;
  void cancel(std::uint64_t id) override;
  void request_commit() override { wants_commit_ = true; }
  Timestamp stream_time() const override { return fifos_.stream_time(); }
  Timestamp wall_clock_time() const override { return parts_.clock->now(); }
  const std::string& task_id() const override { return task_id_; }
  const std::string& application_id() const override { return parts_.application_id; }

  // As many records of the run as may be processed before a stream-time punctuator is due.
  std::size_t records_until_punctuation(std::span<const RecordView> records) const;
  Status punctuate(PunctuationQueue& queue, Timestamp now);
  Status flush_sinks();
  Result<std::size_t> process_run(const PartitionGroup::Run& run);
  // Leaves the position at the record that failed and says where that is.
  Error stop_at(const PartitionGroup::Run& run, std::size_t failed);

  Counter processed_;
  TaskContext context_;
  TaskParts parts_;
  PartitionGroup fifos_;
  std::vector<TopicPartition> inputs_;
  std::vector<SourceEntry*> input_entries_;
  std::vector<Source> sources_;
  std::map<std::string, std::unique_ptr<SinkBuffer>, std::less<>> sinks_;  // by the plan's names
  std::unique_ptr<DynamicSinks> dynamic_sinks_;
  std::unique_ptr<SinkBuffer> dead_letters_;  // null without a topic for them
  std::string task_id_;
  PunctuationQueue stream_punctuations_;
  PunctuationQueue wall_clock_punctuations_;
  std::uint64_t next_punctuation_ = 1;
  std::vector<std::unique_ptr<Node>> nodes_;  // parents first; go before what they use
  bool has_work_ = false;
  bool wants_commit_ = false;
};

}  // namespace weir::internal
