#pragma once

#include "log/coordinator/group_offsets.h"
#include "log/coordinator/transaction_coordinator.h"
#include "log/partition/append_group.h"

#include <weir/runtime/clock.h>
#include <weir/runtime/thread_annotations.h>

#include <deque>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <vector>

namespace weir::log {

// What the coordinator needs from the directory above it.
inline constexpr std::string_view kTransactionTopic = "__transaction_state";

class TransactionTopics {
 public:
  virtual ~TransactionTopics() = default;
  // Number of partitions of `__transaction_state`; 0 when the topic does not exist yet.
  virtual std::int32_t state_partitions() = 0;
  // Makes the topic if needed; afterwards state_partitions() > 0.
  virtual Status ensure_state_topic() = 0;
  // For writing. Errors: kUnknownTopic.
  virtual Result<std::shared_ptr<Partition>> open_to_append(const TopicPartition& name) = 0;
  virtual Result<ProducerId> next_producer_id() = 0;
};

// Transactions of a data directory: drives the TransactionCoordinator over `__transaction_state`.
//
// The end of a transaction whose partitions are all of `fsync` topics is one atomic group of the
// write-ahead log (DESIGN D8): Prepare, a marker in each partition, Complete; after a crash all of
// it is there or nothing, at the price of one sync, whatever the transaction wrote. Its records are
// in the write-ahead log before it. With a `memory` partition each step is durable before the next:
// that holds against a crash of the process, not against a power cut.
//
// Threading: thread-safe. Bounds: TransactionCoordinatorOptions.
class Transactions {
 public:
  Transactions(TransactionTopics& topics, GroupOffsets& offsets, const Clock& clock,
               const TransactionCoordinatorOptions& options)
      : topics_(topics), offsets_(offsets), clock_(clock), core_(options) {}

  // Reads `__transaction_state`, if there is one, and ends what was decided before the start.
  // Idempotent; whatever needs it calls it. Errors: kCorrupt, kIo.
  Status start();

  // Fences every other producer of the id and aborts what it left open. Durable when ok.
  // Errors: kInvalidArgument, kInvalidConfig, kConcurrentTransactions (try again), kFenced (only
  // with `known`), kNoSpace, kIo, kTimedOut.
  Result<ProducerIdAndEpoch> init(const std::string& transactional_id, std::int32_t timeout_ms,
                                  std::optional<ProducerIdAndEpoch> known = std::nullopt);
  // Before the first write to a partition in a transaction. What is written to them afterwards is
  // not durable before this is. Errors: kFenced, kConcurrentTransactions, kInvalidTxnState,
  // kInvalidArgument (too many), kNoSpace, kIo.
  Status add_partitions(const std::string& transactional_id, ProducerIdAndEpoch producer,
                        std::vector<TopicPartition> partitions, std::int16_t client_version = 2);
  // Whether they are in the open transaction (for older clients). Errors: as above.
  Status verify(const std::string& transactional_id, ProducerIdAndEpoch producer,
                std::vector<TopicPartition> partitions, std::int16_t client_version);
  // Commits a group's offsets with the transaction. Errors: also those of GroupOffsets::commit().
  Status send_offsets(const std::string& transactional_id, ProducerIdAndEpoch producer,
                      const std::string& group, std::span<const PartitionOffset> offsets,
                      std::int16_t client_version = 2);
  // Durable when ok, as is whatever the transaction wrote; gives what the next transaction has.
  // Errors: kFenced, kConcurrentTransactions, kInvalidTxnState (it had ended otherwise), kNoSpace
  // (nothing was decided); kIo, kTimedOut: the outcome is unknown, ask again or restart.
  Result<ProducerIdAndEpoch> end(const std::string& transactional_id, ProducerIdAndEpoch producer,
                                 bool commit, std::int16_t client_version = 2);

  // Timeouts, what failed before, expired ids. Called now and then (transaction.abort.timed.out.
  // transaction.cleanup.interval.ms, 10 s). Errors: of the log; the next tick tries again.
  Status tick();

  std::optional<TransactionCoordinator::Description> describe(const std::string& transactional_id);
  std::vector<TransactionCoordinator::Description> list();

 private:
  struct Written {
    std::shared_ptr<Partition> partition;  // null: there is nothing to wait for
    Offset end;
  };
  struct OffsetsMarker {
    PartitionId partition;
    ProducerId producer;
    Offset end;  // it stands below
  };
  // One request, or one tick, on its way.
  struct Run {
    std::deque<TransactionEffect> effects;
    std::optional<TransactionAnswer> answer;
    std::map<TopicPartition, Written> written;  // to be durable at the end
    std::vector<OffsetsMarker> offsets_markers;
    void go_on_with(TransactionEffects more);
    void note(const std::shared_ptr<Partition>& partition, Offset end);
  };
  // What must be durable before the core is told of it.
  struct Step {
    std::uint64_t token = 0;
    bool is_markers = false;
    std::vector<std::pair<TopicPartition, Written>> written;
    bool has_failed = false;
    ProducerId producer;
  };

  template <class AskCore>
  Result<TransactionAnswer> ask(AskCore&& ask_core, Run& run);
  Status load() WEIR_REQUIRES(mutex_);
  void carry_out(Run& run) WEIR_EXCLUDES(mutex_);
  std::optional<Step> next_step(Run& run) WEIR_REQUIRES(mutex_);
  void finish_step(const Step& step, Run& run) WEIR_EXCLUDES(mutex_);
  std::optional<Step> append_state(const AppendTransactionState& record, Run& run)
      WEIR_REQUIRES(mutex_);
  Step append_markers(const WriteTransactionMarkers& markers, Run& run) WEIR_REQUIRES(mutex_);
  // Waits for what was written, then lets it count.
  Status finish(const Run& run) WEIR_EXCLUDES(mutex_);
  void apply_late() WEIR_EXCLUDES(mutex_);

  // --- transaction_group.cc: the end of a transaction as one atomic group
  class EndGroup;
  using OpenPartitions = std::map<TopicPartition, std::shared_ptr<Partition>>;
  // The partitions of a transaction, without those that are gone; nullopt: its end is no group.
  std::optional<OpenPartitions> open_for_group(const TransactionValue& value);
  void end_in_one_group(AppendTransactionState prepare, OpenPartitions partitions, Run& run)
      WEIR_REQUIRES(mutex_);

  Result<std::shared_ptr<Partition>> state_partition(const std::string& transactional_id)
      WEIR_REQUIRES(mutex_);
  SharedBytes encode(const AppendTransactionState& record) const;
  SharedBytes encode_marker(const WriteTransactionMarkers& markers, LeaderEpoch coordinator) const;
  bool has_memory_partition(const TransactionValue& value);
  void warn_of_memory(const Partition& partition) WEIR_EXCLUDES(mutex_);

  TransactionTopics& topics_;
  GroupOffsets& offsets_;
  const Clock& clock_;
  // Held while a group is appended, never while it becomes durable.
  mutable Mutex mutex_;
  TransactionCoordinator core_ WEIR_GUARDED_BY(mutex_);
  bool started_ WEIR_GUARDED_BY(mutex_) = false;
  std::map<PartitionId, std::shared_ptr<Partition>> state_ WEIR_GUARDED_BY(mutex_);
  // Ends that were not durable in time: their offsets count when they are.
  std::vector<Run> late_ WEIR_GUARDED_BY(mutex_);
  std::set<std::string> warned_ WEIR_GUARDED_BY(mutex_);  // topics of weir.durability=memory
};

}  // namespace weir::log
