#pragma once

#include <weir/runtime/bytes.h>
#include <weir/runtime/result.h>
#include <weir/runtime/types.h>

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace weir::log {

// Where a transactional id stands. The numbers are Kafka's (TransactionState); Dead and
// PrepareEpochFence are never written.
enum class TransactionStatus : std::int8_t {
  kEmpty = 0,
  kOngoing = 1,
  kPrepareCommit = 2,
  kPrepareAbort = 3,
  kCompleteCommit = 4,
  kCompleteAbort = 5,
  kDead = 6,
  kPrepareEpochFence = 7,
};
// Kafka's name: "PrepareCommit". Never empty.
std::string_view transaction_status_name(TransactionStatus status);

// A record's value in `__transaction_state`: what is known of one transactional id
// (TransactionLogValue.json, docs/formats/transaction_topic.md).
struct TransactionValue {
  ProducerId producer_id = kNoProducerId;
  ProducerId previous_producer_id = kNoProducerId;  // version 1
  ProducerId next_producer_id = kNoProducerId;      // version 1: epochs are used up
  ProducerEpoch producer_epoch = kNoProducerEpoch;
  ProducerEpoch next_producer_epoch = kNoProducerEpoch;  // version 1
  std::int32_t timeout_ms = 0;
  TransactionStatus status = TransactionStatus::kEmpty;
  // By topic, in the order of the record; nullopt is null.
  using TopicPartitions = std::pair<std::string, std::vector<PartitionId>>;
  std::optional<std::vector<TopicPartitions>> partitions;
  Timestamp last_update = kNoTimestamp;
  Timestamp start = kNoTimestamp;   // of the transaction
  std::int16_t client_version = 0;  // version 1: transaction.version that its client spoke
  friend bool operator==(const TransactionValue&, const TransactionValue&) = default;
};

std::string encode_transaction_key(const std::string& transactional_id);  // version 0
// `version`: 0, or 1 (flexible) from transaction.version 1 on. Version 0 has no place for what is
// marked as version 1's.
std::string encode_transaction_value(const TransactionValue& value, std::int16_t version);

// nullopt: a record of another type, to be skipped. Errors: kCorrupt.
Result<std::optional<std::string>> decode_transaction_key(ByteView key);
// Versions 0 and 1. Errors: kCorrupt, kUnsupported.
Result<TransactionValue> decode_transaction_value(ByteView value);

}  // namespace weir::log
