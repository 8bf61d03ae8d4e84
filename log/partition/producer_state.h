#pragma once

#include "log/partition/append_options.h"
#include "log/partition/producer_snapshot.h"
#include "log/record/batch_header.h"
#include "log/record/control_record.h"
#include "log/segment/aborted_transactions.h"

#include <weir/runtime/result.h>
#include <weir/runtime/types.h>

#include <array>
#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <unordered_map>
#include <vector>

namespace weir::log {

// Sequence numbers are 31 bits wide: 0 follows 2147483647.
std::int32_t sequence_plus(std::int32_t sequence, std::int32_t delta);
std::int32_t sequence_minus(std::int32_t sequence, std::int32_t delta);
// Of the batch's last record; -1 when it has no sequences.
std::int32_t last_sequence_of(const BatchHeader& header);

// A transaction that a marker ended.
struct EndedTransaction {
  ProducerId producer;
  Offset first;
  Offset last;  // of the marker
  bool aborted = false;
};

// What one partition knows of its producers (org.apache.kafka.storage.internals.log.
// ProducerStateManager, ProducerAppendInfo): for each id its epoch, its last five batches, the
// epoch of the coordinator that wrote its last marker and where its open transaction began. Pure:
// headers and times in, verdicts out. A check changes nothing: what was appended is told
// afterwards, so that an append that failed leaves no trace (KAFKA-6683).
//
// Bounds: Limits::producers_max, about 250 bytes each. At the bound the sixteenth whose last batch
//         or marker is oldest is forgotten, as if it had expired; producers with an open
//         transaction never are: when there is none to forget, a new one is refused with kNoSpace.
// Threading: confined to its owner.
class ProducerState {
 public:
  static constexpr std::size_t kWindow = 5;

  struct Limits {
    std::int64_t expiration_ms = 86'400'000;  // producer.id.expiration.ms
    std::size_t producers_max = 100'000;
  };
  struct Batch {
    std::int32_t last_sequence = -1;
    Offset last_offset;
    std::int32_t offset_delta = 0;
    Timestamp timestamp = kNoTimestamp;
    bool aborted = false;  // in a transaction that was aborted since: no longer an answer
    Offset first_offset() const { return last_offset.plus(-std::int64_t{offset_delta}); }
    std::int32_t first_sequence() const;
    friend bool operator==(const Batch&, const Batch&) = default;
  };
  struct Producer {
    ProducerEpoch epoch = kNoProducerEpoch;
    std::int32_t coordinator_epoch = -1;
    Timestamp timestamp = kNoTimestamp;  // of its last batch or marker
    Offset transaction_first = kNoOffset;
    std::uint8_t batch_count = 0;
    std::array<Batch, kWindow> batches;  // the first batch_count, oldest first

    bool in_transaction() const { return transaction_first != kNoOffset; }
    std::int32_t last_sequence() const {
      return batch_count == 0 ? -1 : batches[batch_count - std::size_t{1}].last_sequence;
    }
    friend bool operator==(const Producer&, const Producer&) = default;
  };

  ProducerState() = default;
  explicit ProducerState(Limits limits) : limits_(limits) {}

  // --- Before an append
  // Whether a batch with records may be appended; a batch: it was, as this one, and nothing is to
  // be appended. Of a coordinator's batch the epoch alone is judged. Errors: kInvalidProducerEpoch,
  // kOutOfOrderSequence, kInvalidTxnState, kNoSpace.
  Result<std::optional<Batch>> check(const BatchHeader& header, const AppendOptions& options) const;
  // Whether a marker is to be appended; false: an earlier copy of it has ended the transaction.
  // Errors: kInvalidProducerEpoch; kFenced (a later coordinator has written).
  Result<bool> check_marker(const BatchHeader& header, const ControlRecord& marker,
                            std::int16_t transaction_version) const;

  // --- What was appended, or stands in the log. Rising offsets.
  // How many producers were forgotten for it.
  std::size_t add(const BatchHeader& header);
  // nullopt: the producer had no transaction here.
  std::optional<EndedTransaction> add_marker(const BatchHeader& header,
                                             const ControlRecord& marker);

  // --- Verification of a transaction's first write (Kafka's VerificationStateEntry)
  // A number for AppendOptions::verification; nullopt when the transaction is open here already. A
  // marker of the producer or its first batch takes it back, so a verification that an abort
  // overtook is worth nothing (KAFKA-14884). Errors: kNoSpace.
  Result<std::optional<std::uint64_t>> start_verification(ProducerId id, ProducerEpoch epoch,
                                                          std::int32_t base_sequence,
                                                          Timestamp now);
  bool has_open_transaction(ProducerId id, ProducerEpoch epoch) const;

  // Forgets producers whose last batch or marker is older than the expiration and that have no open
  // transaction, and old verifications.
  void expire(Timestamp now);

  const Producer* find(ProducerId id) const;
  bool empty() const { return producers_.empty(); }
  std::size_t size() const { return producers_.size(); }
  // First offsets of the open transactions and who began them.
  const std::map<Offset, ProducerId>& open_transactions() const { return open_; }

  // As a .snapshot file has it, by id. It holds one batch a producer.
  std::vector<ProducerEntry> entries() const;
  static ProducerState from_entries(const std::vector<ProducerEntry>& entries, Limits limits);
  // With all batches, for `wal/producers` (docs/formats/producers.md). Errors: kCorrupt.
  std::string encode() const;
  static Result<ProducerState> decode(ByteView bytes, Limits limits);

  friend bool operator==(const ProducerState& left, const ProducerState& right) {
    return left.producers_ == right.producers_;
  }

 private:
  struct Verification {
    std::uint64_t number = 0;
    ProducerEpoch epoch;
    std::int32_t lowest_sequence = 0;
    Timestamp time = kNoTimestamp;
  };

  Status check_verified(const BatchHeader& header, const AppendOptions& options) const;
  Status check_room() const;
  std::size_t make_room();
  void insert(ProducerId id, Producer producer);

  Limits limits_;
  std::unordered_map<ProducerId, Producer> producers_;
  std::map<Offset, ProducerId> open_;
  std::unordered_map<ProducerId, Verification> verifications_;
  std::uint64_t next_verification_ = 1;
};

// Its entry of the transaction index. `state` knows that it has ended.
AbortedTransaction index_entry_of(const EndedTransaction& ended, const ProducerState& state);

// The producers of one partition as of `offset`: ProducerState::encode().
struct ProducersAt {
  Offset offset;
  std::string bytes;
  friend bool operator==(const ProducersAt&, const ProducersAt&) = default;
};

}  // namespace weir::log
