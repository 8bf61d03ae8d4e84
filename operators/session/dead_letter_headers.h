#pragma once

#include <weir/runtime/lanes.h>
#include <weir/runtime/record.h>
#include <weir/runtime/types.h>

#include <cstdint>
#include <string>
#include <string_view>

namespace weir::internal {

// Names that are read again (session-workers 2.9, 2.13).
inline constexpr std::string_view kEventId = "event.id";
inline constexpr std::string_view kDeadLetterPrefix = "__session.dlq.";
inline constexpr std::string_view kRedriveCount = "__session.dlq.redrive.count";

// What a dead letter's headers say beside the letter itself. Borrows.
struct DeadLetterFacts {
  const TopicPartition& source;
  std::string_view group;
  std::string_view app_id;
  std::string_view app_version;      // empty: none
  std::string_view quarantine_head;  // event id of the letter that closed its session; or empty
  Timestamp first_failure = kNoTimestamp;
  Timestamp last_failure = kNoTimestamp;
  std::uint8_t families = 0;  // DeadLetterHeaders
};

// Header `event.id`, else "topic/partition/offset".
std::string event_id_of(const TopicPartition& source, const RecordView& record);

// The record's own headers byte for byte, then ours and those of the families. What a redriven
// record still has of an earlier dead letter is replaced, save event id and coordinates: they stay
// those of the first. Pure.
// Bounds: ours are at most 8 KiB: messages are cut, a session of more than 1 KiB is left out with
//         session.omitted=true (the key has it, or the extractor finds it again).
Headers dead_letter_headers(const DeadLetter& letter, const DeadLetterFacts& facts);

}  // namespace weir::internal
