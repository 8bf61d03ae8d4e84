#pragma once

#include <weir/runtime/bytes.h>
#include <weir/runtime/rng.h>
#include <weir/runtime/session_hash.h>

#include <cstdint>
#include <string>

// What crash_sessions and its checker both know: 1,000 sessions over 4 partitions, a tenth of all
// attempts fails, some messages never succeed.

namespace weir::crash {

inline constexpr const char* kTalk = "talk";
inline constexpr const char* kAnswers = "answers";
inline constexpr const char* kTalkLetters = "talk.dlq";
inline constexpr const char* kTalkGroup = "talkers";
inline constexpr int kTalkPartitions = 4;
inline constexpr int kTalkSessions = 1'000;

// Whether message `number` of a session never succeeds.
inline bool is_hopeless(ByteView session, std::int64_t number) {
  return Rng(session_hash(session) + static_cast<std::uint64_t>(number)).below(100) == 0;
}

// An answer: the message's number and how many of its session had succeeded with it, from state.
inline std::string answer_text(std::int64_t number, std::int64_t count) {
  return std::to_string(number) + " " + std::to_string(count);
}

}  // namespace weir::crash
