#include "log/partition/producer_state.h"

#include <fmt/format.h>

#include <algorithm>

namespace weir::log {
namespace {

constexpr std::size_t kVerificationsMax = 10'000;
// Nobody waits so long for an answer: transaction.max.timeout.ms by default.
constexpr std::int64_t kVerificationAgeMax = 900'000;
constexpr std::int64_t kSequences = std::int64_t{1} << 31;

std::string sequences_text(const BatchHeader& header) {
  return fmt::format("{} to {}", header.base_sequence, last_sequence_of(header));
}

bool follows(std::int32_t last, std::int32_t next) {
  return next == (last < 0 ? 0 : sequence_plus(last, 1));
}

Error stale_epoch(ProducerId id, ProducerEpoch epoch, ProducerEpoch known) {
  return Error(Errc::kInvalidProducerEpoch,
               fmt::format("producer {} has epoch {}, but epoch {} has written here: another "
                           "instance took over, open a new producer",
                           id.value(), epoch.value(), known.value()));
}

void set_epoch(ProducerState::Producer& producer, ProducerEpoch epoch) {
  if (producer.epoch != epoch) {
    producer.epoch = epoch;
    producer.batch_count = 0;
    producer.batches = {};
  }
}

}  // namespace

std::int32_t sequence_plus(std::int32_t sequence, std::int32_t delta) {
  return static_cast<std::int32_t>((std::int64_t{sequence} + delta) % kSequences);
}

std::int32_t sequence_minus(std::int32_t sequence, std::int32_t delta) {
  return static_cast<std::int32_t>((std::int64_t{sequence} - delta + kSequences) % kSequences);
}

std::int32_t last_sequence_of(const BatchHeader& header) {
  return header.base_sequence < 0 ? -1
                                  : sequence_plus(header.base_sequence, header.last_offset_delta);
}

std::int32_t ProducerState::Batch::first_sequence() const {
  return last_sequence < 0 ? -1 : sequence_minus(last_sequence, offset_delta);
}

const ProducerState::Producer* ProducerState::find(ProducerId id) const {
  const auto found = producers_.find(id);
  return found == producers_.end() ? nullptr : &found->second;
}

bool ProducerState::has_open_transaction(ProducerId id, ProducerEpoch epoch) const {
  const Producer* known = find(id);
  return known != nullptr && known->in_transaction() && known->epoch == epoch;
}

// --- Checks

Result<std::optional<ProducerState::Batch>> ProducerState::check(
    const BatchHeader& header, const AppendOptions& options) const {
  const ProducerId id = header.producer_id;
  const Producer* known = find(id);
  const bool by_coordinator = options.origin == AppendOrigin::kCoordinator;
  if (known != nullptr && header.producer_epoch == known->epoch && !by_coordinator) {
    for (std::size_t i = 0; i < known->batch_count; ++i) {
      const Batch& batch = known->batches[i];
      if (!batch.aborted && batch.first_sequence() == header.base_sequence &&
          batch.last_sequence == last_sequence_of(header)) {
        return std::optional(batch);
      }
    }
  }
  if (known == nullptr) {
    WEIR_TRY(check_room());
  } else if (header.producer_epoch < known->epoch) {
    return stale_epoch(id, header.producer_epoch, known->epoch);
  }
  if (by_coordinator) {
    return std::optional<Batch>();
  }
  WEIR_TRY(check_verified(header, options));
  if (known == nullptr) {
    return std::optional<Batch>();
  }
  // A new epoch begins at 0; an id of which nothing is known begins anywhere.
  const bool is_new = header.producer_epoch != known->epoch;
  const std::int32_t last = is_new ? -1 : known->last_sequence();
  if (!follows(last, header.base_sequence)) {
    return Error(Errc::kOutOfOrderSequence,
                 fmt::format("producer {} epoch {}: sequences {} do not follow; {} is expected: a "
                             "batch before this one is missing",
                             id.value(), header.producer_epoch.value(), sequences_text(header),
                             last < 0 ? 0 : sequence_plus(last, 1)));
  }
  if (known->in_transaction() && (!header.is_transactional() || is_new)) {
    return Error(
        Errc::kInvalidTxnState,
        fmt::format("producer {} has a transaction of epoch {} open here since offset {}: {}",
                    id.value(), known->epoch.value(), known->transaction_first.value(),
                    is_new ? "its marker must come before a batch of a later epoch"
                           : "a batch outside of it must wait for its end"));
  }
  return std::optional<Batch>();
}

Status ProducerState::check_verified(const BatchHeader& header,
                                     const AppendOptions& options) const {
  if (options.origin != AppendOrigin::kClient || !header.is_transactional() ||
      has_open_transaction(header.producer_id, header.producer_epoch)) {
    return Status();
  }
  const auto found = verifications_.find(header.producer_id);
  if (found == verifications_.end() || found->second.number != options.verification ||
      found->second.epoch != header.producer_epoch) {
    return Error(Errc::kInvalidTxnState,
                 fmt::format("producer {} epoch {} has no transaction with this partition: add the "
                             "partition to the transaction first",
                             header.producer_id.value(), header.producer_epoch.value()));
  }
  if (header.base_sequence > found->second.lowest_sequence) {
    return Error(Errc::kOutOfOrderSequence,
                 fmt::format("producer {} epoch {}: sequences {} came before sequence {}, which is "
                             "being verified",
                             header.producer_id.value(), header.producer_epoch.value(),
                             sequences_text(header), found->second.lowest_sequence));
  }
  return Status();
}

Result<bool> ProducerState::check_marker(const BatchHeader& header, const ControlRecord& marker,
                                         std::int16_t transaction_version) const {
  const Producer* known = find(header.producer_id);
  if (known == nullptr) {
    WEIR_TRY(check_room());
    return true;
  }
  if (header.producer_epoch < known->epoch) {
    return stale_epoch(header.producer_id, header.producer_epoch, known->epoch);
  }
  if (marker.coordinator_epoch < known->coordinator_epoch) {
    return Error(Errc::kFenced,
                 fmt::format("a marker for producer {} comes from coordinator epoch {}, but {} has "
                             "written here: another coordinator took over",
                             header.producer_id.value(), marker.coordinator_epoch,
                             known->coordinator_epoch));
  }
  // Its transaction ran at an earlier epoch: one of this epoch is the next transaction.
  if (transaction_version >= 2 && header.producer_epoch == known->epoch) {
    if (known->in_transaction()) {
      return stale_epoch(header.producer_id, header.producer_epoch, known->epoch);
    }
    return false;
  }
  return true;
}

Status ProducerState::check_room() const {
  if (producers_.size() < limits_.producers_max || open_.size() < producers_.size()) {
    return Status();
  }
  return Error(Errc::kNoSpace,
               fmt::format("{} producers have an open transaction here, no more are taken; end "
                           "some and try again",
                           producers_.size()));
}

// --- What was appended

std::size_t ProducerState::add(const BatchHeader& header) {
  const std::size_t forgotten = producers_.contains(header.producer_id) ? 0 : make_room();
  Producer& producer = producers_[header.producer_id];
  set_epoch(producer, header.producer_epoch);
  if (producer.batch_count == kWindow) {
    std::move(producer.batches.begin() + 1, producer.batches.end(), producer.batches.begin());
    --producer.batch_count;
  }
  producer.batches[producer.batch_count++] = {last_sequence_of(header), header.last_offset(),
                                              header.last_offset_delta, header.max_timestamp,
                                              false};
  producer.timestamp = header.max_timestamp;
  // What compaction leaves without records is of a transaction that has ended.
  if (header.is_transactional() && !producer.in_transaction() && header.records_count > 0) {
    producer.transaction_first = header.base_offset;
    open_.emplace(header.base_offset, header.producer_id);
  }
  if (!verifications_.empty()) {
    verifications_.erase(header.producer_id);
  }
  return forgotten;
}

std::optional<EndedTransaction> ProducerState::add_marker(const BatchHeader& header,
                                                          const ControlRecord& marker) {
  if (!producers_.contains(header.producer_id)) {
    make_room();
  }
  Producer& producer = producers_[header.producer_id];
  const Offset first = std::exchange(producer.transaction_first, kNoOffset);
  const bool aborted = marker.type == ControlType::kAbort;
  if (aborted && first != kNoOffset) {
    for (Batch& batch : producer.batches) {
      batch.aborted |= batch.first_offset() >= first;
    }
  }
  set_epoch(producer, header.producer_epoch);
  producer.coordinator_epoch = marker.coordinator_epoch;
  producer.timestamp = header.max_timestamp;
  verifications_.erase(header.producer_id);
  if (first == kNoOffset) {
    return std::nullopt;
  }
  open_.erase(first);
  return EndedTransaction{header.producer_id, first, header.base_offset, aborted};
}

// --- Verification

Result<std::optional<std::uint64_t>> ProducerState::start_verification(ProducerId id,
                                                                       ProducerEpoch epoch,
                                                                       std::int32_t base_sequence,
                                                                       Timestamp now) {
  if (has_open_transaction(id, epoch)) {
    return std::optional<std::uint64_t>();
  }
  const auto found = verifications_.find(id);
  if (found == verifications_.end()) {
    if (verifications_.size() >= kVerificationsMax) {
      std::erase_if(verifications_, [now](const auto& entry) {
        return entry.second.time < now - kVerificationAgeMax;
      });
    }
    if (verifications_.size() >= kVerificationsMax) {
      return Error(Errc::kNoSpace,
                   fmt::format("{} transactions wait for their verification, no more are taken; "
                               "try again",
                               verifications_.size()));
    }
    const std::uint64_t number = next_verification_++;
    verifications_[id] = {number, epoch, base_sequence, now};
    return std::optional(number);
  }
  Verification& known = found->second;
  if (epoch != known.epoch) {
    known = {next_verification_++, epoch, base_sequence, now};
  }
  known.lowest_sequence = std::min(known.lowest_sequence, base_sequence);
  return std::optional(known.number);
}

// --- Bounds

void ProducerState::expire(Timestamp now) {
  const Timestamp oldest = now - limits_.expiration_ms;
  std::erase_if(producers_, [oldest](const auto& entry) {
    return !entry.second.in_transaction() && entry.second.timestamp <= oldest;
  });
  std::erase_if(verifications_,
                [oldest](const auto& entry) { return entry.second.time <= oldest; });
}

std::size_t ProducerState::make_room() {
  constexpr std::size_t kShare = 16;
  if (producers_.size() < limits_.producers_max) {
    return 0;
  }
  std::vector<std::pair<Timestamp, ProducerId>> idle;
  for (const auto& [id, producer] : producers_) {
    if (!producer.in_transaction()) {
      idle.emplace_back(producer.timestamp, id);
    }
  }
  const std::size_t count = std::min(idle.size(), limits_.producers_max / kShare + 1);
  std::partial_sort(idle.begin(), idle.begin() + static_cast<std::ptrdiff_t>(count), idle.end());
  for (std::size_t i = 0; i < count; ++i) {
    producers_.erase(idle[i].second);
  }
  return count;
}

AbortedTransaction index_entry_of(const EndedTransaction& ended, const ProducerState& state) {
  AbortedTransaction aborted;
  aborted.producer_id = ended.producer;
  aborted.first_offset = ended.first;
  aborted.last_offset = ended.last;
  const auto& open = state.open_transactions();
  aborted.last_stable_offset = open.empty() ? ended.last.next() : open.begin()->first;
  return aborted;
}

}  // namespace weir::log
