#include "operators/app/start_offset.h"

#include <fmt/core.h>

namespace weir::internal {

namespace {

Error no_valid_offset(const TopicPartition& partition, const std::string& what,
                      const StartFacts& facts) {
  return {Errc::kOffsetOutOfRange,
          fmt::format("{} of {}, the log holds {} to {}, and auto.offset.reset is none: choose "
                      "earliest or latest, or move the offset with `app reset`",
                      what, partition.to_string(), facts.log.log_start.value(),
                      facts.log.high_watermark.value())};
}

Offset reset_target(const StartFacts& facts, OffsetReset reset) {
  return reset == OffsetReset::kLatest ? facts.log.high_watermark : facts.log.log_start;
}

Result<StartDecision> set_back(const TopicPartition& partition, const StartFacts& facts, Offset end,
                               OffsetReset reset) {
  const Offset committed = facts.committed->offset;
  if (reset == OffsetReset::kNone) {
    return no_valid_offset(
        partition,
        fmt::format("committed offset {} is beyond the end {}", committed.value(), end.value()),
        facts);
  }
  return StartDecision{
      end, facts.committed->leader_epoch,
      fmt::format("committed offset outlived its records partition={} committed={} end={} "
                  "missing={}",
                  partition.to_string(), committed.value(), end.value(),
                  committed.value() - end.value())};
}

}  // namespace

OffsetReset offset_reset_of(const std::string& setting) {
  if (setting == "latest") {
    return OffsetReset::kLatest;
  }
  return setting == "none" ? OffsetReset::kNone : OffsetReset::kEarliest;
}

Result<StartDecision> decide_start(const TopicPartition& partition, const StartFacts& facts,
                                   OffsetReset reset) {
  if (!facts.committed.has_value()) {
    if (reset == OffsetReset::kNone) {
      return no_valid_offset(partition, "there is no committed offset", facts);
    }
    return StartDecision{reset_target(facts, reset), kNoLeaderEpoch, {}};
  }
  const Offset committed = facts.committed->offset;
  if (committed < facts.log.log_start) {
    if (reset == OffsetReset::kNone) {
      return no_valid_offset(partition, fmt::format("committed offset {}", committed.value()),
                             facts);
    }
    const Offset target = reset_target(facts, reset);
    return StartDecision{
        target, kNoLeaderEpoch,
        fmt::format("records are gone before they were read partition={} committed={} "
                    "log_start={} missing={} reset_to={}",
                    partition.to_string(), committed.value(), facts.log.log_start.value(),
                    target.value() - committed.value(), target.value())};
  }
  if (facts.epoch_end.has_value() && *facts.epoch_end < committed) {
    return set_back(partition, facts, std::max(*facts.epoch_end, facts.log.log_start), reset);
  }
  if (committed > facts.log.log_end) {
    return set_back(partition, facts, facts.log.log_end, reset);
  }
  return StartDecision{committed, facts.committed->leader_epoch, {}};
}

}  // namespace weir::internal
