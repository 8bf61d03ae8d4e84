#include "operators/task/task.h"

#include <weir/runtime/assert.h>

#include <fmt/core.h>

#include <algorithm>
#include <exception>
#include <utility>

namespace weir::internal {

// Makes the nodes of one sub-topology, parents first.
class Task::Builder final : public Wiring {
 public:
  explicit Builder(Task& task) : task_(task), emitters_(task.parts_.plan->nodes.size()) {}

  TaskContext& task() override { return task_.context_; }
  EmitterBase& emitter(NodeId id) override {
    WEIR_ASSERT(emitters_[id] != nullptr);
    return *emitters_[id];
  }
  void set_emitter(NodeId id, EmitterBase& emitter) override { emitters_[id] = &emitter; }
  SinkBuffer& sink(std::string_view topic) override { return *task_.sinks_.find(topic)->second; }
  DynamicSinks& dynamic_sinks() override { return *task_.dynamic_sinks_; }
  ProcessorHost& processor_host() override { return task_; }
  StoreCache& store(std::string_view name) override {
    TaskStore* store = task_.find_store(name);
    WEIR_ASSERT(store != nullptr);
    return *store->cache;
  }
  StoreTypes store_types(std::string_view name) const override {
    const PlanStore& store = task_.parts_.plan->store(name);
    return {store.key, store.value};
  }
  void set_source(NodeId id, SourceEntry& entry) override {
    for (const std::string& topic : task_.parts_.plan->nodes[id].topics) {
      const Plan& plan = *task_.parts_.plan;
      task_.sources_.push_back({topic_on_log(plan, task_.parts_.application_id, topic), &entry,
                                plan.is_repartition_topic(topic)});
    }
  }

 private:
  Task& task_;
  std::vector<EmitterBase*> emitters_;
};

// The only place where a user's exception arrives that no node answered for. False: one did, and
// the task has failed.
template <class F>
bool Task::run_users_code(F&& function) {
  std::string what;
  try {
    function();
    return true;
  } catch (const std::exception& exception) {
    what = exception.what();
  } catch (...) {
    what = "something that is no std::exception";
  }
  if (!context_.failed()) {
    context_.fail(
        Error(Errc::kHandlerThrew,
              fmt::format("a function of the topology threw: {}; nothing of it was committed, "
                          "correct the function or the record and start the application again",
                          what)));
  }
  return false;
}

Task::Task(TaskParts parts) : parts_(std::move(parts)), task_id_(parts_.id.to_string()) {}

Task::~Task() = default;

Result<std::unique_ptr<Task>> Task::make(TaskParts parts) {
  std::unique_ptr<Task> task(new Task(std::move(parts)));
  WEIR_TRY(task->build());
  return task;
}

Result<std::unique_ptr<SinkBuffer>> Task::make_sink(const std::string& topic_on_log) {
  Result<SinkTopicInfo> info = parts_.sink->open_topic(topic_on_log);
  if (!info.ok()) {
    return std::move(info).error().with_context(
        fmt::format("output topic '{}' (create it before the application starts)", topic_on_log));
  }
  return std::make_unique<SinkBuffer>(*parts_.sink, topic_on_log, *info, context_,
                                      parts_.sink_records_max);
}

Status Task::build() {
  const Plan& plan = *parts_.plan;
  for (const std::string& topic : plan.sub_topologies[parts_.id.sub_topology].sink_topics) {
    WEIR_TRY_ASSIGN(std::unique_ptr<SinkBuffer> sink,
                    make_sink(topic_on_log(plan, parts_.application_id, topic)));
    sinks_.emplace(topic, std::move(sink));
  }
  dynamic_sinks_ = std::make_unique<DynamicSinks>(*parts_.sink, context_, parts_.sink_records_max);
  if (const std::string& topic = parts_.errors.dead_letter_topic; !topic.empty()) {
    // Not shared with an output of the same topic: a dead letter arises while that one is written.
    WEIR_TRY_ASSIGN(dead_letters_, make_sink(topic));
  }
  context_.set_error_policies(parts_.errors, dead_letters_.get());
  for (std::unique_ptr<TaskStore>& store : parts_.stores) {
    store->cache = std::make_unique<StoreCache>(*store->store, context_, *parts_.cache_budget);
  }
  run_users_code([&] { make_nodes(); });
  return context_.status();
}

Status Task::init() {
  run_users_code([&] {
    for (const std::unique_ptr<Node>& node : nodes_) {
      if (!context_.failed() && node->init()) {
        has_work_ = true;
      }
    }
  });
  if (context_.failed()) {
    return Error(context_.status().error())
        .with_context(fmt::format("task {} in init() of a processor", task_id_));
  }
  return flush_sinks();
}

void Task::make_nodes() {
  Builder builder(*this);
  const Plan& plan = *parts_.plan;
  for (const NodeId id : plan.sub_topologies[parts_.id.sub_topology].nodes) {
    const PlanNode& node = plan.nodes[id];
    const NodeSlot slot{.id = id,
                        .name = node.name,
                        .parents = node.parents,
                        .child_names = node.child_names,
                        .stores = node.stores,
                        .sends_old_values = node.sends_old_values};
    if (std::unique_ptr<Node> made = node.factory->make(slot, builder); made != nullptr) {
      nodes_.push_back(std::move(made));
    }
  }
}

TaskStore* Task::find_store(std::string_view name) {
  for (const std::unique_ptr<TaskStore>& store : parts_.stores) {
    if (store->name == name) {
      return store.get();
    }
  }
  return nullptr;
}

std::size_t Task::add_input(const TopicPartition& partition, Timestamp partition_time) {
  const auto source = std::find_if(sources_.begin(), sources_.end(), [&](const Source& candidate) {
    return candidate.topic == partition.topic;
  });
  WEIR_ASSERT(source != sources_.end());
  inputs_.push_back(partition);
  input_entries_.push_back(source->entry);
  // Internal topics always have the timestamps that we gave them.
  return fifos_.add_partition(partition_time, source->is_internal
                                                  ? InvalidTimestamp::kFail
                                                  : parts_.errors.invalid_timestamp);
}

void Task::add(std::size_t index, RecordBlock block) {
  Flow flow;
  flow.record.topic = inputs_[index].topic;
  flow.record.partition = inputs_[index].partition;
  for (std::size_t left_out = fifos_.add(index, std::move(block)); left_out > 0; --left_out) {
    context_.drop(DropReason::kInvalidTimestamp, flow);
  }
}

Error Task::stop_at(const PartitionGroup::Run& run, std::size_t failed) {
  const Offset offset = run.records[failed].offset;
  fifos_.take(run.partition, failed);
  return Error(context_.status().error())
      .with_context(fmt::format("task {} at {} offset {}", parts_.id.to_string(),
                                inputs_[run.partition].to_string(), offset.value()));
}

Result<std::size_t> Task::process_run(const PartitionGroup::Run& run) {
  Flow flow;
  flow.record.topic = inputs_[run.partition].topic;
  flow.record.partition = inputs_[run.partition].partition;
  flow.record.stream_time = fifos_.stream_time();
  std::size_t progress = 0;
  context_.begin_run();
  const bool returned =
      run_users_code([&] { input_entries_[run.partition]->consume(run.records, flow, progress); });
  if (!returned) {
    return stop_at(run, progress);
  }
  if (context_.failed()) {
    return stop_at(run, progress == 0 ? 0 : progress - 1);
  }
  const std::size_t done = context_.stops_run() ? progress : run.records.size();
  fifos_.take(run.partition, done);
  return done;
}

Result<std::size_t> Task::process(std::size_t records_max) {
  std::size_t processed = 0;
  while (processed < records_max) {
    if (context_.failed()) {
      return context_.status().error();
    }
    Result<std::optional<PartitionGroup::Run>> run = fifos_.next(records_max - processed);
    if (!run.ok()) {
      context_.fail(run.error());
      return std::move(run).error().with_context(
          fmt::format("task {} ({})", parts_.id.to_string(), inputs_.front().topic));
    }
    if (!run->has_value()) {
      break;
    }
    has_work_ = true;
    PartitionGroup::Run& records = **run;
    if (!stream_punctuations_.empty()) {
      records.records = records.records.first(records_until_punctuation(records.records));
    }
    WEIR_TRY_ASSIGN(const std::size_t count, process_run(records));
    processed += count;
    processed_.add(count);
    if (!stream_punctuations_.empty()) {
      WEIR_TRY(punctuate(stream_punctuations_, fifos_.stream_time()));
    }
    // The block may go now: what borrows from it was copied into the sinks' arenas.
  }
  WEIR_TRY(flush_sinks());
  return processed;
}

std::size_t Task::records_until_punctuation(std::span<const RecordView> records) const {
  const Timestamp due = stream_punctuations_.next_due();
  const auto reaches = [due](const RecordView& record) { return record.timestamp >= due; };
  const auto first = std::find_if(records.begin(), records.end(), reaches);
  return std::min(records.size(), static_cast<std::size_t>(first - records.begin()) + 1);
}

Status Task::punctuate(PunctuationQueue& queue, Timestamp now) {
  run_users_code([&] {
    if (queue.punctuate(now)) {
      has_work_ = true;
    }
  });
  if (context_.failed()) {
    return Error(context_.status().error())
        .with_context(fmt::format("task {} in a punctuator at {}", task_id_, now));
  }
  return {};
}

Status Task::punctuate_wall_clock() {
  if (wall_clock_punctuations_.empty()) {
    return {};
  }
  WEIR_TRY(punctuate(wall_clock_punctuations_, parts_.clock->now()));
  return flush_sinks();
}

std::uint64_t Task::schedule(PunctuationType type, std::int64_t interval_ms,
                             std::optional<Timestamp> start,
                             std::function<void(Timestamp)> function) {
  const std::uint64_t id = next_punctuation_++;
  if (type == PunctuationType::kStreamTime) {
    stream_punctuations_.schedule(id, start.value_or(0), interval_ms, std::move(function));
    context_.interrupt();  // the run that is under way did not know of it
  } else {
    wall_clock_punctuations_.schedule(id, start.value_or(parts_.clock->now() + interval_ms),
                                      interval_ms, std::move(function));
  }
  return id;
}

void Task::cancel(std::uint64_t id) {
  stream_punctuations_.cancel(id);
  wall_clock_punctuations_.cancel(id);
}

Status Task::flush_sinks() {
  for (auto& [topic, sink] : sinks_) {
    sink->flush();
  }
  dynamic_sinks_->flush();
  if (dead_letters_ != nullptr) {
    dead_letters_->flush();
  }
  if (context_.failed()) {
    return Error(context_.status().error())
        .with_context(fmt::format("task {} while its results were sent", task_id_));
  }
  return {};
}

Status Task::flush_results() {
  // Nodes were made parents first, so a store's results reach the stores behind it in time. The
  // plan lists stores in the order of their nodes.
  run_users_code([&] {
    for (const std::unique_ptr<TaskStore>& store : parts_.stores) {
      store->cache->flush(fifos_.stream_time());
    }
  });
  if (context_.failed()) {
    return Error(context_.status().error())
        .with_context(fmt::format("task {} while results left its stores", parts_.id.to_string()));
  }
  return flush_sinks();
}

}  // namespace weir::internal
