#pragma once

#include "log/coordinator/transaction_messages.h"

#include <cstddef>
#include <map>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <vector>

namespace weir::log {

struct TransactionCoordinatorOptions {
  std::int64_t max_timeout_ms = 900'000;  // transaction.max.timeout.ms
  // transactional.id.expiration.ms: an id that did nothing for so long is forgotten.
  std::int64_t id_expiration_ms = 7LL * 24 * 3600 * 1000;
  // Highest transaction.version that is spoken (KIP-890): 2; values are of version 1 from 1 on.
  std::int16_t transaction_version = 2;
  // Bounds; beyond them the request that would add one is refused.
  std::size_t ids_max = 100'000;
  std::size_t partitions_per_transaction_max = 10'000;
};

// Decides about transactions (Kafka's TransactionCoordinator; KIP-98, KIP-360, KIP-447, KIP-890;
// reference K 2.9, 2.10): which producer owns a transactional id, which partitions its transaction
// has, how that ends. A pure core: input and time in, effects out, in the order in which they are
// to be carried out.
//
// One transition at a time: while a record of an id is being written, or markers are, further
// requests for it are answered CONCURRENT_TRANSACTIONS, which the client repeats. A record that
// could not be written changes nothing.
//
// An answer says what is in the log: it comes behind the report that its record is durable. The
// decision of a transaction is in the log before its first marker.
//
// Threading: confined to its owner.
// Bounds:    Options; at most one record and one set of markers under way an id.
class TransactionCoordinator {
 public:
  using Options = TransactionCoordinatorOptions;
  explicit TransactionCoordinator(const Options& options) : options_(options) {}

  // --- Start: every record of `__transaction_state` in the order of the log, then once
  // finish_loading(): markers of decided transactions are written (again: a partition that has its
  // marker passes it over). load() alone makes an id what its record says, whatever is under way;
  // the next tick then does the rest. Errors: kCorrupt (a status that is never written).
  Status load(const std::string& transactional_id, std::optional<TransactionValue> value,
              ProducerEpoch last_epoch = kNoProducerEpoch);
  void finish_loading(Timestamp now, TransactionEffects& effects);

  // --- Requests; each is answered once, now or after a report
  void init_producer_id(const InitProducerId& request, Timestamp now, TransactionEffects& effects);
  void add_partitions(const AddPartitions& request, Timestamp now, TransactionEffects& effects);
  void end_transaction(const EndTransaction& request, Timestamp now, TransactionEffects& effects);

  // --- Reports. Of an unknown token, or again: ignored.
  void on_appended(std::uint64_t token, const Status& status, Timestamp now,
                   TransactionEffects& effects);
  void on_markers_written(std::uint64_t token, std::span<const TopicPartition> partitions,
                          Timestamp now, TransactionEffects& effects);
  void on_markers_failed(std::uint64_t token);

  // Aborts transactions that are open for longer than their timeout, and fences their producer;
  // repeats what failed; forgets ids that expired, at most kExpiredPerTick.
  void tick(Timestamp now, TransactionEffects& effects);
  static constexpr std::size_t kExpiredPerTick = 1000;

  // --- Questions
  struct Description {
    std::string transactional_id;
    TransactionValue value;  // `partitions` are those of the open or ending transaction
    // Of the producer before its epoch was raised, which may ask for its own again (KIP-360).
    ProducerEpoch last_epoch = kNoProducerEpoch;
  };
  std::optional<Description> describe(const std::string& transactional_id) const;
  std::vector<Description> list() const;
  std::size_t size() const { return ids_.size(); }

 private:
  enum class Transition { kInit, kAddPartitions, kPrepare, kComplete, kExpire };
  // A record that is on its way to the log.
  struct Pending {
    std::uint64_t token = 0;
    Transition transition = Transition::kInit;
    TransactionValue value;
    std::set<TopicPartition> partitions;
    ProducerEpoch last_epoch = kNoProducerEpoch;
    // Answered when the record is there; nullopt: nobody asked.
    std::optional<TransactionRequestId> request;
    bool fences = false;  // an abort that was not the producer's wish
  };
  struct Markers {
    std::uint64_t token = 0;  // 0: to be written at the next tick
    std::set<TopicPartition> left;
  };
  struct Entry {
    TransactionValue value;  // as in the log, save its partitions
    std::set<TopicPartition> partitions;
    // The producer's epoch before the present one, when it raised it itself (KIP-360). Not in the
    // log.
    ProducerEpoch last_epoch = kNoProducerEpoch;
    std::optional<Pending> pending;
    Markers markers;
  };
  using Ids = std::map<std::string, Entry>;

  struct Refusal {
    TransactionCode code;
    std::string message;
  };
  // What an EndTransaction leads to.
  struct Verdict {
    enum class Kind { kRefused, kDone, kPrepare, kNeedsProducerId };
    Kind kind = Kind::kRefused;
    Refusal refusal = {TransactionCode::kNone, {}};
    bool is_empty = false;  // kPrepare: an abort of nothing, which raises the epoch
  };

  // --- transaction_requests.cc
  std::optional<Refusal> check_init(const InitProducerId& request) const;
  std::optional<Refusal> check_partitions(const AddPartitions& request) const;
  std::optional<Refusal> verify(const AddPartitions& request, const Entry& entry) const;
  Verdict judge(const EndTransaction& request, const Entry& entry) const;
  Verdict judge_state(const EndTransaction& request, const Entry& entry, bool is_retry) const;
  void give_epoch(const InitProducerId& request, Ids::iterator id, Timestamp now,
                  TransactionEffects& effects);

  // --- transaction_coordinator.cc
  // Aborts an open transaction under the next epoch, so that its producer is fenced.
  void fence(Ids::iterator id, std::optional<TransactionRequestId> request, Timestamp now,
             TransactionEffects& effects);
  void complete(Ids::iterator id, Timestamp now, TransactionEffects& effects);
  void send_markers(Ids::iterator id, TransactionEffects& effects);
  void expire(Ids::iterator id, TransactionEffects& effects);
  void apply(Ids::iterator id, Pending pending, Timestamp now, TransactionEffects& effects);

  static TransactionValue transit(const Entry& entry, TransactionStatus status, Timestamp now);
  void append(Ids::iterator id, Pending pending, TransactionEffects& effects);
  Ids::iterator take_token(std::uint64_t token, std::map<std::uint64_t, std::string>& tokens);

  Options options_;
  Ids ids_;
  std::uint64_t next_token_ = 1;
  // Of what is under way: whose it is.
  std::map<std::uint64_t, std::string> append_tokens_;
  std::map<std::uint64_t, std::string> marker_tokens_;
};

}  // namespace weir::log
