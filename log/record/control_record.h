#pragma once

#include "log/record/batch_header.h"

#include <weir/runtime/bytes.h>
#include <weir/runtime/record.h>
#include <weir/runtime/types.h>

#include <cstdint>
#include <optional>

namespace weir::log {

// Key of a control record: version i16 = 0, type i16
// (org.apache.kafka.common.record.ControlRecordType).
enum class ControlType : std::int16_t {
  kAbort = 0,
  kCommit = 1,
  kLeaderChange = 2,
  kSnapshotHeader = 3,
  kSnapshotFooter = 4,
  kKRaftVersion = 5,
  kKRaftVoters = 6,
};
std::string_view control_type_name(ControlType type);  // Kafka's: ABORT, COMMIT, LEADER_CHANGE, ...

struct ControlRecord {
  std::int16_t version = 0;
  ControlType type = ControlType::kAbort;
  std::int32_t coordinator_epoch = -1;  // ABORT and COMMIT
};
// Errors: kCorrupt when the key or a marker's value is too short. Unknown types are returned as
// they are.
Result<ControlRecord> parse_control_record(const RecordView& record);

// The control batch that ends a transaction (org.apache.kafka.common.record.EndTransactionMarker).
// Under transaction version 2 `epoch` is one above that of the transaction.
// Requires: `type` is kAbort or kCommit.
SharedBytes build_end_transaction_marker(ControlType type, ProducerId producer, ProducerEpoch epoch,
                                         std::int32_t coordinator_epoch, Timestamp now);
// Reads the marker in a whole control batch; nullopt for control batches that are none.
// Errors: kCorrupt.
Result<std::optional<ControlRecord>> read_end_transaction_marker(const BatchHeader& header,
                                                                 ByteView batch);

}  // namespace weir::log
