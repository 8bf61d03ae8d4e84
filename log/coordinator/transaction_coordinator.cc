#include "log/coordinator/transaction_coordinator.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

// The half of the coordinator that carries transitions out: loading, reports, time.
// transaction_requests.cc judges requests.

namespace weir::log {

namespace {

std::vector<TransactionValue::TopicPartitions> by_topic(
    const std::set<TopicPartition>& partitions) {
  std::vector<TransactionValue::TopicPartitions> topics;
  for (const TopicPartition& partition : partitions) {
    if (topics.empty() || topics.back().first != partition.topic) {
      topics.emplace_back(partition.topic, std::vector<PartitionId>());
    }
    topics.back().second.push_back(partition.partition);
  }
  return topics;
}

bool is_decided(TransactionStatus status) {
  return status == TransactionStatus::kPrepareCommit || status == TransactionStatus::kPrepareAbort;
}

}  // namespace

Errc errc_of(TransactionCode code) {
  switch (code) {
    case TransactionCode::kNone:
    case TransactionCode::kStorageError:
      return Errc::kIo;
    case TransactionCode::kInvalidRequest:
    case TransactionCode::kPolicyViolation:
      return Errc::kInvalidArgument;
    case TransactionCode::kInvalidTransactionTimeout:
      return Errc::kInvalidConfig;
    case TransactionCode::kInvalidProducerEpoch:
    case TransactionCode::kInvalidProducerIdMapping:
    case TransactionCode::kProducerFenced:
      return Errc::kFenced;
    case TransactionCode::kInvalidTxnState:
    case TransactionCode::kTransactionAbortable:
      return Errc::kInvalidTxnState;
    case TransactionCode::kConcurrentTransactions:
      return Errc::kConcurrentTransactions;
  }
  return Errc::kInternal;
}

Status TransactionAnswer::status() const {
  return code == TransactionCode::kNone ? Status() : Status(Error(errc, message));
}

// --- Start

Status TransactionCoordinator::load(const std::string& transactional_id,
                                    std::optional<TransactionValue> value,
                                    ProducerEpoch last_epoch) {
  if (!value) {
    ids_.erase(transactional_id);
    return Status();
  }
  if (value->status == TransactionStatus::kDead ||
      value->status == TransactionStatus::kPrepareEpochFence) {
    return Error(Errc::kCorrupt,
                 fmt::format("transactional id {} has the status {}, which no log has",
                             transactional_id, transaction_status_name(value->status)));
  }
  Entry entry;
  for (const auto& [topic, partitions] :
       value->partitions.value_or(std::vector<TransactionValue::TopicPartitions>())) {
    for (const PartitionId partition : partitions) {
      entry.partitions.insert({topic, partition});
    }
  }
  entry.value = *std::move(value);
  entry.value.partitions.reset();
  entry.last_epoch = last_epoch;
  if (is_decided(entry.value.status)) {
    entry.markers.left = entry.partitions;
  }
  ids_.insert_or_assign(transactional_id, std::move(entry));
  return Status();
}

void TransactionCoordinator::finish_loading(Timestamp now, TransactionEffects& effects) {
  for (auto id = ids_.begin(); id != ids_.end(); ++id) {
    Entry& entry = id->second;
    if (is_decided(entry.value.status) && !entry.pending && entry.markers.token == 0) {
      send_markers(id, effects);
      if (entry.partitions.empty()) {
        complete(id, now, effects);
      }
    }
  }
}

// --- Transitions

TransactionValue TransactionCoordinator::transit(const Entry& entry, TransactionStatus status,
                                                 Timestamp now) {
  TransactionValue value = entry.value;
  value.previous_producer_id = entry.value.producer_id;
  value.next_producer_id = kNoProducerId;
  value.status = status;
  value.last_update = now;
  return value;
}

void TransactionCoordinator::append(Ids::iterator id, Pending pending,
                                    TransactionEffects& effects) {
  pending.token = next_token_++;
  append_tokens_.emplace(pending.token, id->first);
  AppendTransactionState record;
  record.token = pending.token;
  record.transactional_id = id->first;
  record.value_version = options_.transaction_version >= 1 ? 1 : 0;
  if (pending.transition != Transition::kExpire) {
    record.value = pending.value;
    if (pending.value.status != TransactionStatus::kEmpty) {
      record.value->partitions = by_topic(pending.partitions);
    }
  }
  id->second.pending = std::move(pending);
  effects.emplace_back(std::move(record));
}

void TransactionCoordinator::fence(Ids::iterator id, std::optional<TransactionRequestId> request,
                                   Timestamp now, TransactionEffects& effects) {
  const Entry& entry = id->second;
  Pending pending;
  pending.transition = Transition::kPrepare;
  pending.fences = true;
  pending.request = request;
  pending.value = transit(entry, TransactionStatus::kPrepareAbort, now);
  // The epoch in memory rises with the record, so that a failed attempt is repeated as it was.
  if (entry.value.producer_epoch.value() < INT16_MAX) {
    pending.value.producer_epoch = entry.value.producer_epoch.next();
  }
  pending.partitions = entry.partitions;
  append(id, std::move(pending), effects);
}

void TransactionCoordinator::complete(Ids::iterator id, Timestamp now,
                                      TransactionEffects& effects) {
  const Entry& entry = id->second;
  Pending pending;
  pending.transition = Transition::kComplete;
  pending.value = transit(entry,
                          entry.value.status == TransactionStatus::kPrepareCommit
                              ? TransactionStatus::kCompleteCommit
                              : TransactionStatus::kCompleteAbort,
                          now);
  if (entry.value.next_producer_id != kNoProducerId) {
    pending.value.producer_id = entry.value.next_producer_id;
    pending.value.producer_epoch = ProducerEpoch(0);
  }
  pending.last_epoch = entry.last_epoch;
  append(id, std::move(pending), effects);
}

void TransactionCoordinator::send_markers(Ids::iterator id, TransactionEffects& effects) {
  Entry& entry = id->second;
  if (entry.markers.left.empty()) {
    return;
  }
  entry.markers.token = next_token_++;
  marker_tokens_.emplace(entry.markers.token, id->first);
  WriteTransactionMarkers write;
  write.token = entry.markers.token;
  write.transactional_id = id->first;
  write.producer = {entry.value.producer_id, entry.value.producer_epoch};
  write.commit = entry.value.status == TransactionStatus::kPrepareCommit;
  write.client_version = entry.value.client_version;
  write.partitions.assign(entry.markers.left.begin(), entry.markers.left.end());
  effects.emplace_back(std::move(write));
}

void TransactionCoordinator::expire(Ids::iterator id, TransactionEffects& effects) {
  Pending pending;
  pending.transition = Transition::kExpire;
  append(id, std::move(pending), effects);
}

// --- Reports

TransactionCoordinator::Ids::iterator TransactionCoordinator::take_token(
    std::uint64_t token, std::map<std::uint64_t, std::string>& tokens) {
  const auto found = tokens.find(token);
  if (found == tokens.end()) {
    return ids_.end();
  }
  const auto id = ids_.find(found->second);
  tokens.erase(found);
  return id;
}

void TransactionCoordinator::on_appended(std::uint64_t token, const Status& status, Timestamp now,
                                         TransactionEffects& effects) {
  const auto id = take_token(token, append_tokens_);
  if (id == ids_.end() || !id->second.pending || id->second.pending->token != token) {
    return;
  }
  Pending pending = *std::exchange(id->second.pending, std::nullopt);
  if (status.ok()) {
    apply(id, std::move(pending), now, effects);
    return;
  }
  if (pending.request) {
    TransactionAnswer answer;
    answer.request = *pending.request;
    answer.code = TransactionCode::kStorageError;
    answer.errc = status.error().code();
    answer.message = fmt::format("transactional id {}: its state cannot be written: {}", id->first,
                                 status.error().message());
    effects.emplace_back(std::move(answer));
  }
  if (id->second.value.producer_epoch == kNoProducerEpoch) {
    ids_.erase(id);  // it was to be made by this record
  }
}

void TransactionCoordinator::apply(Ids::iterator id, Pending pending, Timestamp now,
                                   TransactionEffects& effects) {
  if (pending.transition == Transition::kExpire) {
    ids_.erase(id);
    return;
  }
  Entry& entry = id->second;
  entry.value = std::move(pending.value);
  entry.partitions = std::move(pending.partitions);
  entry.last_epoch = pending.last_epoch;
  if (pending.request) {
    TransactionAnswer answer;
    answer.request = *pending.request;
    answer.producer = {entry.value.producer_id, entry.value.producer_epoch};
    if (entry.value.next_producer_id != kNoProducerId) {
      answer.producer = {entry.value.next_producer_id, ProducerEpoch(0)};
    }
    if (pending.fences) {
      answer.producer = {};
      answer.code = TransactionCode::kConcurrentTransactions;
      answer.errc = errc_of(answer.code);
      answer.message = fmt::format(
          "transactional id {}: the transaction that was open is being aborted; try "
          "again",
          id->first);
    }
    effects.emplace_back(std::move(answer));
  }
  if (pending.transition == Transition::kPrepare) {
    entry.markers.left = entry.partitions;
    if (entry.partitions.empty()) {
      complete(id, now, effects);
    } else {
      send_markers(id, effects);
    }
  }
}

void TransactionCoordinator::on_markers_written(std::uint64_t token,
                                                std::span<const TopicPartition> partitions,
                                                Timestamp now, TransactionEffects& effects) {
  const auto found = marker_tokens_.find(token);
  if (found == marker_tokens_.end()) {
    return;
  }
  const auto id = ids_.find(found->second);
  if (id == ids_.end() || id->second.markers.token != token) {
    return;
  }
  Markers& markers = id->second.markers;
  for (const TopicPartition& partition : partitions) {
    markers.left.erase(partition);
  }
  if (markers.left.empty()) {
    marker_tokens_.erase(found);
    markers.token = 0;
    complete(id, now, effects);
  }
}

void TransactionCoordinator::on_markers_failed(std::uint64_t token) {
  const auto id = take_token(token, marker_tokens_);
  if (id != ids_.end() && id->second.markers.token == token) {
    id->second.markers.token = 0;
  }
}

// --- Time

void TransactionCoordinator::tick(Timestamp now, TransactionEffects& effects) {
  std::size_t expired = 0;
  for (auto id = ids_.begin(); id != ids_.end(); ++id) {
    const Entry& entry = id->second;
    const TransactionValue& value = entry.value;
    if (entry.pending || entry.markers.token != 0) {
      continue;
    }
    if (value.status == TransactionStatus::kOngoing) {
      if (now - value.start > value.timeout_ms) {
        fence(id, std::nullopt, now, effects);
      }
    } else if (is_decided(value.status)) {
      if (entry.markers.left.empty()) {
        complete(id, now, effects);  // its record could not be written
      } else {
        send_markers(id, effects);
      }
    } else if (now - value.last_update > options_.id_expiration_ms && expired < kExpiredPerTick) {
      ++expired;
      expire(id, effects);
    }
  }
}

// --- Questions

std::optional<TransactionCoordinator::Description> TransactionCoordinator::describe(
    const std::string& transactional_id) const {
  const auto found = ids_.find(transactional_id);
  if (found == ids_.end()) {
    return std::nullopt;
  }
  Description description{found->first, found->second.value, found->second.last_epoch};
  description.value.partitions = by_topic(found->second.partitions);
  return description;
}

std::vector<TransactionCoordinator::Description> TransactionCoordinator::list() const {
  std::vector<Description> all;
  all.reserve(ids_.size());
  for (const auto& [id, entry] : ids_) {
    all.push_back(*describe(id));
  }
  return all;
}

}  // namespace weir::log
