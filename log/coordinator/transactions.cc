#include "log/coordinator/transactions.h"

#include "log/partition/await.h"
#include "log/partition/replay.h"
#include "log/record/batch_builder.h"
#include "log/record/control_record.h"

#include <weir/runtime/logger.h>

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <iterator>
#include <utility>

namespace weir::log {

namespace {

constexpr auto kWriteTimeout = std::chrono::seconds(30);
constexpr std::size_t kBatchBytesMax = 64U << 20U;
constexpr int kInitAttempts = 3;

bool is_decision(const AppendTransactionState& record) {
  return record.value && (record.value->status == TransactionStatus::kPrepareCommit ||
                          record.value->status == TransactionStatus::kPrepareAbort);
}

// The partition has seen a later epoch of the producer: what the marker was to end is over.
bool is_marked_already(const Error& error) {
  return error.code() == Errc::kInvalidProducerEpoch || error.code() == Errc::kUnknownTopic;
}

}  // namespace

// --- What is on its way

void Transactions::Run::go_on_with(TransactionEffects more) {
  effects.insert(effects.begin(), std::make_move_iterator(more.begin()),
                 std::make_move_iterator(more.end()));
}

void Transactions::Run::note(const std::shared_ptr<Partition>& partition, Offset end) {
  Written& entry = written[partition->options().name];
  entry.partition = partition;
  entry.end = std::max(entry.end, end);
}

SharedBytes Transactions::encode(const AppendTransactionState& record) const {
  BatchBuilder builder(kBatchBytesMax);
  const std::string key = encode_transaction_key(record.transactional_id);
  const std::string value =
      record.value ? encode_transaction_value(*record.value, record.value_version) : std::string();
  NullableBytes content;
  if (record.value) {
    content = ByteView(value);
  }
  const bool taken = builder.append(RecordRef{ByteView(key), content, clock_.now(), {}});
  WEIR_ASSERT(taken);
  return builder.seal();
}

SharedBytes Transactions::encode_marker(const WriteTransactionMarkers& markers,
                                        LeaderEpoch coordinator) const {
  return build_end_transaction_marker(markers.commit ? ControlType::kCommit : ControlType::kAbort,
                                      markers.producer.id, markers.producer.epoch,
                                      std::max(coordinator.value(), 0), clock_.now());
}

Result<std::shared_ptr<Partition>> Transactions::state_partition(
    const std::string& transactional_id) {
  WEIR_TRY(topics_.ensure_state_topic());
  const PartitionId index = partition_for_group(transactional_id, topics_.state_partitions());
  std::shared_ptr<Partition>& slot = state_[index];
  if (slot == nullptr) {
    WEIR_TRY_ASSIGN(slot, topics_.open_to_append({std::string(kTransactionTopic), index}));
  }
  return slot;
}

// --- Start

Status Transactions::start() {
  Run run;
  {
    const MutexLock lock(mutex_);
    if (started_) {
      return Status();
    }
    WEIR_TRY(load());
    started_ = true;
    TransactionEffects effects;
    core_.finish_loading(clock_.now(), effects);
    run.go_on_with(std::move(effects));
  }
  carry_out(run);
  return finish(run);
}

Status Transactions::load() {
  const std::int32_t count = topics_.state_partitions();
  for (std::int32_t i = 0; i < count; ++i) {
    const TopicPartition name{std::string(kTransactionTopic), PartitionId(i)};
    WEIR_TRY_ASSIGN(const std::shared_ptr<Partition> partition, topics_.open_to_append(name));
    state_[PartitionId(i)] = partition;
    const auto read = [this](const RecordView& record) WEIR_NO_THREAD_SAFETY_ANALYSIS -> Status {
      if (record.key.is_null()) {
        return Error(Errc::kCorrupt, "transaction record without a key");
      }
      WEIR_TRY_ASSIGN(const std::optional<std::string> id,
                      decode_transaction_key(record.key.view()));
      if (!id) {
        return Status();
      }
      if (record.value.is_null()) {
        return core_.load(*id, std::nullopt);
      }
      WEIR_TRY_ASSIGN(TransactionValue value, decode_transaction_value(record.value.view()));
      return core_.load(*id, std::move(value));
    };
    Result<Offset> end = replay_records(*partition, partition->offsets().log_start, read);
    if (!end.ok()) {
      return std::move(end).error().with_context(
          fmt::format("read transactions from {}", name.to_string()));
    }
  }
  return Status();
}

// --- Carrying out

void Transactions::carry_out(Run& run) {
  while (true) {
    std::optional<Step> step;
    {
      const MutexLock lock(mutex_);
      step = next_step(run);
    }
    if (!step) {
      return;
    }
    finish_step(*step, run);
  }
}

// Goes on until something must be durable before the next.
std::optional<Transactions::Step> Transactions::next_step(Run& run) {
  while (!run.effects.empty()) {
    const TransactionEffect effect = std::move(run.effects.front());
    run.effects.pop_front();
    if (const auto* record = std::get_if<AppendTransactionState>(&effect)) {
      if (std::optional<Step> step = append_state(*record, run)) {
        return step;
      }
    } else if (const auto* markers = std::get_if<WriteTransactionMarkers>(&effect)) {
      return append_markers(*markers, run);
    } else {
      run.answer = std::get<TransactionAnswer>(effect);
    }
  }
  return std::nullopt;
}

std::optional<Transactions::Step> Transactions::append_state(const AppendTransactionState& record,
                                                             Run& run) {
  if (is_decision(record)) {
    if (std::optional<OpenPartitions> partitions = open_for_group(*record.value)) {
      end_in_one_group(record, *std::move(partitions), run);
      return std::nullopt;
    }
  }
  TransactionEffects more;
  const auto append = [&]() WEIR_NO_THREAD_SAFETY_ANALYSIS -> Result<Written> {
    WEIR_TRY_ASSIGN(const std::shared_ptr<Partition> partition,
                    state_partition(record.transactional_id));
    WEIR_TRY_ASSIGN(const Partition::Appended appended,
                    partition->append(encode(record), AppendOrigin::kCoordinator));
    return Written{partition, appended.next_offset};
  };
  Result<Written> written = append();
  if (!written.ok()) {
    core_.on_appended(record.token, written.status(), clock_.now(), more);
    run.go_on_with(std::move(more));
    return std::nullopt;
  }
  run.note(written->partition, written->end);
  // What follows in the write-ahead log is not durable before it; what a `memory` partition holds
  // is not ordered by that.
  if (is_decision(record) || (record.value && has_memory_partition(*record.value))) {
    Step step;
    step.token = record.token;
    step.written.emplace_back(written->partition->options().name, *written);
    return step;
  }
  core_.on_appended(record.token, Status(), clock_.now(), more);
  run.go_on_with(std::move(more));
  return std::nullopt;
}

// One by one: what fails does not hold up the others.
Transactions::Step Transactions::append_markers(const WriteTransactionMarkers& markers, Run& run) {
  Step step;
  step.token = markers.token;
  step.is_markers = true;
  step.producer = markers.producer.id;
  const Result<std::shared_ptr<Partition>> state = state_partition(markers.transactional_id);
  const LeaderEpoch coordinator = state.ok() ? (*state)->offsets().leader_epoch : kNoLeaderEpoch;
  for (const TopicPartition& name : markers.partitions) {
    const auto append = [&]() WEIR_NO_THREAD_SAFETY_ANALYSIS -> Result<Written> {
      WEIR_TRY(state.status());
      WEIR_TRY_ASSIGN(const std::shared_ptr<Partition> partition, topics_.open_to_append(name));
      AppendOptions options(AppendOrigin::kCoordinator);
      options.transaction_version = markers.client_version;
      WEIR_TRY_ASSIGN(const Partition::Appended appended,
                      partition->append(encode_marker(markers, coordinator), options));
      return Written{partition, appended.next_offset};
    };
    Result<Written> written = append();
    if (written.ok()) {
      run.note(written->partition, written->end);
      step.written.emplace_back(name, *std::move(written));
    } else if (is_marked_already(written.error())) {
      const auto partition = topics_.open_to_append(name);
      step.written.emplace_back(
          name, Written{nullptr, partition.ok() ? (*partition)->offsets().log_end : Offset(0)});
    } else {
      step.has_failed = true;
      WEIR_WARN(
          "transaction marker not written, the next tick tries again id={} partition={} "
          "error=\"{}\"",
          markers.transactional_id, name.to_string(), written.error().message());
      continue;
    }
    if (name.topic == kOffsetsTopic) {
      offsets_.note_marker(name.partition, markers.producer.id, markers.commit,
                           step.written.back().second.end);
    }
  }
  return step;
}

void Transactions::finish_step(const Step& step, Run& run) {
  Status failure;
  std::vector<TopicPartition> done;
  for (const auto& [name, written] : step.written) {
    const Status durable =
        written.partition == nullptr
            ? Status()
            : await_high_watermark(written.partition, written.end, kWriteTimeout);
    if (!durable.ok()) {
      failure = durable;
      continue;
    }
    done.push_back(name);
    if (step.is_markers && name.topic == kOffsetsTopic) {
      run.offsets_markers.push_back({name.partition, step.producer, written.end});
    }
  }
  const MutexLock lock(mutex_);
  TransactionEffects more;
  if (step.is_markers) {
    core_.on_markers_written(step.token, done, clock_.now(), more);
    if (step.has_failed || !failure.ok()) {
      core_.on_markers_failed(step.token);
    }
  } else {
    core_.on_appended(step.token, failure, clock_.now(), more);
  }
  run.go_on_with(std::move(more));
}

Status Transactions::finish(const Run& run) {
  Status durable;
  for (const auto& [name, written] : run.written) {
    if (durable.ok()) {
      durable = await_high_watermark(written.partition, written.end, kWriteTimeout);
    }
  }
  if (!durable.ok()) {
    const MutexLock lock(mutex_);
    if (!run.offsets_markers.empty()) {
      late_.push_back(run);
    }
    return durable;
  }
  for (const OffsetsMarker& marker : run.offsets_markers) {
    offsets_.on_marker_durable(marker.partition, marker.producer, marker.end);
  }
  apply_late();
  return Status();
}

void Transactions::apply_late() {
  std::vector<OffsetsMarker> due;
  {
    const MutexLock lock(mutex_);
    std::erase_if(late_, [&due](const Run& run) {
      const bool is_durable = std::ranges::all_of(run.written, [](const auto& one) {
        return one.second.partition->offsets().high_watermark >= one.second.end;
      });
      if (is_durable) {
        due.insert(due.end(), run.offsets_markers.begin(), run.offsets_markers.end());
      }
      return is_durable;
    });
  }
  for (const OffsetsMarker& marker : due) {
    offsets_.on_marker_durable(marker.partition, marker.producer, marker.end);
  }
}

// --- Requests

// `ask_core` may be called again, with a new producer id.
template <class AskCore>
Result<TransactionAnswer> Transactions::ask(AskCore&& ask_core, Run& run) {
  WEIR_TRY(start());
  std::optional<ProducerId> new_id;
  do {
    if (run.answer && run.answer->needs_producer_id) {
      WEIR_TRY_ASSIGN(new_id, topics_.next_producer_id());
      run.answer.reset();
    }
    {
      const MutexLock lock(mutex_);
      TransactionEffects effects;
      ask_core(core_, new_id, clock_.now(), effects);
      run.go_on_with(std::move(effects));
    }
    carry_out(run);
  } while (run.answer && run.answer->needs_producer_id);
  if (!run.answer) {
    return Error(Errc::kInternal, "the transaction coordinator gave no answer");
  }
  return *run.answer;
}

Result<ProducerIdAndEpoch> Transactions::init(const std::string& transactional_id,
                                              std::int32_t timeout_ms,
                                              std::optional<ProducerIdAndEpoch> known) {
  Status refused;
  // What was open is aborted by the first attempt; the next one gives the epoch.
  for (int attempt = 0; attempt < kInitAttempts; ++attempt) {
    Run run;
    const auto init = [&](TransactionCoordinator& core, std::optional<ProducerId> new_id,
                          Timestamp now, TransactionEffects& effects) {
      core.init_producer_id({0, transactional_id, timeout_ms, known, new_id}, now, effects);
    };
    WEIR_TRY_ASSIGN(const TransactionAnswer answer, ask(init, run));
    WEIR_TRY(finish(run));
    refused = answer.status();
    if (refused.ok()) {
      return answer.producer;
    }
    if (refused.error().code() != Errc::kConcurrentTransactions) {
      break;
    }
  }
  return std::move(refused).error();
}

Status Transactions::add_partitions(const std::string& transactional_id,
                                    ProducerIdAndEpoch producer,
                                    std::vector<TopicPartition> partitions,
                                    std::int16_t client_version) {
  for (const TopicPartition& name : partitions) {
    WEIR_TRY_ASSIGN(const std::shared_ptr<Partition> partition, topics_.open_to_append(name));
    if (partition->settings().durability == DurabilityMode::kMemory) {
      warn_of_memory(*partition);
    }
  }
  Run run;
  const auto add = [&](TransactionCoordinator& core, std::optional<ProducerId> /*new_id*/,
                       Timestamp now, TransactionEffects& effects) {
    core.add_partitions({0, transactional_id, producer, partitions, client_version, false}, now,
                        effects);
  };
  WEIR_TRY_ASSIGN(const TransactionAnswer answer, ask(add, run));
  return answer.status();  // not awaited: what is written next stands behind it
}

Status Transactions::verify(const std::string& transactional_id, ProducerIdAndEpoch producer,
                            std::vector<TopicPartition> partitions, std::int16_t client_version) {
  Run run;
  const auto verify = [&](TransactionCoordinator& core, std::optional<ProducerId> /*new_id*/,
                          Timestamp now, TransactionEffects& effects) {
    core.add_partitions({0, transactional_id, producer, partitions, client_version, true}, now,
                        effects);
  };
  WEIR_TRY_ASSIGN(const TransactionAnswer answer, ask(verify, run));
  return answer.status();
}

Status Transactions::send_offsets(const std::string& transactional_id, ProducerIdAndEpoch producer,
                                  const std::string& group,
                                  std::span<const PartitionOffset> offsets,
                                  std::int16_t client_version) {
  if (offsets.empty()) {
    return Status();
  }
  WEIR_TRY_ASSIGN(const TopicPartition name, offsets_.partition_of(group));
  WEIR_TRY(add_partitions(transactional_id, producer, {name}, client_version));
  return offsets_.commit_in_transaction(group, producer.id, producer.epoch, offsets);
}

Result<ProducerIdAndEpoch> Transactions::end(const std::string& transactional_id,
                                             ProducerIdAndEpoch producer, bool commit,
                                             std::int16_t client_version) {
  Run run;
  const auto end = [&](TransactionCoordinator& core, std::optional<ProducerId> new_id,
                       Timestamp now, TransactionEffects& effects) {
    core.end_transaction({0, transactional_id, producer, commit, client_version, new_id}, now,
                         effects);
  };
  WEIR_TRY_ASSIGN(const TransactionAnswer answer, ask(end, run));
  WEIR_TRY(answer.status());
  if (run.written.empty()) {
    // It was ended by an earlier call, which may have gone before all of it was durable.
    const MutexLock lock(mutex_);
    WEIR_TRY_ASSIGN(const std::shared_ptr<Partition> state, state_partition(transactional_id));
    run.note(state, state->offsets().log_end);
  }
  WEIR_TRY(finish(run));
  return answer.producer;
}

Status Transactions::tick() {
  WEIR_TRY(start());
  Run run;
  {
    const MutexLock lock(mutex_);
    TransactionEffects effects;
    core_.tick(clock_.now(), effects);
    run.go_on_with(std::move(effects));
  }
  carry_out(run);
  return finish(run);
}

std::optional<TransactionCoordinator::Description> Transactions::describe(
    const std::string& transactional_id) {
  const MutexLock lock(mutex_);
  return core_.describe(transactional_id);
}

std::vector<TransactionCoordinator::Description> Transactions::list() {
  const MutexLock lock(mutex_);
  return core_.list();
}

// --- `memory` topics

bool Transactions::has_memory_partition(const TransactionValue& value) {
  for (const auto& [topic, partitions] :
       value.partitions.value_or(std::vector<TransactionValue::TopicPartitions>())) {
    for (const PartitionId index : partitions) {
      const Result<std::shared_ptr<Partition>> partition = topics_.open_to_append({topic, index});
      if (partition.ok() && (*partition)->settings().durability == DurabilityMode::kMemory) {
        return true;
      }
    }
  }
  return false;
}

void Transactions::warn_of_memory(const Partition& partition) {
  const std::string& topic = partition.options().name.topic;
  {
    const MutexLock lock(mutex_);
    if (!warned_.insert(topic).second) {
      return;
    }
  }
  WEIR_WARN(
      "transactions over a memory topic are all or nothing against a crash of this process, "
      "not against a power cut topic={} setting=weir.durability",
      topic);
}

}  // namespace weir::log
