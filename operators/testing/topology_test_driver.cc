#include "operators/plan/plan.h"
#include "operators/task/task.h"

#include <weir/operators/testing/topology_test_driver.h>
#include <weir/runtime/assert.h>
#include <weir/runtime/logger.h>
#include <weir/runtime/testing/manual_clock.h>

#include <deque>
#include <map>
#include <utility>

namespace weir::testing {

namespace {

constexpr std::size_t kTopicsMax = 1U << 16U;

// Keeps what is sent: the driver's log.
class CapturingSink final : public RecordSink {
 public:
  Result<SinkTopicInfo> open_topic(const std::string& name) override {
    for (SinkTopic handle = 0; handle < topics_.size(); ++handle) {
      if (topics_[handle] == name) {
        return SinkTopicInfo{handle, 1, {}};
      }
    }
    WEIR_ASSERT(topics_.size() < kTopicsMax);
    topics_.push_back(name);
    return SinkTopicInfo{static_cast<SinkTopic>(topics_.size() - 1), 1, {}};
  }
  Status send(SinkTopic topic, PartitionId /*partition*/,
              std::span<const RecordRef> records) override {
    for (const RecordRef& record : records) {
      RawTestRecord raw{
          topics_[topic], record.key.to_owned(), record.value.to_owned(), record.timestamp, {}};
      for (const HeaderView& header : record.headers) {
        raw.headers.emplace_back(header.name, header.value.to_owned());
      }
      written_.push_back(std::move(raw));
      ++ends_[topic];
    }
    return {};
  }
  Result<std::vector<FlushedPartition>> flush() override {
    std::vector<FlushedPartition> flushed;
    for (const auto& [topic, end] : ends_) {
      flushed.push_back({topic, PartitionId(0), Offset(end), LeaderEpoch(0)});
    }
    return flushed;
  }
  Status begin() override { return Error(Errc::kUnsupported, "the driver has no transactions"); }
  Status send_offsets(std::span<const std::pair<TopicPartition, CommittedOffset>> /*offsets*/,
                      const GroupMetadata& /*group*/) override {
    return Error(Errc::kUnsupported, "the driver has no transactions");
  }
  Result<TransactionOutcome> end(bool /*commit*/) override {
    return Error(Errc::kUnsupported, "the driver has no transactions");
  }

  std::vector<RawTestRecord> take() { return std::exchange(written_, {}); }

 private:
  std::vector<std::string> topics_;
  std::vector<RawTestRecord> written_;
  std::map<SinkTopic, std::int64_t> ends_;
};

// A record that a block may borrow from.
struct OwnedInput {
  RawTestRecord record;
  Headers headers;
};

}  // namespace

struct TopologyTestDriver::State {
  State(Topology given, Options given_options)
      : topology(std::move(given)), options(std::move(given_options)), clock(options.now) {}

  struct Input {
    internal::Task* task = nullptr;
    std::size_t index = 0;
    std::int64_t next_offset = 0;
  };

  void build();
  std::unique_ptr<internal::Task> make_task(std::uint32_t sub_topology);
  void enqueue(RawTestRecord record);
  Status process_one();
  Status commit(internal::Task& task);
  void collect();

  Topology topology;
  Options options;
  ManualClock clock;
  CapturingSink sink;
  internal::CacheBudget budget;
  std::vector<std::unique_ptr<internal::Task>> tasks;
  std::map<std::string, Input, std::less<>> inputs;  // by topic on the log
  std::deque<RawTestRecord> waiting;                 // to be fed in, oldest first
  std::map<std::string, std::deque<RawTestRecord>, std::less<>> outputs;
  std::vector<RawTestRecord> written;
};

void TopologyTestDriver::State::build() {
  if (!topology.status().ok()) {
    WEIR_ERROR("topology cannot be tested error={}", topology.status().error().to_string());
  }
  WEIR_ASSERT(topology.status().ok());
  budget.bytes_max = options.cache_bytes_max;
  for (std::uint32_t i = 0; i < topology.plan().sub_topologies.size(); ++i) {
    tasks.push_back(make_task(i));
  }
  for (const std::unique_ptr<internal::Task>& task : tasks) {
    Status ready = task->init();
    if (ready.ok()) {
      ready = commit(*task);
    }
    if (!ready.ok()) {
      WEIR_ERROR("topology cannot be tested error={}", ready.error().to_string());
    }
    WEIR_ASSERT(ready.ok());
  }
  collect();
}

std::unique_ptr<internal::Task> TopologyTestDriver::State::make_task(std::uint32_t sub_topology) {
  const internal::Plan& plan = topology.plan();
  internal::TaskParts parts{.plan = &plan,
                            .id = {sub_topology, PartitionId(0)},
                            .application_id = options.application_id,
                            .sink = &sink,
                            .cache_budget = &budget,
                            .clock = &clock,
                            .errors = options.errors,
                            .stores = {},
                            .sink_records_max = 1};  // the order over all topics stays visible
  for (const std::string& name : plan.sub_topologies[sub_topology].stores) {
    auto store = std::make_unique<internal::TaskStore>();
    store->name = name;
    store->store = state::KeyValueStore::open({.name = name, .mode = state::StoreMode::kMemory},
                                              nullptr, nullptr, clock)
                       .value();
    store->changelog = {
        internal::internal_topic_name(options.application_id, internal::changelog_name(name)),
        PartitionId(0)};
    store->changelog_topic = sink.open_topic(store->changelog.topic).value();
    parts.stores.push_back(std::move(store));
  }
  std::unique_ptr<internal::Task> task = internal::Task::make(std::move(parts)).value();
  for (const std::string& topic : plan.sub_topologies[sub_topology].source_topics) {
    const std::string name = internal::topic_on_log(plan, options.application_id, topic);
    const std::size_t index = task->add_input({name, PartitionId(0)}, kNoTimestamp);
    inputs.emplace(name, Input{task.get(), index, 0});
  }
  return task;
}

void TopologyTestDriver::State::collect() {
  for (RawTestRecord& record : sink.take()) {
    if (inputs.contains(record.topic)) {
      waiting.push_back(record);
    }
    outputs[record.topic].push_back(record);
    written.push_back(std::move(record));
  }
}

Status TopologyTestDriver::State::process_one() {
  auto owned = std::make_shared<OwnedInput>();
  owned->record = std::move(waiting.front());
  waiting.pop_front();
  for (const auto& [name, value] : owned->record.headers) {
    owned->headers.add(name, value.has_value() ? NullableBytes(*value) : NullableBytes());
  }
  Input& input = inputs.find(owned->record.topic)->second;
  const auto bytes = [](const std::optional<std::string>& text) {
    return text.has_value() ? NullableBytes(*text) : NullableBytes();
  };
  RecordBlock block;
  block.next_offset = Offset(input.next_offset + 1);
  block.records.push_back({.key = bytes(owned->record.key),
                           .value = bytes(owned->record.value),
                           .offset = Offset(input.next_offset++),
                           .timestamp = owned->record.timestamp,
                           .headers = owned->headers.view()});
  block.owner = owned;
  input.task->add(input.index, std::move(block));
  WEIR_TRY(input.task->process(1).status());
  WEIR_TRY(commit(*input.task));
  collect();
  return {};
}

Status TopologyTestDriver::State::commit(internal::Task& task) {
  WEIR_TRY(task.flush_results());
  for (const std::unique_ptr<internal::TaskStore>& store : task.stores()) {
    if (store->store->scope_empty()) {
      continue;
    }
    WEIR_TRY(store->store->write_changelog(sink, store->changelog_topic.handle, PartitionId(0)));
    WEIR_TRY_ASSIGN(const std::vector<FlushedPartition> flushed, sink.flush());
    for (const FlushedPartition& end : flushed) {
      if (end.topic == store->changelog_topic.handle) {
        WEIR_TRY(store->store->promote({{}, end.end_offset, end.leader_epoch, clock.now()}));
      }
    }
    store->cache->committed();
  }
  return {};
}

TopologyTestDriver::TopologyTestDriver(Topology topology, Options options)
    : state_(std::make_unique<State>(std::move(topology), std::move(options))) {
  state_->build();
}

TopologyTestDriver::~TopologyTestDriver() = default;

Status TopologyTestDriver::pipe_bytes(std::string_view topic, const RecordRef& record) {
  if (!state_->inputs.contains(topic)) {
    WEIR_ERROR("the topology does not read topic={}", topic);
  }
  WEIR_ASSERT(state_->inputs.contains(topic));
  RawTestRecord raw{
      std::string(topic), record.key.to_owned(), record.value.to_owned(), record.timestamp, {}};
  for (const HeaderView& header : record.headers) {
    raw.headers.emplace_back(header.name, header.value.to_owned());
  }
  state_->waiting.push_back(std::move(raw));
  while (!state_->waiting.empty()) {
    WEIR_TRY(state_->process_one());
  }
  return {};
}

std::optional<RawTestRecord> TopologyTestDriver::read_bytes(std::string_view topic) {
  const auto found = state_->outputs.find(topic);
  if (found == state_->outputs.end() || found->second.empty()) {
    return std::nullopt;
  }
  RawTestRecord record = std::move(found->second.front());
  found->second.pop_front();
  return record;
}

std::vector<RawTestRecord> TopologyTestDriver::take_written() {
  return std::exchange(state_->written, {});
}

std::optional<std::pair<std::string, Timestamp>> TopologyTestDriver::get_bytes(
    std::string_view store, ByteView key) {
  internal::TaskStore* found = nullptr;
  for (const std::unique_ptr<internal::Task>& task : state_->tasks) {
    found = found == nullptr ? task->find_store(store) : found;
  }
  if (found == nullptr) {
    WEIR_ERROR("the topology has no store name={}", store);
  }
  WEIR_ASSERT(found != nullptr);
  const auto value = found->store->get(key).value();
  if (!value.has_value()) {
    return std::nullopt;
  }
  return std::pair(std::string(value->value), value->timestamp);
}

std::vector<TopologyTestDriver::StoreRow> TopologyTestDriver::rows(std::string_view store) {
  std::vector<StoreRow> rows;
  for (const std::unique_ptr<internal::Task>& task : state_->tasks) {
    internal::TaskStore* found = task->find_store(store);
    if (found == nullptr) {
      continue;
    }
    const std::unique_ptr<state::StoreIterator> entries = found->store->scan({}, {}).value();
    for (; entries->valid(); entries->next()) {
      rows.push_back(
          {std::string(entries->key()), std::string(entries->value()), entries->timestamp()});
    }
  }
  return rows;
}

std::uint64_t TopologyTestDriver::dropped() const {
  std::uint64_t dropped = 0;
  for (const std::unique_ptr<internal::Task>& task : state_->tasks) {
    dropped += task->dropped_counter().value();
  }
  return dropped;
}

Timestamp TopologyTestDriver::now() const {
  return state_->clock.now();
}

Status TopologyTestDriver::advance_wall_clock(Duration by) {
  state_->clock.advance(by);
  for (const std::unique_ptr<internal::Task>& task : state_->tasks) {
    WEIR_TRY(task->punctuate_wall_clock());
    WEIR_TRY(state_->commit(*task));
  }
  state_->collect();
  while (!state_->waiting.empty()) {
    WEIR_TRY(state_->process_one());
  }
  return {};
}

}  // namespace weir::testing
