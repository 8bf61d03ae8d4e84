#include "operators/app/restorer.h"
#include "operators/app/start_offset.h"
#include "operators/session/session_worker.h"

#include <weir/operators/session.h>
#include <weir/runtime/logger.h>

#include <fmt/core.h>

#include <utility>

namespace weir {
namespace internal {
namespace {

constexpr Duration kRestorePoll = std::chrono::milliseconds(100);
constexpr Duration kRestoreMax = std::chrono::minutes(5);

std::string changelog_of(const SessionProcessorOptions& options, const std::string& topic) {
  return fmt::format("{}-{}-session-changelog", options.group, topic);
}

// A group whose committed offsets are of records that the log still has (decide_start()).
class CheckedGroup final : public Group {
 public:
  CheckedGroup(std::unique_ptr<Group> group, Admin& admin, OffsetReset reset)
      : group_(std::move(group)), admin_(admin), reset_(reset) {}

  Status join(std::vector<std::string> topics, std::string user_data,
              GroupListener& listener) override {
    return group_->join(std::move(topics), std::move(user_data), listener);
  }
  Status poll() override { return group_->poll(); }
  Status leave() override { return group_->leave(); }
  Status commit(std::span<const PartitionOffset> offsets) override {
    return group_->commit(offsets);
  }
  Result<std::vector<std::optional<CommittedOffset>>> committed(
      std::span<const TopicPartition> partitions) override {
    WEIR_TRY_ASSIGN(auto found, group_->committed(partitions));
    for (std::size_t i = 0; i < found.size(); ++i) {
      WEIR_TRY_ASSIGN(const StartDecision start, decide(partitions[i], found[i]));
      if (!found[i].has_value() || found[i]->offset != start.offset) {
        found[i] = CommittedOffset{start.offset, start.epoch, {}};
      }
    }
    return found;
  }
  GroupMetadata metadata() const override { return group_->metadata(); }
  void set_waker(std::function<void()> waker) override { group_->set_waker(std::move(waker)); }

 private:
  Result<StartDecision> decide(const TopicPartition& partition,
                               const std::optional<CommittedOffset>& committed) {
    StartFacts facts{.committed = committed, .log = {}, .epoch_end = {}};
    WEIR_TRY_ASSIGN(facts.log, admin_.offsets(partition));
    if (committed.has_value() && committed->leader_epoch != kNoLeaderEpoch) {
      WEIR_TRY_ASSIGN(facts.epoch_end, admin_.epoch_end_offset(partition, committed->leader_epoch));
    }
    WEIR_TRY_ASSIGN(StartDecision start, decide_start(partition, facts, reset_));
    if (!start.warning.empty()) {
      WEIR_WARN("{}", start.warning);
    }
    return start;
  }

  std::unique_ptr<Group> group_;
  Admin& admin_;
  OffsetReset reset_;
};

class SessionProcessorImpl final : public SessionProcessor {
 public:
  SessionProcessorImpl(Backend& backend, const Clock& clock, SessionProcessorOptions options)
      : backend_(backend) {
    shared_.options = std::move(options);
    if (!shared_.options.classify) {
      shared_.options.classify = retry_thrown;
    }
    shared_.clock = &clock;
  }
  void set(SessionHandler handler) { shared_.handler = std::move(handler); }
  void set(AsyncSessionHandler handler) { shared_.async_handler = std::move(handler); }

  Status start();
  Status run_once(Duration timeout) override { return engine_->run_once(timeout); }
  Status close(SessionEngine::Close mode, Duration deadline) override {
    shared_.is_closing.store(mode == SessionEngine::Close::kDrainRunning,
                             std::memory_order_relaxed);
    return engine_->close(mode, deadline);
  }
  void wake() override { engine_->wake(); }
  SessionCounts counts() const override;
  SessionSignals signals() const override { return engine_->signals(); }
  std::vector<StuckRecord> stuck(std::size_t count_max) const override {
    return engine_->stuck(count_max);
  }
  std::vector<std::pair<TopicPartition, Offset>> positions() const override {
    return engine_->positions();
  }
  std::optional<MonotonicTime> next_due() const override { return engine_->next_due(); }

 private:
  const SessionProcessorOptions& options() const { return shared_.options; }
  Status check_options() const;
  // Makes dead-letter topics and changelogs that are missing; changelogs grow with their topic.
  Status make_topics();
  Status make_topic(const std::string& name, std::int32_t partitions, TopicConfig config);
  Status make_changelog(const std::string& topic, std::int32_t partitions);
  Result<std::unique_ptr<SessionWorker>> make_worker();
  Status open_partition(std::uint32_t number, const TopicPartition& partition);
  Status restore(SessionPartition& partition);

  Backend& backend_;
  SessionShared shared_;
  std::unique_ptr<RecordSink> restore_sink_;
  std::unique_ptr<CheckedGroup> group_;
  std::unique_ptr<RecordSource> source_;
  std::vector<std::unique_ptr<SessionWorker>> made_;  // until the engine has them
  std::atomic<std::uint64_t> restored_{0};
  std::unique_ptr<SessionEngine> engine_;  // the last: its workers use the rest
};

Status SessionProcessorImpl::check_options() const {
  const SessionProcessorOptions& given = options();
  if (given.group.empty() || given.topics.empty()) {
    return Error(Errc::kInvalidConfig, "a session processor needs group.id and a topic");
  }
  if (!shared_.handler && !shared_.async_handler) {
    return Error(Errc::kInvalidConfig, "a session processor needs a handler");
  }
  if (given.has_state && given.lanes.dispatch == SessionDispatch::kSpread) {
    return Error(Errc::kInvalidConfig,
                 "session.dispatch=spread moves sessions between workers, their state stays with a "
                 "partition's: choose session.dispatch=local, or has_state=false");
  }
  if (given.skips_applied && (!given.has_state || given.lanes.has_unordered_null_sessions)) {
    return Error(Errc::kInvalidConfig,
                 given.has_state ? "skips_applied keeps a mark for each session, and "
                                   "session.null.session=unordered makes one of each record "
                                   "without a key: choose one of them"
                                 : "skips_applied looks into the state: it needs has_state");
  }
  const std::string& reset = given.auto_offset_reset;
  if (reset != "earliest" && reset != "latest" && reset != "none") {
    return Error(
        Errc::kInvalidConfig,
        fmt::format("auto.offset.reset is \"{}\": earliest, latest and none are possible", reset));
  }
  for (const std::string& topic : given.topics) {
    if (dead_letter_topic_of(given, topic) == topic) {
      return Error(Errc::kInvalidConfig,
                   fmt::format("{} is both read and the topic of dead letters: choose another "
                               "errors.dead.letter.queue.topic.name",
                               topic));
    }
  }
  return {};
}

Status SessionProcessorImpl::make_topic(const std::string& name, std::int32_t partitions,
                                        TopicConfig config) {
  config.emplace("weir.durability", options().internal_durability);
  const Result<TopicDescription> made =
      backend_.admin().create_topic({name, partitions, std::move(config)});
  return made.ok() || made.error().code() == Errc::kTopicExists ? Status() : made.status();
}

Status SessionProcessorImpl::make_changelog(const std::string& topic, std::int32_t partitions) {
  const std::string name = changelog_of(options(), topic);
  const Result<TopicDescription> found = backend_.admin().describe_topic(name);
  if (!found.ok()) {
    if (found.error().code() != Errc::kUnknownTopic) {
      return found.status();
    }
    return make_topic(name, partitions,
                      {{"cleanup.policy", "compact"}, {"message.timestamp.type", "CreateTime"}});
  }
  return found->partitions < partitions ? backend_.admin().grow_topic(name, partitions) : Status();
}

Status SessionProcessorImpl::make_topics() {
  for (const std::string& topic : options().topics) {
    WEIR_TRY_ASSIGN(const TopicDescription input, backend_.admin().describe_topic(topic));
    const auto durability = input.config.find("weir.durability");
    if (options().skips_applied && durability != input.config.end() &&
        durability->second != "fsync") {
      return Error(Errc::kInvalidConfig,
                   fmt::format("skips_applied takes offsets of {} for what they are for ever, and "
                               "a power cut gives them to other records: the topic needs "
                               "weir.durability=fsync",
                               topic));
    }
    WEIR_TRY(make_topic(dead_letter_topic_of(options(), topic), input.partitions,
                        {{"retention.ms", "-1"}}));
    if (options().has_state) {
      WEIR_TRY(make_changelog(topic, input.partitions));
    }
  }
  return {};
}

Result<std::unique_ptr<SessionWorker>> SessionProcessorImpl::make_worker() {
  const SinkOptions sink_options{.client_id = options().group, .transactional_id = {}};
  WEIR_TRY_ASSIGN(std::unique_ptr<RecordSink> sink, backend_.make_sink(sink_options));
  std::vector<SinkTopicInfo> outputs;
  for (const std::string& topic : options().outputs) {
    WEIR_TRY_ASSIGN(const SinkTopicInfo output, sink->open_topic(topic));
    outputs.push_back(output);
  }
  WEIR_TRY_ASSIGN(std::unique_ptr<RecordSink> letters, backend_.make_sink(sink_options));
  return std::make_unique<SessionWorker>(
      shared_,
      SessionEffects(std::move(sink), std::move(outputs), shared_.partitions, *shared_.clock,
                     options().skips_applied),
      DeadLetterWriter(std::move(letters), options(), shared_.partitions, *shared_.clock));
}

Status SessionProcessorImpl::restore(SessionPartition& partition) {
  TaskStore& state = partition.state;
  state.name = fmt::format("{}-{}", options().group, partition.source.topic);
  state.changelog = {changelog_of(options(), partition.source.topic), partition.source.partition};
  WEIR_TRY_ASSIGN(state.store,
                  state::KeyValueStore::open({.name = state.name,
                                              .mode = state::StoreMode::kMemory,
                                              .hot_bytes_max = options().state_bytes_max},
                                             nullptr, nullptr, *shared_.clock));
  Restorer restorer(backend_, *restore_sink_, *shared_.clock);
  WEIR_TRY(restorer.prepare(state));
  WEIR_TRY(restorer.begin());
  const MonotonicTime deadline = shared_.clock->monotonic() + kRestoreMax;
  for (bool is_done = false; !is_done;) {
    WEIR_TRY_ASSIGN(is_done, restorer.step(kRestorePoll));
    if (!is_done && shared_.clock->monotonic() >= deadline) {
      return Error(Errc::kTimedOut,
                   fmt::format("the state of {} was not read from {} in time",
                               partition.source.to_string(), state.changelog.to_string()));
    }
  }
  restored_ += restorer.restored_records();
  return {};
}

Status SessionProcessorImpl::open_partition(std::uint32_t number, const TopicPartition& partition) {
  // Shared: a handler that outlives the hand-over still has it.
  auto opened = std::make_shared<SessionPartition>();
  opened->source = partition;
  WEIR_TRY_ASSIGN(const TopicDescription topic, backend_.admin().describe_topic(partition.topic));
  opened->source_id = topic.id;
  if (options().has_state) {
    WEIR_TRY(make_changelog(partition.topic, topic.partitions));
    WEIR_TRY(restore(*opened));
  }
  shared_.partitions.set(number, std::move(opened));
  return {};
}

Status SessionProcessorImpl::start() {
  WEIR_TRY(check_options());
  WEIR_TRY(make_topics());
  const OffsetReset reset = offset_reset_of(options().auto_offset_reset);
  WEIR_TRY_ASSIGN(restore_sink_,
                  backend_.make_sink({.client_id = options().group, .transactional_id = {}}));
  WEIR_TRY_ASSIGN(std::unique_ptr<Group> group, backend_.make_group(options().group));
  group_ = std::make_unique<CheckedGroup>(std::move(group), backend_.admin(), reset);
  WEIR_TRY_ASSIGN(source_, backend_.make_source({}));
  for (std::uint32_t i = 0; i < options().lanes.workers; ++i) {
    WEIR_TRY_ASSIGN(std::unique_ptr<SessionWorker> worker, make_worker());
    made_.push_back(std::move(worker));
  }
  SessionEngine::Parts parts;
  parts.clock = shared_.clock;
  parts.group = group_.get();
  parts.source = source_.get();
  parts.make_worker = [this](std::uint32_t worker) { return std::move(made_[worker]); };
  parts.start_offset = [this](const TopicPartition& partition) -> Result<Offset> {
    WEIR_TRY_ASSIGN(const PartitionOffsets log, backend_.admin().offsets(partition));
    return log.log_start;  // CheckedGroup has answered for all
  };
  parts.log_end = [this](const TopicPartition& partition) -> Result<Offset> {
    WEIR_TRY_ASSIGN(const PartitionOffsets log, backend_.admin().offsets(partition));
    return log.high_watermark;
  };
  parts.extractor = options().extractor;
  parts.on_assigned = [this](std::uint32_t number, const TopicPartition& partition) {
    return open_partition(number, partition);
  };
  parts.on_released = [this](std::uint32_t number) { shared_.partitions.retire(number); };
  WEIR_TRY_ASSIGN(engine_,
                  SessionEngine::open(options().lanes, std::move(parts), options().topics));
  return {};
}

SessionCounts SessionProcessorImpl::counts() const {
  const SessionCounters& counters = shared_.counters;
  return {.attempts = counters.attempts,
          .handled = counters.handled,
          .failures = counters.failures,
          .retries = counters.retries,
          .dead_letters = counters.dead_letters,
          .letter_failures = counters.letter_failures,
          .outputs = counters.outputs,
          .skipped_applied = counters.skipped_applied,
          .restored = restored_};
}

template <class Handler>
Result<std::unique_ptr<SessionProcessor>> open_sessions(Backend& backend, const Clock& clock,
                                                        SessionProcessorOptions options,
                                                        Handler handler) {
  auto processor = std::make_unique<SessionProcessorImpl>(backend, clock, std::move(options));
  processor->set(std::move(handler));
  WEIR_TRY(processor->start());
  return std::unique_ptr<SessionProcessor>(std::move(processor));
}

}  // namespace
}  // namespace internal

Result<std::unique_ptr<SessionProcessor>> SessionProcessor::open(Backend& backend,
                                                                 const Clock& clock,
                                                                 SessionProcessorOptions options,
                                                                 SessionHandler handler) {
  return internal::open_sessions(backend, clock, std::move(options), std::move(handler));
}

Result<std::unique_ptr<SessionProcessor>> open_async_sessions(Backend& backend, const Clock& clock,
                                                              SessionProcessorOptions options,
                                                              AsyncSessionHandler handler) {
  return internal::open_sessions(backend, clock, std::move(options), std::move(handler));
}

}  // namespace weir
