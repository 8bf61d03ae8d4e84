#pragma once

#include <weir/log/isolation_level.h>
#include <weir/runtime/backend.h>

#include <string>
#include <string_view>

namespace weir::log {

// auto.offset.reset: where to read when no offset is committed, or the position is outside the log.
struct OffsetReset {
  enum class Kind { kEarliest, kLatest, kNone, kByDuration };
  Kind kind = Kind::kLatest;
  Duration ago{};  // kByDuration: the first record that is not older than this

  // "earliest", "latest", "none" or "by_duration:PnDTnHnMn.nS" (Kafka 4, KIP-1106).
  // Errors: kInvalidConfig that names what is wrong.
  static Result<OffsetReset> parse(std::string_view text);
};

struct ResetPosition {
  Offset offset;
  LeaderEpoch leader_epoch = kNoLeaderEpoch;  // of the record before it, where that is known
};

// Where a reader of this isolation finds the log's end.
inline Offset end_of(const PartitionOffsets& offsets, IsolationLevel isolation) {
  return isolation == IsolationLevel::kReadCommitted ? offsets.last_stable : offsets.high_watermark;
}

// Asks the log. kByDuration with no record young enough: the end. Requires: kind is not kNone.
// Errors: kUnknownTopic.
Result<ResetPosition> find_reset_position(Admin& admin, const TopicPartition& partition,
                                          const OffsetReset& reset, const Clock& clock,
                                          IsolationLevel isolation);

}  // namespace weir::log
