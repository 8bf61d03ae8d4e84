#include "log/coordinator/transaction_coordinator.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

// What the coordinator is asked, and who may ask for it.

namespace weir::log {

namespace {

// The last epoch that a producer is given; one more is kept for the abort that fences it.
constexpr std::int16_t kEpochMax = INT16_MAX - 1;

bool is_exhausted(ProducerEpoch epoch) {
  return epoch.value() >= kEpochMax;
}

void refuse(TransactionRequestId request, TransactionCode code, std::string message,
            TransactionEffects& effects) {
  TransactionAnswer answer;
  answer.request = request;
  answer.code = code;
  answer.errc = errc_of(code);
  answer.message = std::move(message);
  effects.emplace_back(std::move(answer));
}

void ask_for_producer_id(TransactionRequestId request, TransactionEffects& effects) {
  TransactionAnswer answer;
  answer.request = request;
  answer.needs_producer_id = true;
  effects.emplace_back(std::move(answer));
}

std::string fenced(const std::string& transactional_id, ProducerEpoch asked,
                   const TransactionValue& value) {
  return fmt::format(
      "transactional id {}: epoch {} of producer {} is not the present epoch {}: another producer "
      "took the id over, or its transaction timed out; open a new producer",
      transactional_id, asked.value(), value.producer_id.value(), value.producer_epoch.value());
}

std::string not_its_producer(const std::string& transactional_id, ProducerId asked,
                             const TransactionValue& value) {
  return fmt::format("transactional id {} belongs to producer {}, not to {}; open a new producer",
                     transactional_id, value.producer_id.value(), asked.value());
}

std::string unknown_id(const std::string& transactional_id) {
  return fmt::format(
      "transactional id {} is not known: it was never initialised or has expired; open a new "
      "producer",
      transactional_id);
}

std::string busy(const std::string& transactional_id, const TransactionValue& value) {
  return fmt::format("transactional id {} is in {} and not done with it; try again",
                     transactional_id, transaction_status_name(value.status));
}

std::string no_id() {
  return "a transaction needs a transactional id that is not empty";
}

bool is_complete(TransactionStatus status) {
  return status == TransactionStatus::kCompleteCommit ||
         status == TransactionStatus::kCompleteAbort;
}
bool is_commit(TransactionStatus status) {
  return status == TransactionStatus::kCompleteCommit ||
         status == TransactionStatus::kPrepareCommit;
}
bool is_decided(TransactionStatus status) {
  return status == TransactionStatus::kPrepareCommit || status == TransactionStatus::kPrepareAbort;
}

}  // namespace

// --- InitProducerId

std::optional<TransactionCoordinator::Refusal> TransactionCoordinator::check_init(
    const InitProducerId& request) const {
  if (request.transactional_id.empty()) {
    return Refusal{TransactionCode::kInvalidRequest, no_id()};
  }
  if (request.timeout_ms <= 0 || request.timeout_ms > options_.max_timeout_ms) {
    return Refusal{
        TransactionCode::kInvalidTransactionTimeout,
        fmt::format("transactional id {}: transaction.timeout.ms {} is not between 1 "
                    "and transaction.max.timeout.ms {}",
                    request.transactional_id, request.timeout_ms, options_.max_timeout_ms)};
  }
  const auto found = ids_.find(request.transactional_id);
  if (found == ids_.end()) {
    if (ids_.size() >= options_.ids_max) {
      return Refusal{TransactionCode::kPolicyViolation,
                     fmt::format("transactional id {} would be the {}th, the bound is {}; use "
                                 "fewer ids or lower transactional.id.expiration.ms",
                                 request.transactional_id, ids_.size() + 1, options_.ids_max)};
    }
    return std::nullopt;
  }
  const Entry& entry = found->second;
  if (entry.pending) {
    return Refusal{TransactionCode::kConcurrentTransactions, busy(found->first, entry.value)};
  }
  const std::optional<ProducerIdAndEpoch>& known = request.known;
  if (known && known->id != entry.value.producer_id &&
      !(known->id == entry.value.previous_producer_id && is_exhausted(known->epoch))) {
    return Refusal{TransactionCode::kProducerFenced,
                   not_its_producer(found->first, known->id, entry.value)};
  }
  if (is_decided(entry.value.status)) {
    return Refusal{TransactionCode::kConcurrentTransactions, busy(found->first, entry.value)};
  }
  return std::nullopt;
}

void TransactionCoordinator::init_producer_id(const InitProducerId& request, Timestamp now,
                                              TransactionEffects& effects) {
  if (std::optional<Refusal> refusal = check_init(request)) {
    refuse(request.request, refusal->code, std::move(refusal->message), effects);
    return;
  }
  auto id = ids_.find(request.transactional_id);
  if (id == ids_.end()) {
    if (!request.new_producer_id) {
      ask_for_producer_id(request.request, effects);
      return;
    }
    id = ids_.emplace(request.transactional_id, Entry()).first;
    id->second.value.producer_id = *request.new_producer_id;
  }
  if (id->second.value.status == TransactionStatus::kOngoing) {
    fence(id, request.request, now, effects);
    return;
  }
  give_epoch(request, id, now, effects);
}

void TransactionCoordinator::give_epoch(const InitProducerId& request, Ids::iterator id,
                                        Timestamp now, TransactionEffects& effects) {
  const Entry& entry = id->second;
  const ProducerEpoch present = entry.value.producer_epoch;
  const std::optional<ProducerIdAndEpoch>& known = request.known;
  Pending pending;
  pending.transition = Transition::kInit;
  pending.request = request.request;
  pending.value = transit(entry, TransactionStatus::kEmpty, now);
  pending.value.timeout_ms = request.timeout_ms;
  pending.value.start = kNoTimestamp;
  const bool continues = known && known->epoch == present && known->id == entry.value.producer_id;
  if (known && present != kNoProducerEpoch && !continues) {
    if (entry.last_epoch == kNoProducerEpoch || known->epoch != entry.last_epoch) {
      refuse(request.request, TransactionCode::kProducerFenced,
             fenced(id->first, known->epoch, entry.value), effects);
      return;
    }
    // A repeated request whose answer was lost: it has its epoch already.
    pending.value.previous_producer_id = entry.value.previous_producer_id;
    pending.last_epoch = entry.last_epoch;
  } else if (is_exhausted(present)) {
    if (!request.new_producer_id) {
      ask_for_producer_id(request.request, effects);
      return;
    }
    pending.value.producer_id = *request.new_producer_id;
    pending.value.producer_epoch = ProducerEpoch(0);
    pending.last_epoch = known ? present : kNoProducerEpoch;
  } else {
    pending.value.producer_epoch = present.next();
    pending.last_epoch = known ? present : kNoProducerEpoch;
  }
  append(id, std::move(pending), effects);
}

// --- AddPartitionsToTxn

std::optional<TransactionCoordinator::Refusal> TransactionCoordinator::check_partitions(
    const AddPartitions& request) const {
  if (request.transactional_id.empty()) {
    return Refusal{TransactionCode::kInvalidRequest, no_id()};
  }
  if (request.client_version < 0 || request.client_version > options_.transaction_version) {
    return Refusal{TransactionCode::kInvalidRequest,
                   fmt::format("transactional id {}: its client speaks transaction.version {}, at "
                               "most {} is spoken here",
                               request.transactional_id, request.client_version,
                               options_.transaction_version)};
  }
  const auto found = ids_.find(request.transactional_id);
  if (found == ids_.end()) {
    return Refusal{TransactionCode::kInvalidProducerIdMapping,
                   unknown_id(request.transactional_id)};
  }
  const Entry& entry = found->second;
  if (entry.pending && !request.verify_only) {
    return Refusal{TransactionCode::kConcurrentTransactions, busy(found->first, entry.value)};
  }
  if (entry.value.producer_id != request.producer.id) {
    return Refusal{TransactionCode::kInvalidProducerIdMapping,
                   not_its_producer(found->first, request.producer.id, entry.value)};
  }
  if (entry.value.producer_epoch != request.producer.epoch) {
    return Refusal{TransactionCode::kProducerFenced,
                   fenced(found->first, request.producer.epoch, entry.value)};
  }
  if (is_decided(entry.value.status)) {
    return Refusal{TransactionCode::kConcurrentTransactions, busy(found->first, entry.value)};
  }
  if (request.client_version >= 2 && entry.value.producer_epoch.value() > kEpochMax) {
    return Refusal{TransactionCode::kProducerFenced,
                   fmt::format("transactional id {}: the epochs of producer {} are used up; open a "
                               "new producer",
                               found->first, entry.value.producer_id.value())};
  }
  return request.verify_only ? verify(request, entry) : std::nullopt;
}

std::optional<TransactionCoordinator::Refusal> TransactionCoordinator::verify(
    const AddPartitions& request, const Entry& entry) const {
  // While its end is on the way to the log nothing may be let in (KAFKA-14884).
  if (entry.pending && entry.pending->transition == Transition::kPrepare) {
    return Refusal{TransactionCode::kConcurrentTransactions,
                   busy(request.transactional_id, entry.value)};
  }
  for (const TopicPartition& partition : request.partitions) {
    if (entry.value.status != TransactionStatus::kOngoing ||
        !entry.partitions.contains(partition)) {
      return Refusal{TransactionCode::kTransactionAbortable,
                     fmt::format("transactional id {}: {} is not in an open transaction of "
                                 "producer {} epoch {}; abort, and add it before writing to it",
                                 request.transactional_id, partition.to_string(),
                                 request.producer.id.value(), request.producer.epoch.value())};
    }
  }
  return std::nullopt;
}

void TransactionCoordinator::add_partitions(const AddPartitions& request, Timestamp now,
                                            TransactionEffects& effects) {
  if (std::optional<Refusal> refusal = check_partitions(request)) {
    refuse(request.request, refusal->code, std::move(refusal->message), effects);
    return;
  }
  const auto id = ids_.find(request.transactional_id);
  const Entry& entry = id->second;
  const bool open = entry.value.status == TransactionStatus::kOngoing;
  std::set<TopicPartition> partitions = open ? entry.partitions : std::set<TopicPartition>();
  partitions.insert(request.partitions.begin(), request.partitions.end());
  if (request.verify_only || (open && partitions.size() == entry.partitions.size())) {
    TransactionAnswer answer;
    answer.request = request.request;
    answer.producer = request.producer;
    effects.emplace_back(std::move(answer));
    return;
  }
  if (partitions.size() > options_.partitions_per_transaction_max) {
    refuse(request.request, TransactionCode::kPolicyViolation,
           fmt::format("transactional id {}: its transaction would have {} partitions, at most {} "
                       "are allowed; commit more often",
                       id->first, partitions.size(), options_.partitions_per_transaction_max),
           effects);
    return;
  }
  Pending pending;
  pending.transition = Transition::kAddPartitions;
  pending.request = request.request;
  pending.value = transit(entry, TransactionStatus::kOngoing, now);
  pending.value.client_version = request.client_version >= 2 ? request.client_version : 0;
  if (!open) {
    pending.value.start = now;
  }
  pending.partitions = std::move(partitions);
  pending.last_epoch = entry.last_epoch;
  append(id, std::move(pending), effects);
}

// --- EndTxn

TransactionCoordinator::Verdict TransactionCoordinator::judge(const EndTransaction& request,
                                                              const Entry& entry) const {
  const TransactionValue& value = entry.value;
  const std::string& id = request.transactional_id;
  const auto refused = [](TransactionCode code, std::string message) {
    return Verdict{Verdict::Kind::kRefused, {code, std::move(message)}};
  };
  const bool raises_epoch = request.client_version >= 2;
  // A repeated request whose answer was lost (KIP-890): its epoch was raised, or used up.
  const bool retry_on_overflow = raises_epoch && is_complete(value.status) &&
                                 value.previous_producer_id == request.producer.id &&
                                 value.producer_id != request.producer.id &&
                                 request.producer.epoch.value() == kEpochMax &&
                                 value.producer_epoch.value() == 0;
  if (value.producer_id != request.producer.id && !retry_on_overflow) {
    return refused(TransactionCode::kInvalidProducerIdMapping,
                   not_its_producer(id, request.producer.id, value));
  }
  const bool same_epoch = value.producer_epoch == request.producer.epoch;
  const bool retry_on_bump = raises_epoch &&
                             (is_complete(value.status) || is_decided(value.status)) &&
                             value.producer_epoch.value() == request.producer.epoch.value() + 1;
  // In a decided transaction of version 2 the same epoch is that of the next one.
  const bool valid =
      raises_epoch && is_decided(value.status) ? retry_on_bump : same_epoch || retry_on_bump;
  if (!valid && !retry_on_overflow) {
    return refused(TransactionCode::kProducerFenced, fenced(id, request.producer.epoch, value));
  }
  if (entry.pending) {
    return refused(TransactionCode::kConcurrentTransactions, busy(id, value));
  }
  return judge_state(request, entry, retry_on_bump || retry_on_overflow);
}

TransactionCoordinator::Verdict TransactionCoordinator::judge_state(const EndTransaction& request,
                                                                    const Entry& entry,
                                                                    bool is_retry) const {
  const TransactionValue& value = entry.value;
  const bool raises_epoch = request.client_version >= 2;
  const auto prepare = [&](bool is_empty) {
    if (!raises_epoch || !is_exhausted(value.producer_epoch)) {
      return Verdict{Verdict::Kind::kPrepare, {TransactionCode::kNone, {}}, is_empty};
    }
    if (value.producer_epoch.value() > kEpochMax) {
      return Verdict{Verdict::Kind::kRefused,
                     {TransactionCode::kProducerFenced,
                      fmt::format("transactional id {}: the epochs of producer {} are used up; "
                                  "open a new producer",
                                  request.transactional_id, value.producer_id.value())}};
    }
    return Verdict{
        request.new_producer_id ? Verdict::Kind::kPrepare : Verdict::Kind::kNeedsProducerId,
        {TransactionCode::kNone, {}},
        is_empty};
  };
  const Verdict invalid{
      Verdict::Kind::kRefused,
      {TransactionCode::kInvalidTxnState,
       fmt::format("transactional id {} cannot {} in {} (producer {} epoch {}): {}",
                   request.transactional_id, request.commit ? "commit" : "abort",
                   transaction_status_name(value.status), request.producer.id.value(),
                   request.producer.epoch.value(),
                   value.status == TransactionStatus::kEmpty
                       ? "nothing was written in a transaction"
                       : "the transaction ended otherwise, as by its timeout; begin another")}};
  switch (value.status) {
    case TransactionStatus::kOngoing:
      return prepare(false);
    case TransactionStatus::kEmpty:
      return raises_epoch && !request.commit ? prepare(true) : invalid;
    case TransactionStatus::kPrepareCommit:
    case TransactionStatus::kPrepareAbort:
      if (is_commit(value.status) != request.commit) {
        return invalid;
      }
      return {Verdict::Kind::kRefused,
              {TransactionCode::kConcurrentTransactions, busy(request.transactional_id, value)}};
    case TransactionStatus::kCompleteCommit:
    case TransactionStatus::kCompleteAbort:
      if (is_retry || !raises_epoch) {
        return is_commit(value.status) == request.commit ? Verdict{Verdict::Kind::kDone} : invalid;
      }
      return request.commit ? invalid : prepare(true);
    case TransactionStatus::kDead:
    case TransactionStatus::kPrepareEpochFence:
      break;
  }
  return invalid;
}

void TransactionCoordinator::end_transaction(const EndTransaction& request, Timestamp now,
                                             TransactionEffects& effects) {
  if (request.transactional_id.empty()) {
    refuse(request.request, TransactionCode::kInvalidRequest, no_id(), effects);
    return;
  }
  const auto id = ids_.find(request.transactional_id);
  if (id == ids_.end()) {
    refuse(request.request, TransactionCode::kInvalidProducerIdMapping,
           unknown_id(request.transactional_id), effects);
    return;
  }
  const Entry& entry = id->second;
  Verdict verdict = judge(request, entry);
  switch (verdict.kind) {
    case Verdict::Kind::kRefused:
      refuse(request.request, verdict.refusal.code, std::move(verdict.refusal.message), effects);
      return;
    case Verdict::Kind::kNeedsProducerId:
      ask_for_producer_id(request.request, effects);
      return;
    case Verdict::Kind::kDone: {
      TransactionAnswer answer;
      answer.request = request.request;
      answer.producer = {entry.value.producer_id, entry.value.producer_epoch};
      effects.emplace_back(std::move(answer));
      return;
    }
    case Verdict::Kind::kPrepare:
      break;
  }
  Pending pending;
  pending.transition = Transition::kPrepare;
  pending.request = request.request;
  pending.value = transit(
      entry, request.commit ? TransactionStatus::kPrepareCommit : TransactionStatus::kPrepareAbort,
      now);
  pending.last_epoch = entry.last_epoch;
  if (request.client_version >= 2) {
    pending.value.client_version = request.client_version;
    pending.last_epoch = entry.value.producer_epoch;
    if (is_exhausted(entry.value.producer_epoch)) {
      pending.value.next_producer_id = *request.new_producer_id;
    }
    pending.value.producer_epoch = entry.value.producer_epoch.next();
  }
  if (verdict.is_empty) {
    pending.value.start = now;
  } else {
    pending.partitions = entry.partitions;
  }
  append(id, std::move(pending), effects);
}

}  // namespace weir::log
