#include "operators/app/app_core.h"

#include "operators/app/assignor.h"

#include <weir/runtime/assert.h>
#include <weir/runtime/commit_metadata.h>
#include <weir/runtime/logger.h>

#include <fmt/core.h>

#include <algorithm>
#include <chrono>
#include <utility>

namespace weir::internal {

namespace {

constexpr Duration kTopicCheckInterval = std::chrono::milliseconds(100);

}  // namespace

AppCore::AppCore(Topology topology, AppOptions options, Backend& backend, Environment environment)
    : topology_(std::move(topology)),
      options_(std::move(options)),
      backend_(backend),
      environment_(environment) {
  for (const RepartitionTopic& topic : topology_.plan().repartition_topics) {
    repartition_topics_.insert(internal_topic_name(options_.application_id, topic.name));
  }
}

Status AppCore::open() {
  WEIR_TRY(topology_.status());
  WEIR_TRY_ASSIGN(directory_, StateDirectory::open(environment_.files, options_));
  WEIR_TRY_ASSIGN(recorded_, directory_->read_plan());
  WEIR_TRY_ASSIGN(group_, backend_.make_group(options_.application_id));
  {
    const MutexLock lock(mutex_);
    slots_.resize(static_cast<std::size_t>(options_.num_stream_threads));
    for (Slot& slot : slots_) {
      slot.released = wanted_generation_;
    }
    state_ = AppState::kRebalancing;
  }
  return rebalance();
}

Status AppCore::close() {
  group_.reset();
  if (directory_ == nullptr) {
    return {};
  }
  Status closed = directory_->close();
  directory_.reset();
  return closed;
}

// ---- threads ---------------------------------------------------------------------------------

AppCore::Directive AppCore::directive(std::size_t worker, std::uint64_t adopted) {
  const MutexLock lock(mutex_);
  Directive directive{
      wanted_generation_, stop_ || state_ == AppState::kError, abort_, deadline_, {}};
  const Slot& slot = slots_[worker];
  if (adopted != wanted_generation_ && slot.assignment.generation == wanted_generation_) {
    directive.assignment = slot.assignment;
  }
  return directive;
}

void AppCore::released(std::size_t worker, std::uint64_t generation) {
  const MutexLock lock(mutex_);
  slots_[worker].released = generation;
}

void AppCore::running(std::size_t worker, std::uint64_t generation) {
  bool changed = false;
  {
    const MutexLock lock(mutex_);
    slots_[worker].running = generation;
    changed = settle_state();
  }
  log_state(changed);
}

void AppCore::stopped(std::size_t worker, Status outcome) {
  const MutexLock lock(mutex_);
  slots_[worker].stopped = true;
  if (stop_outcome_.ok()) {
    stop_outcome_ = std::move(outcome);
  }
  changed_.notify_all();
}

bool AppCore::settle_state() {
  if (state_ != AppState::kRebalancing && state_ != AppState::kRunning) {
    return false;
  }
  const bool all_run = std::all_of(
      slots_.begin(), slots_.end(),
      [wanted = wanted_generation_](const Slot& slot) { return slot.running == wanted; });
  const AppState next = all_run && missing_.empty() ? AppState::kRunning : AppState::kRebalancing;
  const bool changed = next != state_;
  state_ = next;
  changed_.notify_all();
  return changed;
}

void AppCore::log_state(bool changed) const {
  if (changed) {
    WEIR_INFO("application state changed application={} state={}", options_.application_id,
              app_state_name(state()));
  }
}

bool AppCore::all_released() const {
  return std::all_of(slots_.begin(), slots_.end(), [wanted = wanted_generation_](const Slot& slot) {
    return slot.released == wanted;
  });
}

void AppCore::publish_commit(const std::vector<std::pair<TopicPartition, Offset>>& offsets) {
  const MutexLock lock(mutex_);
  for (const auto& [partition, offset] : offsets) {
    committed_[partition] = offset;
  }
}

std::map<TopicPartition, Offset> AppCore::committed_offsets() const {
  const MutexLock lock(mutex_);
  return committed_;
}

void AppCore::fail(Error error) {
  const std::string text = error.to_string();
  {
    const MutexLock lock(mutex_);
    if (!error_.ok() || state_ == AppState::kNotRunning) {
      return;
    }
    error_ = std::move(error);
    state_ = AppState::kError;
    changed_.notify_all();
  }
  WEIR_ERROR("application stopped with an error application={} error=\"{}\"",
             options_.application_id, text);
}

AppState AppCore::state() const {
  const MutexLock lock(mutex_);
  return state_;
}

Status AppCore::error() const {
  const MutexLock lock(mutex_);
  return error_;
}

void AppCore::set_state(AppState state) {
  const MutexLock lock(mutex_);
  if (state_ != AppState::kError) {
    state_ = state;
  }
  changed_.notify_all();
}

void AppCore::request_stop(bool abort, MonotonicTime deadline) {
  const MutexLock lock(mutex_);
  deadline_ = deadline;
  stop_ = true;
  abort_ = abort_ || abort;
  changed_.notify_all();
}

bool AppCore::all_stopped() const {
  const MutexLock lock(mutex_);
  return std::all_of(slots_.begin(), slots_.end(), [](const Slot& slot) { return slot.stopped; });
}

Status AppCore::stop_outcome() const {
  const MutexLock lock(mutex_);
  return stop_outcome_;
}

bool AppCore::wait_stopped(Duration timeout) {
  const MonotonicTime deadline = now() + timeout;
  const MutexLock lock(mutex_);
  const auto is_stopped = [](const Slot& slot) { return slot.stopped; };
  while (!std::all_of(slots_.begin(), slots_.end(), is_stopped)) {
    const Duration left = deadline - now();
    if (left <= Duration(0)) {
      return false;
    }
    changed_.wait_for(mutex_, left);
  }
  return true;
}

void AppCore::wait_for_news(Duration timeout) {
  const MutexLock lock(mutex_);
  if (!stop_ && state_ != AppState::kError && timeout > Duration(0)) {
    changed_.wait_for(mutex_, timeout);
  }
}

// ---- topics ----------------------------------------------------------------------------------

void AppCore::topic_gone(const std::string& topic) {
  bool changed = false;
  {
    const MutexLock lock(mutex_);
    // Offsets of the topic that is gone say nothing about one that is made later.
    std::erase_if(committed_, [&](const auto& entry) { return entry.first.topic == topic; });
    if (!missing_.insert(topic).second) {
      return;
    }
    changed = settle_state();
  }
  WEIR_WARN(
      "input topic was deleted application={} topic={}: its state is kept, and it is read "
      "from 0 when it is made again",
      options_.application_id, topic);
  log_state(changed);
}

void AppCore::check_input(const std::string& topic, const Uuid& id) {
  {
    const MutexLock lock(mutex_);
    const auto known = known_inputs_.find(topic);
    if (known == known_inputs_.end() || known->second.is_zero() || known->second == id) {
      return;
    }
  }
  topic_gone(topic);
}

void AppCore::request_rebalance() {
  bool changed = false;
  {
    const MutexLock lock(mutex_);
    if (assigned_generation_ != wanted_generation_) {
      return;
    }
    ++wanted_generation_;
    changed = settle_state();
  }
  log_state(changed);
}

void AppCore::supervise() {
  bool is_rebalance = false;
  {
    const MutexLock lock(mutex_);
    if (supervising_ || stop_ ||
        (state_ != AppState::kRebalancing && state_ != AppState::kRunning)) {
      return;
    }
    is_rebalance =
        assigned_generation_ != wanted_generation_ && all_released() && now() >= next_rebalance_;
    const bool is_check = !missing_.empty() && now() >= next_check_;
    if (!is_rebalance && !is_check) {
      return;
    }
    supervising_ = true;
    next_check_ = now() + kTopicCheckInterval;
  }
  if (is_rebalance) {
    if (Status done = rebalance(); !done.ok()) {
      handle_rebalance_failure(std::move(done).error());
    }
  } else {
    check_missing_topics();
  }
  const MutexLock lock(mutex_);
  supervising_ = false;
}

// A log that does not answer is asked again, for task.timeout.ms.
void AppCore::handle_rebalance_failure(Error error) {
  const Errc code = error.code();
  bool is_final = code == Errc::kInvalidConfig || code == Errc::kUnknownTopic ||
                  code == Errc::kInvalidTopic || code == Errc::kReadOnly ||
                  code == Errc::kInvalidArgument || code == Errc::kUnsupported;
  {
    const MutexLock lock(mutex_);
    const MonotonicTime time = now();
    failing_since_ = failing_since_.value_or(time);
    next_rebalance_ = time + kTopicCheckInterval;
    is_final =
        is_final || time - *failing_since_ >= std::chrono::milliseconds(options_.task_timeout_ms);
  }
  if (is_final) {
    fail(std::move(error));
    return;
  }
  WEIR_WARN("tasks could not be assigned and this is tried again application={} error=\"{}\"",
            options_.application_id, error.to_string());
}

void AppCore::check_missing_topics() {
  std::set<std::string> missing;
  std::map<std::string, Uuid> known;
  {
    const MutexLock lock(mutex_);
    missing = missing_;
    known = known_inputs_;
  }
  for (const std::string& topic : missing) {
    const Result<TopicDescription> found = backend_.admin().describe_topic(topic);
    if (!found.ok()) {
      continue;  // not there, or the log does not answer: asked again after the interval
    }
    const auto before = known.find(topic);
    if (before == known.end() || found->id.is_zero() || found->id != before->second) {
      request_rebalance();
      return;
    }
  }
}

Result<KnownTopics> AppCore::list_topics() {
  WEIR_TRY_ASSIGN(const std::vector<TopicDescription> topics, backend_.admin().list_topics());
  KnownTopics known;
  for (const TopicDescription& topic : topics) {
    known.emplace(topic.name, KnownTopic{topic.id, topic.partitions});
  }
  return known;
}

Status AppCore::check_outputs(const KnownTopics& known) const {
  if (const std::string& topic = options_.dead_letter_topic;
      !topic.empty() && !known.contains(topic)) {
    return Error(Errc::kUnknownTopic,
                 fmt::format("errors.dead.letter.queue.topic.name {} of application {} does not "
                             "exist; create it and start the application again",
                             topic, options_.application_id));
  }
  for (const SubTopology& sub_topology : plan().sub_topologies) {
    for (const std::string& topic : sub_topology.source_topics) {
      if (topic_on_log(plan(), options_.application_id, topic) == options_.dead_letter_topic) {
        return Error(
            Errc::kInvalidConfig,
            fmt::format("errors.dead.letter.queue.topic.name {} is a topic that application "
                        "{} reads: its dead letters would come back; choose another",
                        options_.dead_letter_topic, options_.application_id));
      }
    }
    for (const std::string& topic : sub_topology.sink_topics) {
      const std::string name = topic_on_log(plan(), options_.application_id, topic);
      if (!repartition_topics_.contains(name) && !known.contains(name)) {
        return Error(Errc::kUnknownTopic,
                     fmt::format("output topic {} of application {} does not exist; create it and "
                                 "start the application again",
                                 name, options_.application_id));
      }
    }
  }
  return {};
}

Status AppCore::make_internal_topics(const TopicPlan& topics) {
  for (const TopicSpec& spec : topics.internal_topics) {
    const Result<TopicDescription> made = backend_.admin().create_topic(spec);
    if (!made.ok() && made.error().code() != Errc::kTopicExists) {
      return Error(made.error()).with_context("make internal topic " + spec.name);
    }
    WEIR_INFO("internal topic made topic={} partitions={}", spec.name, spec.partitions);
  }
  return {};
}

// An input topic that was made anew is read from its start: that offset is committed before the new
// id is recorded, so that a crash in between repeats this step and no other.
Status AppCore::notice_new_inputs(const TopicPlan& topics, const KnownTopics& known) {
  std::vector<std::pair<TopicPartition, CommittedOffset>> offsets;
  for (const auto& inputs : topics.inputs) {
    for (const auto& [name, partitions] : inputs) {
      const RecordedPlan::SourceTopic* before =
          recorded_.has_value() ? recorded_->find_source(name) : nullptr;
      const Uuid id = known.contains(name) ? known.at(name).id : Uuid{};
      if (before == nullptr || before->id.is_zero() || id.is_zero() || before->id == id) {
        continue;
      }
      WEIR_WARN(
          "input topic was made anew application={} topic={} old_id={} new_id={}: it is read "
          "from its start",
          options_.application_id, name, before->id.to_string(), id.to_string());
      for (std::int32_t p = 0; p < partitions; ++p) {
        const TopicPartition partition{name, PartitionId(p)};
        WEIR_TRY_ASSIGN(const PartitionOffsets log, backend_.admin().offsets(partition));
        offsets.push_back({partition, {log.log_start, kNoLeaderEpoch, encode_commit_metadata({})}});
      }
    }
  }
  return offsets.empty() ? Status() : group_->commit(offsets);
}

RecordedPlan AppCore::record_of(const TopicPlan& topics, const KnownTopics& known) const {
  RecordedPlan record;
  record.application_id = options_.application_id;
  const auto on_log = [this](const std::vector<std::string>& names) {
    std::vector<std::string> out;
    out.reserve(names.size());
    for (const std::string& name : names) {
      out.push_back(topic_on_log(plan(), options_.application_id, name));
    }
    return out;
  };
  std::set<std::string> sources;
  for (std::size_t i = 0; i < plan().sub_topologies.size(); ++i) {
    const SubTopology& sub_topology = plan().sub_topologies[i];
    record.sub_topologies.push_back({on_log(sub_topology.source_topics),
                                     on_log(sub_topology.sink_topics), sub_topology.stores,
                                     topics.tasks[i]});
    for (const std::string& name : record.sub_topologies.back().source_topics) {
      if (!repartition_topics_.contains(name)) {
        sources.insert(name);
      }
    }
  }
  for (const PlanStore& store : plan().stores) {
    record.stores.push_back(
        {store.name, std::string(store.key.serde), std::string(store.value.serde),
         internal_topic_name(options_.application_id, changelog_name(store.name))});
  }
  for (const std::string& name : sources) {
    // A topic that is missing now stays recorded: when it comes back it has another id.
    const RecordedPlan::SourceTopic* before =
        recorded_.has_value() ? recorded_->find_source(name) : nullptr;
    if (const auto found = known.find(name); found != known.end()) {
      record.source_topics.push_back({name, found->second.id, found->second.partitions});
    } else if (before != nullptr) {
      record.source_topics.push_back(*before);
    }
  }
  return record;
}

void AppCore::assign(const TopicPlan& topics, const KnownTopics& known) {
  const std::vector<std::vector<TaskId>> spread =
      assign_tasks(topics.task_ids(), static_cast<std::size_t>(options_.num_stream_threads));
  std::uint64_t generation = 0;
  {
    const MutexLock lock(mutex_);
    missing_ = std::set<std::string>(topics.missing_inputs.begin(), topics.missing_inputs.end());
    known_inputs_.clear();
    for (std::size_t worker = 0; worker < slots_.size(); ++worker) {
      Assignment& assignment = slots_[worker].assignment;
      assignment = {.generation = wanted_generation_, .tasks = {}};
      for (const TaskId& id : spread[worker]) {
        TaskSpec spec{id, {}};
        for (const auto& [name, partitions] : topics.inputs[id.sub_topology]) {
          if (id.partition.value() < partitions) {
            spec.inputs.push_back({name, id.partition});
          }
        }
        assignment.tasks.push_back(std::move(spec));
      }
    }
    for (const auto& [name, topic] : known) {
      known_inputs_.emplace(name, topic.id);
    }
    assigned_generation_ = wanted_generation_;
    generation = wanted_generation_;
    failing_since_.reset();
    changed_.notify_all();
  }
  WEIR_INFO("tasks assigned application={} generation={} tasks={} threads={} missing_topics={}",
            options_.application_id, generation, topics.task_ids().size(),
            options_.num_stream_threads, topics.missing_inputs.size());
}

Status AppCore::rebalance() {
  WEIR_TRY_ASSIGN(KnownTopics known, list_topics());
  WEIR_TRY(check_outputs(known));
  WEIR_TRY_ASSIGN(const TopicPlan topics, plan_topics(plan(), options_.application_id, known,
                                                      options_.internal_durability));
  WEIR_TRY(make_internal_topics(topics));
  WEIR_TRY_ASSIGN(known, list_topics());
  WEIR_TRY(notice_new_inputs(topics, known));
  RecordedPlan record = record_of(topics, known);
  if (!recorded_.has_value() || record != *recorded_) {
    WEIR_TRY(directory_->write_plan(record));
    recorded_ = std::move(record);
  }
  assign(topics, known);
  return {};
}

}  // namespace weir::internal
