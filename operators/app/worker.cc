#include "operators/app/worker.h"

#include "operators/app/start_offset.h"

#include <weir/runtime/commit_metadata.h>
#include <weir/runtime/logger.h>

#include <fmt/core.h>

#include <algorithm>
#include <chrono>
#include <iterator>
#include <utility>

namespace weir::internal {

namespace {

constexpr Duration kRetryInterval = std::chrono::milliseconds(100);
// Records of one task between two looks at the clock, and in one pass.
constexpr std::size_t kRecordsPerLook = 2048;
constexpr std::size_t kRecordsPerPass = 16 * kRecordsPerLook;

// What no repetition mends.
bool is_fatal(Errc code) {
  switch (code) {
    case Errc::kFenced:
    case Errc::kReadOnly:
    case Errc::kClosed:
    case Errc::kInvalidConfig:
    case Errc::kInvalidArgument:
    case Errc::kInvalidTopic:
    case Errc::kUnsupported:
    case Errc::kHandlerThrew:
    case Errc::kRecordTooLarge:  // reported late, by the flush of a commit
    case Errc::kInvalidTimestamp:
    case Errc::kInvalidRecord:
      return true;
    default:
      return false;
  }
}

}  // namespace

Worker::Worker(AppCore& core, std::size_t index) : core_(core), index_(index) {
  const auto threads = static_cast<std::size_t>(core.options().num_stream_threads);
  cache_budget_.bytes_max =
      static_cast<std::size_t>(core.options().statestore_cache_max_bytes) / threads;
  const std::string labels = fmt::format("thread=\"{}\"", index);
  MetricsRegistry& registry = core.metrics_registry();
  metric_handles_.push_back(registry.add("weir_app_commits_total", labels, metrics_.commits));
  metric_handles_.push_back(
      registry.add("weir_app_commit_failures_total", labels, metrics_.commit_failures));
  metric_handles_.push_back(
      registry.add("weir_app_restored_records_total", labels, metrics_.restored_records));
  metric_handles_.push_back(registry.add("weir_app_revivals_total", labels, metrics_.revivals));
}

Worker::~Worker() {
  close_tasks();
}

void Worker::wake() {
  const MutexLock lock(wake_mutex_);
  if (wake_source_ != nullptr) {
    wake_source_->wakeup();
  }
}

void Worker::step(Duration timeout) {
  if (phase_ == Phase::kStopped) {
    return;
  }
  core_.supervise();
  follow(core_.directive(index_, generation_), timeout);
}

void Worker::follow(AppCore::Directive directive, Duration timeout) {
  if (directive.stop) {
    deadline_ = directive.deadline;
    if (directive.abort) {
      close_tasks();
      core_.stopped(index_, {});
    } else {
      close_cleanly();
    }
    phase_ = Phase::kStopped;
    return;
  }
  if (directive.generation != generation_) {
    if (phase_ == Phase::kRunning) {
      // What was processed is committed before others may own it.
      if (Status committed = commit(); !committed.ok()) {
        WEIR_WARN(
            "last commit before a new assignment failed: its records are processed again "
            "error=\"{}\"",
            committed.error().to_string());
      }
    }
    close_tasks();
    if (!directive.assignment.has_value()) {
      core_.released(index_, directive.generation);
      core_.wait_for_news(timeout);
      return;
    }
    adopt(std::move(*directive.assignment));
  }
  if (core_.now() < retry_at_) {
    wait_until_retry(timeout);
    return;
  }
  if (Status done = run(timeout); !done.ok()) {
    handle(std::move(done).error());
  }
}

void Worker::wait_until_retry(Duration timeout) {
  core_.wait_for_news(std::min(timeout, Duration(retry_at_ - core_.now())));
}

void Worker::adopt(Assignment assignment) {
  assignment_ = std::move(assignment);
  generation_ = assignment_.generation;
  phase_ = Phase::kMaking;
}

Status Worker::run(Duration timeout) {
  switch (phase_) {
    case Phase::kMaking:
      WEIR_TRY(make_tasks());
      phase_ = Phase::kRestoring;
      return {};
    case Phase::kRestoring:
      return restore(timeout);
    case Phase::kRunning:
      return process(timeout);
    case Phase::kIdle:
    case Phase::kStopped:
      return {};
  }
  return {};
}

// ---- making tasks ----------------------------------------------------------------------------

Result<std::unique_ptr<TaskStore>> Worker::open_store(const std::string& name,
                                                      PartitionId partition) {
  auto store = std::make_unique<TaskStore>();
  store->name = name;
  store->changelog = {internal_topic_name(core_.options().application_id, changelog_name(name)),
                      partition};
  store->last_checkpoint = core_.now();
  const state::StoreMode mode = store_mode_of(core_.options());
  if (mode != state::StoreMode::kMemory) {
    WEIR_TRY_ASSIGN(store->checkpoint, core_.directory().database()->open_store(
                                           fmt::format("{}-{}", name, partition.value())));
  }
  WEIR_TRY_ASSIGN(
      store->store,
      state::KeyValueStore::open(
          {.name = name,
           .mode = mode,
           .hot_bytes_max = static_cast<std::size_t>(core_.options().store_hot_max_bytes)},
          store->checkpoint.get(), &core_.environment().executor, core_.environment().clock));
  WEIR_TRY_ASSIGN(store->changelog_topic, sink_->open_topic(store->changelog.topic));
  return store;
}

Status Worker::make_tasks() {
  const AppOptions& options = core_.options();
  WEIR_TRY_ASSIGN(sink_, core_.backend().make_sink(
                             {.client_id = options.application_id, .transactional_id = {}}));
  WEIR_TRY_ASSIGN(group_, core_.backend().make_group(options.application_id));
  restorer_ = std::make_unique<Restorer>(core_.backend(), *sink_, core_.environment().clock);
  for (const TaskSpec& spec : assignment_.tasks) {
    TaskParts parts{.plan = &core_.plan(),
                    .id = spec.id,
                    .application_id = options.application_id,
                    .sink = sink_.get(),
                    .cache_budget = &cache_budget_,
                    .clock = &core_.environment().clock,
                    .errors = error_policies_of(options),
                    .stores = {}};
    for (const std::string& name : core_.plan().sub_topologies[spec.id.sub_topology].stores) {
      WEIR_TRY_ASSIGN(std::unique_ptr<TaskStore> store, open_store(name, spec.id.partition));
      WEIR_TRY(restorer_->prepare(*store));
      parts.stores.push_back(std::move(store));
    }
    WEIR_TRY_ASSIGN(std::unique_ptr<Task> task, Task::make(std::move(parts)));
    tasks_.push_back(std::move(task));
  }
  return restorer_->begin();
}

Status Worker::restore(Duration timeout) {
  WEIR_TRY_ASSIGN(const bool done, restorer_->step(timeout));
  if (!done) {
    return {};
  }
  if (restorer_->restored_records() != 0) {
    metrics_.restored_records.add(restorer_->restored_records());
    WEIR_INFO("stores restored thread={} records={}", index_, restorer_->restored_records());
  }
  WEIR_TRY(begin_processing());
  restorer_.reset();
  phase_ = Phase::kRunning;
  core_.running(index_, generation_);
  return {};
}

Result<Offset> Worker::start_of(const TopicPartition& partition,
                                const std::optional<CommittedOffset>& committed) {
  Admin& admin = core_.backend().admin();
  StartFacts facts{.committed = committed, .log = {}, .epoch_end = {}};
  WEIR_TRY_ASSIGN(facts.log, admin.offsets(partition));
  if (committed.has_value() && committed->leader_epoch != kNoLeaderEpoch) {
    WEIR_TRY_ASSIGN(facts.epoch_end, admin.epoch_end_offset(partition, committed->leader_epoch));
  }
  // An internal topic is always read whole: its first records are this application's own.
  const OffsetReset reset = core_.is_repartition(partition.topic)
                                ? OffsetReset::kEarliest
                                : offset_reset_of(core_.options().auto_offset_reset);
  Result<StartDecision> start = decide_start(partition, facts, reset);
  if (!start.ok()) {
    start_refused_ = true;
    return std::move(start).error();
  }
  if (!start->warning.empty()) {
    WEIR_WARN("{} application={}", start->warning, core_.options().application_id);
  }
  return start->offset;
}

void Worker::register_task_metrics(const Task& task) {
  const std::string labels = fmt::format("task=\"{}\"", task.id().to_string());
  task_metric_handles_.push_back(core_.metrics_registry().add("weir_task_processed_records_total",
                                                              labels, task.processed_counter()));
  task_metric_handles_.push_back(core_.metrics_registry().add("weir_task_dropped_records_total",
                                                              labels, task.dropped_counter()));
  for (const std::unique_ptr<TaskStore>& store : task.stores()) {
    std::vector<MetricsRegistry::Handle> handles = store->store->metrics().register_in(
        core_.metrics_registry(), fmt::format("{},store=\"{}\"", labels, store->name));
    std::move(handles.begin(), handles.end(), std::back_inserter(task_metric_handles_));
  }
}

Status Worker::begin_processing() {
  std::vector<TopicPartition> partitions;
  for (const TaskSpec& spec : assignment_.tasks) {
    partitions.insert(partitions.end(), spec.inputs.begin(), spec.inputs.end());
  }
  WEIR_TRY_ASSIGN(const std::vector<std::optional<CommittedOffset>> committed,
                  group_->committed(partitions));
  WEIR_TRY_ASSIGN(source_, core_.backend().make_source({}));
  WEIR_TRY(source_->assign(partitions));
  inputs_.clear();
  std::vector<std::pair<TopicPartition, Offset>> published;
  for (std::size_t t = 0; t < tasks_.size(); ++t) {
    for (const TopicPartition& partition : assignment_.tasks[t].inputs) {
      const auto index = static_cast<std::uint32_t>(inputs_.size());
      Timestamp time = kNoTimestamp;
      if (committed[index].has_value()) {
        // Metadata of another writer says nothing about time.
        const Result<CommitMetadata> metadata = decode_commit_metadata(committed[index]->metadata);
        time = metadata.ok() ? metadata->partition_time : kNoTimestamp;
      }
      WEIR_TRY_ASSIGN(const Offset start, start_of(partition, committed[index]));
      Input input{.task = tasks_[t].get(), .partition = partition, .committed = start};
      input.fifo = tasks_[t]->add_input(partition, time);
      tasks_[t]->fifos().set_position(
          input.fifo, start,
          committed[index].has_value() ? committed[index]->leader_epoch : kNoLeaderEpoch);
      WEIR_TRY(source_->seek(index, start));
      inputs_.push_back(input);
      published.emplace_back(partition, start);
    }
    register_task_metrics(*tasks_[t]);
  }
  core_.publish_commit(published);
  for (const std::unique_ptr<Task>& task : tasks_) {
    WEIR_TRY(task->init());
  }
  last_commit_ = core_.now();
  last_purge_ = last_commit_;
  const MutexLock lock(wake_mutex_);
  wake_source_ = source_.get();
  return {};
}

// ---- processing ------------------------------------------------------------------------------

bool Worker::has_buffered() const {
  return std::any_of(tasks_.begin(), tasks_.end(),
                     [](const auto& task) { return !task->fifos().empty(); });
}

Duration Worker::poll_timeout(Duration timeout) const {
  if (has_buffered()) {
    return Duration(0);
  }
  for (const std::unique_ptr<Task>& task : tasks_) {
    const Timestamp now = core_.environment().clock.now();
    const Timestamp due = task->next_wall_clock_punctuation();
    if (due - now < std::chrono::duration_cast<std::chrono::milliseconds>(timeout).count()) {
      timeout = std::chrono::milliseconds(std::max<Timestamp>(0, due - now));
    }
  }
  const bool has_work =
      std::any_of(tasks_.begin(), tasks_.end(), [](const auto& task) { return task->has_work(); });
  if (!has_work) {
    return timeout;
  }
  const Duration until_commit =
      last_commit_ + std::chrono::milliseconds(core_.options().commit_interval_ms) - core_.now();
  return std::clamp(until_commit, Duration(0), timeout);
}

Status Worker::process(Duration timeout) {
  if (commit_pending_) {
    return commit();
  }
  if (inputs_.empty()) {
    core_.wait_for_news(timeout);
    return {};
  }
  WEIR_TRY_ASSIGN(std::vector<RecordBlock> blocks, source_->poll(poll_timeout(timeout)));
  for (RecordBlock& block : blocks) {
    WEIR_TRY(take_block(std::move(block)));
  }
  WEIR_TRY(process_tasks());
  if (commit_is_due()) {
    WEIR_TRY(commit());
  } else if (failing_since_.has_value() && offsets_to_commit().empty()) {
    failing_since_.reset();  // all is well and nothing waits for a commit to prove it
  }
  return tend_checkpoints();
}

void Worker::set_paused(std::uint32_t index, bool paused) {
  Input& input = inputs_[index];
  if (input.paused != paused) {
    input.paused = paused;
    if (paused) {
      source_->pause(index);
    } else {
      source_->resume(index);
    }
  }
}

Status Worker::take_block(RecordBlock block) {
  const std::uint32_t index = block.assignment;
  Input& input = inputs_[index];
  if (!block.status.ok()) {
    return handle_bad_block(input, block);
  }
  PartitionGroup& fifos = input.task->fifos();
  input.task->add(input.fifo, std::move(block));
  const auto limit = static_cast<std::size_t>(core_.options().buffered_records_per_partition);
  if (fifos.buffered(input.fifo) > limit) {
    set_paused(index, true);
  }
  return {};
}

Status Worker::handle_bad_block(Input& input, const RecordBlock& block) {
  const Errc code = block.status.error().code();
  if (code == Errc::kUnknownTopic) {
    input.gone = true;
    if (core_.is_repartition(input.partition.topic)) {
      return Error(block.status.error());  // an internal topic: made again by a new assignment
    }
    input.task->fifos().reset(input.fifo);
    core_.topic_gone(input.partition.topic);
    return {};
  }
  if (code == Errc::kOffsetOutOfRange) {
    const Offset position = input.task->fifos().position(input.fifo);
    WEIR_TRY_ASSIGN(
        const Offset start,
        start_of(input.partition, CommittedOffset{position, kNoLeaderEpoch, std::string()}));
    input.task->fifos().set_position(input.fifo, start, kNoLeaderEpoch);
    return source_->seek(block.assignment, start);
  }
  return Error(block.status.error()).with_context("read " + input.partition.to_string());
}

Status Worker::process_tasks() {
  const auto limit = static_cast<std::size_t>(core_.options().buffered_records_per_partition);
  for (const std::unique_ptr<Task>& task : tasks_) {
    WEIR_TRY(task->punctuate_wall_clock());
    std::size_t done = 0;
    while (done < kRecordsPerPass && !task->fifos().empty()) {
      WEIR_TRY_ASSIGN(const std::size_t count, task->process(kRecordsPerLook));
      done += count;
      if (commit_is_due()) {
        break;
      }
    }
  }
  for (std::uint32_t i = 0; i < inputs_.size(); ++i) {
    if (inputs_[i].paused && inputs_[i].task->fifos().buffered(inputs_[i].fifo) <= limit) {
      set_paused(i, false);
    }
  }
  return {};
}

// ---- errors and ends -------------------------------------------------------------------------

void Worker::handle(Error error) {
  const bool is_record = std::any_of(tasks_.begin(), tasks_.end(),
                                     [](const auto& task) { return task->failed_on_record(); });
  // A start offset that auto.offset.reset=none refuses is not found by trying again.
  if (is_record || start_refused_ || is_fatal(error.code())) {
    if (is_record) {
      flush_dead_letters();
    }
    core_.fail(std::move(error));
    return;
  }
  const MonotonicTime now = core_.now();
  if (!failing_since_.has_value()) {
    failing_since_ = now;
  }
  const auto timeout = std::chrono::milliseconds(core_.options().task_timeout_ms);
  if (now - *failing_since_ >= timeout) {
    core_.fail(std::move(error).with_context(
        fmt::format("tried again for task.timeout.ms={}", core_.options().task_timeout_ms)));
    return;
  }
  retry_at_ = now + kRetryInterval;
  if (commit_pending_ && is_retriable(error.code()) && !has_failed_task()) {
    metrics_.commit_failures.add(1);
    WEIR_WARN("commit failed and is tried again thread={} error=\"{}\"", index_, error.to_string());
    return;
  }
  WEIR_WARN("tasks are given up and restored thread={} error=\"{}\"", index_, error.to_string());
  metrics_.revivals.add(1);
  if (error.code() == Errc::kUnknownTopic) {
    // An internal topic was deleted. The state as of the last commit must outlive its changelog.
    checkpoint_all().ignore("then the changelog's rest is all there is");
    core_.request_rebalance();
  }
  give_up();
}

// Dead letters were handed to the sink before the task failed. Results of the failed interval may
// arrive with them; their offsets are not committed.
void Worker::flush_dead_letters() {
  if (core_.options().dead_letter_topic.empty() || sink_ == nullptr) {
    return;
  }
  if (const Result<std::vector<FlushedPartition>> flushed = sink_->flush(); !flushed.ok()) {
    WEIR_WARN("dead letters may be missing thread={} error=\"{}\"", index_,
              flushed.error().to_string());
  }
}

bool Worker::has_failed_task() const {
  return std::any_of(tasks_.begin(), tasks_.end(),
                     [](const auto& task) { return !task->status().ok(); });
}

void Worker::give_up() {
  close_tasks();
  phase_ = Phase::kMaking;
}

void Worker::close_tasks() {
  {
    const MutexLock lock(wake_mutex_);
    wake_source_ = nullptr;
  }
  task_metric_handles_.clear();
  restorer_.reset();
  inputs_.clear();
  tasks_.clear();
  source_.reset();
  sink_.reset();
  group_.reset();
  commit_pending_ = false;
  phase_ = Phase::kIdle;
}

void Worker::close_cleanly() {
  Status outcome;
  if (phase_ == Phase::kRunning && !has_failed_task()) {
    outcome = commit();
    if (outcome.ok()) {
      outcome = checkpoint_all();
    }
  }
  close_tasks();
  core_.stopped(index_, std::move(outcome));
}

}  // namespace weir::internal
