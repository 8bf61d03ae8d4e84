#pragma once

#include "log/coordinator/transaction_codec.h"

#include <weir/runtime/result.h>
#include <weir/runtime/types.h>

#include <cstdint>
#include <optional>
#include <string>
#include <variant>
#include <vector>

// What goes into the transaction coordinator and comes out of it.

namespace weir::log {

// Kafka's answers (org.apache.kafka.common.protocol.Errors); the numbers are the protocol's.
enum class TransactionCode : std::int16_t {
  kNone = 0,
  kInvalidRequest = 42,
  kPolicyViolation = 44,  // over a bound of ours
  kInvalidProducerEpoch = 47,
  kInvalidTxnState = 48,
  kInvalidProducerIdMapping = 49,
  kInvalidTransactionTimeout = 50,
  kConcurrentTransactions = 51,  // retriable
  kStorageError = 56,            // the state could not be written
  kProducerFenced = 90,
  kTransactionAbortable = 120,
};
Errc errc_of(TransactionCode code);

struct ProducerIdAndEpoch {
  ProducerId id = kNoProducerId;
  ProducerEpoch epoch = kNoProducerEpoch;
  friend auto operator<=>(const ProducerIdAndEpoch&, const ProducerIdAndEpoch&) = default;
};

using TransactionRequestId = std::uint64_t;  // the caller's; comes back in the answer

// InitProducerId (22). Ends what the id left open and gives it an epoch of its own.
struct InitProducerId {
  TransactionRequestId request = 0;
  std::string transactional_id;
  std::int32_t timeout_ms = 60'000;  // transaction.timeout.ms
  // What the producer has, when it goes on after an error (KIP-360).
  std::optional<ProducerIdAndEpoch> known;
  // For an answer of kNeedsProducerId: one that was never used.
  std::optional<ProducerId> new_producer_id;
};

// AddPartitionsToTxn (24), AddOffsetsToTxn (25: the partition of `__consumer_offsets` that has the
// group), and the first write to a partition under transaction.version 2.
struct AddPartitions {
  TransactionRequestId request = 0;
  std::string transactional_id;
  ProducerIdAndEpoch producer;
  std::vector<TopicPartition> partitions;
  std::int16_t client_version = 2;  // transaction.version that the client speaks
  // Only asks whether all of them are in the open transaction; writes nothing.
  bool verify_only = false;
};

// EndTxn (26).
struct EndTransaction {
  TransactionRequestId request = 0;
  std::string transactional_id;
  ProducerIdAndEpoch producer;
  bool commit = false;
  std::int16_t client_version = 2;
  std::optional<ProducerId> new_producer_id;  // as in InitProducerId
};

// --- Effects, in the order in which they are to be carried out

// Append a record to `__transaction_state`; report by on_appended() once it is durable or failed.
struct AppendTransactionState {
  std::uint64_t token = 0;
  std::string transactional_id;
  std::optional<TransactionValue> value;  // nullopt: a tombstone
  std::int16_t value_version = 1;
};
// Append a marker to every partition; report by on_markers_written() those that have it, durably,
// or do not exist any more, and by on_markers_failed() that the rest must wait for the next tick.
struct WriteTransactionMarkers {
  std::uint64_t token = 0;
  std::string transactional_id;
  ProducerIdAndEpoch producer;
  bool commit = false;
  // transaction.version of the producer: from 2 on a partition that has seen this epoch in a record
  // has another transaction open, and passes the marker over (KIP-1228).
  std::int16_t client_version = 0;
  std::vector<TopicPartition> partitions;  // not empty
};
struct TransactionAnswer {
  TransactionRequestId request = 0;
  TransactionCode code = TransactionCode::kNone;
  std::string message;          // of a refusal: the id, epochs, the next step
  Errc errc = Errc::kInternal;  // of a refusal
  // InitProducerId: what the producer has from now on. EndTransaction: what its next transaction
  // has.
  ProducerIdAndEpoch producer;
  // Nothing was changed: ask again with a new producer id in the request.
  bool needs_producer_id = false;

  Status status() const;
};
using TransactionEffect =
    std::variant<AppendTransactionState, WriteTransactionMarkers, TransactionAnswer>;
using TransactionEffects = std::vector<TransactionEffect>;

}  // namespace weir::log
