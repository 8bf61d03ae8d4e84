#pragma once

#include <weir/runtime/backend.h>
#include <weir/runtime/result.h>
#include <weir/runtime/types.h>

#include <optional>
#include <string>

namespace weir::internal {

enum class OffsetReset { kEarliest, kLatest, kNone };
OffsetReset offset_reset_of(const std::string& setting);

struct StartFacts {
  std::optional<CommittedOffset> committed;
  PartitionOffsets log;
  // Admin::epoch_end_offset of the committed epoch; nullopt: unknown.
  std::optional<Offset> epoch_end;
};

struct StartDecision {
  Offset offset;
  LeaderEpoch epoch = kNoLeaderEpoch;
  // What an operator must know: how many records are missing. Empty: nothing.
  std::string warning;
};

// Where an input partition is read from (DESIGN D4; Kafka's auto.offset.reset). Pure.
//   no commit           earliest | latest; none: an error
//   below the log       earliest | latest, and a warning that says how many records are gone; none:
//                       an error that names both offsets
//   beyond the end      of its epoch or of the log: set back to that end, with a warning; none: an
//                       error
// Errors: kOffsetOutOfRange.
Result<StartDecision> decide_start(const TopicPartition& partition, const StartFacts& facts,
                                   OffsetReset reset);

}  // namespace weir::internal
