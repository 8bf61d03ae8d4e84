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
  StoreCache& store(std::string_view name) override {
    TaskStore* store = task_.find_store(name);
    WEIR_ASSERT(store != nullptr);
    return *store->cache;
  }
  void set_source(NodeId id, SourceEntry& entry) override {
    for (const std::string& topic : task_.parts_.plan->nodes[id].topics) {
      task_.sources_.push_back(
          {topic_on_log(*task_.parts_.plan, task_.parts_.application_id, topic), &entry});
    }
  }

 private:
  Task& task_;
  std::vector<EmitterBase*> emitters_;
};

namespace {

// The only places where a user's exception can arrive: what it said, or nothing.
template <class F>
std::optional<std::string> catch_thrown(F&& function) {
  try {
    function();
  } catch (const std::exception& exception) {
    return exception.what();
  } catch (...) {
    return "something that is no std::exception";
  }
  return std::nullopt;
}

Error handler_threw(const std::string& what) {
  return {Errc::kHandlerThrew,
          fmt::format("a function of the topology threw: {}; nothing of it was committed, correct "
                      "the function or the record and start the application again",
                      what)};
}

}  // namespace

Task::Task(TaskParts parts) : parts_(std::move(parts)) {}

Task::~Task() = default;

Result<std::unique_ptr<Task>> Task::make(TaskParts parts) {
  std::unique_ptr<Task> task(new Task(std::move(parts)));
  WEIR_TRY(task->build());
  return task;
}

Status Task::build() {
  const Plan& plan = *parts_.plan;
  const SubTopology& sub_topology = plan.sub_topologies[parts_.id.sub_topology];
  for (const std::string& topic : sub_topology.sink_topics) {
    const std::string name = topic_on_log(plan, parts_.application_id, topic);
    Result<SinkTopicInfo> info = parts_.sink->open_topic(name);
    if (!info.ok()) {
      return std::move(info).error().with_context(
          fmt::format("output topic '{}' (create it before the application starts)", name));
    }
    sinks_.emplace(topic, std::make_unique<SinkBuffer>(*parts_.sink, *info, context_,
                                                       parts_.sink_records_max));
  }
  for (std::unique_ptr<TaskStore>& store : parts_.stores) {
    store->cache = std::make_unique<StoreCache>(*store->store, context_, *parts_.cache_budget);
  }
  Builder builder(*this);
  for (const NodeId id : sub_topology.nodes) {
    const PlanNode& node = plan.nodes[id];
    const NodeId parent = node.parents.empty() ? id : node.parents.front();
    if (std::unique_ptr<Node> made = node.factory->make(id, parent, builder); made != nullptr) {
      nodes_.push_back(std::move(made));
    }
  }
  return {};
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
  return fifos_.add_partition(partition_time);
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
  const std::optional<std::string> thrown =
      catch_thrown([&] { input_entries_[run.partition]->consume(run.records, flow, progress); });
  if (thrown.has_value()) {
    context_.fail(handler_threw(*thrown));
    return stop_at(run, progress);
  }
  if (context_.failed()) {
    return stop_at(run, progress == 0 ? 0 : progress - 1);
  }
  fifos_.take(run.partition, run.records.size());
  return run.records.size();
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
    WEIR_TRY_ASSIGN(const std::size_t count, process_run(**run));
    processed += count;
    processed_.add(count);
    // The block may go now: what borrows from it was copied into the sinks' arenas.
  }
  for (auto& [topic, sink] : sinks_) {
    sink->flush();
  }
  if (context_.failed()) {
    return context_.status().error();
  }
  return processed;
}

Status Task::flush_results() {
  // Nodes were made parents first, so a store's results reach the stores behind it in time. The
  // plan lists stores in the order of their nodes.
  const std::optional<std::string> thrown = catch_thrown([&] {
    for (const std::unique_ptr<TaskStore>& store : parts_.stores) {
      store->cache->flush(fifos_.stream_time());
    }
  });
  if (thrown.has_value()) {
    context_.fail(handler_threw(*thrown));
  }
  if (context_.failed()) {
    return Error(context_.status().error())
        .with_context(fmt::format("task {} while results left its stores", parts_.id.to_string()));
  }
  for (auto& [topic, sink] : sinks_) {
    sink->flush();
  }
  return context_.status();
}

}  // namespace weir::internal
