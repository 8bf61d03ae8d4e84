#include "log/coordinator/transactions.h"

#include <weir/runtime/logger.h>

#include <fmt/format.h>

#include <iterator>
#include <utility>

// DESIGN D8: Prepare, markers and Complete as one atomic group of the write-ahead log.

namespace weir::log {

// The core is told of each append in advance, so that it says what comes behind it; the group is
// then appended at once. When an append is refused, the core is put back to the last state that is
// in the group: that is where a transaction stands whose markers are not all written, and a tick
// does the rest.
class Transactions::EndGroup {
 public:
  EndGroup(Transactions& owner, std::string transactional_id, OpenPartitions partitions)
      : owner_(owner), id_(std::move(transactional_id)), open_(std::move(partitions)) {}

  void run(AppendTransactionState prepare, Run& run) WEIR_NO_THREAD_SAFETY_ANALYSIS {
    TransactionCoordinator& core = owner_.core_;
    const TransactionCoordinator::Description before = *core.describe(id_);
    const std::uint64_t token = prepare.token;
    Result<std::shared_ptr<Partition>> state = owner_.state_partition(id_);
    if (!state.ok()) {
      TransactionEffects more;
      core.on_appended(token, state.status(), owner_.clock_.now(), more);
      run.go_on_with(std::move(more));
      return;
    }
    plan(std::move(prepare), *state);
    const GroupAppended result = append_group(std::move(group_));
    const std::size_t count = result.appended.size();
    for (std::size_t i = 0; i < count; ++i) {
      run.note(partitions_[i], result.appended[i].next_offset);
    }
    for (const auto& [index, marker] : offsets_markers_) {
      if (index < count) {
        const Offset end = result.appended[index].next_offset;
        owner_.offsets_.note_marker(marker.partition, marker.producer, marker.commit, end);
        run.offsets_markers.push_back({marker.partition, marker.producer, end});
      }
    }
    if (!result.failure.ok()) {
      put_back(before, count, result.failure, run);
    }
    for (auto& [index, answer] : answers_) {
      if (index <= count && count > 0) {
        run.answer = std::move(answer);
      }
    }
  }

 private:
  void plan(AppendTransactionState prepare,
            const std::shared_ptr<Partition>& state) WEIR_NO_THREAD_SAFETY_ANALYSIS {
    TransactionCoordinator& core = owner_.core_;
    const Timestamp now = owner_.clock_.now();
    std::deque<TransactionEffect> queue;
    queue.emplace_back(std::move(prepare));
    while (!queue.empty()) {
      const TransactionEffect effect = std::move(queue.front());
      queue.pop_front();
      TransactionEffects more;
      if (const auto* record = std::get_if<AppendTransactionState>(&effect)) {
        states_.emplace_back(group_.size(), *record->value);
        add(state, owner_.encode(*record), AppendOptions(AppendOrigin::kCoordinator));
        core.on_appended(record->token, Status(), now, more);
      } else if (const auto* markers = std::get_if<WriteTransactionMarkers>(&effect)) {
        add_markers(*markers, state->offsets().leader_epoch);
        core.on_markers_written(markers->token, markers->partitions, now, more);
      } else {
        answers_.emplace_back(group_.size(), std::get<TransactionAnswer>(effect));
      }
      queue.insert(queue.begin(), std::make_move_iterator(more.begin()),
                   std::make_move_iterator(more.end()));
    }
  }

  struct OffsetsMarkerAhead {
    PartitionId partition;
    ProducerId producer;
    bool commit;
  };

  void add(const std::shared_ptr<Partition>& partition, SharedBytes batch, AppendOptions options) {
    group_.push_back({partition, std::move(batch), options});
    partitions_.push_back(partition);
  }

  void add_markers(const WriteTransactionMarkers& markers, LeaderEpoch coordinator) {
    AppendOptions options(AppendOrigin::kCoordinator);
    options.transaction_version = markers.client_version;
    for (const TopicPartition& name : markers.partitions) {
      const auto partition = open_.find(name);
      if (partition == open_.end()) {
        continue;  // its topic was deleted
      }
      if (name.topic == kOffsetsTopic) {
        offsets_markers_.emplace_back(
            group_.size(), OffsetsMarkerAhead{name.partition, markers.producer.id, markers.commit});
      }
      add(partition->second, owner_.encode_marker(markers, coordinator), options);
    }
  }

  void put_back(const TransactionCoordinator::Description& before, std::size_t count,
                const Status& failure, Run& run) WEIR_NO_THREAD_SAFETY_ANALYSIS {
    const TransactionValue* last = &before.value;
    for (const auto& [index, value] : states_) {
      if (index < count) {
        last = &value;
      }
    }
    WEIR_WARN("end of a transaction stopped at {} id={} error=\"{}\"",
              transaction_status_name(last->status), id_, failure.error().message());
    owner_.core_.load(id_, *last, count == 0 ? before.last_epoch : kNoProducerEpoch)
        .ignore("it is a status that was in the log");
    if (count == 0) {  // nothing was decided
      TransactionAnswer answer;
      answer.code = TransactionCode::kStorageError;
      answer.errc = failure.error().code();
      answer.message = fmt::format("transactional id {}: its transaction cannot be ended: {}", id_,
                                   failure.error().message());
      run.answer = std::move(answer);
    }
  }

  Transactions& owner_;
  const std::string id_;
  const OpenPartitions open_;
  std::vector<GroupedAppend> group_;
  std::vector<std::shared_ptr<Partition>> partitions_;  // of group_
  // With the index in group_ of what they are, or (answers) of what comes behind them.
  std::vector<std::pair<std::size_t, TransactionValue>> states_;
  std::vector<std::pair<std::size_t, OffsetsMarkerAhead>> offsets_markers_;
  std::vector<std::pair<std::size_t, TransactionAnswer>> answers_;
};

std::optional<Transactions::OpenPartitions> Transactions::open_for_group(
    const TransactionValue& value) {
  OpenPartitions open;
  for (const auto& [topic, partitions] :
       value.partitions.value_or(std::vector<TransactionValue::TopicPartitions>())) {
    for (const PartitionId index : partitions) {
      const TopicPartition name{topic, index};
      Result<std::shared_ptr<Partition>> partition = topics_.open_to_append(name);
      if (partition.ok() && (*partition)->settings().durability == DurabilityMode::kFsync) {
        open.emplace(name, *std::move(partition));
      } else if (partition.ok() || partition.error().code() != Errc::kUnknownTopic) {
        return std::nullopt;
      }
    }
  }
  return open;
}

void Transactions::end_in_one_group(AppendTransactionState prepare, OpenPartitions partitions,
                                    Run& run) {
  const std::string id = prepare.transactional_id;
  EndGroup(*this, id, std::move(partitions)).run(std::move(prepare), run);
}

}  // namespace weir::log
