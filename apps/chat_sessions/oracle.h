#pragma once

#include <weir/runtime/backend.h>

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

namespace weir::chat_sessions {

// What the topics say, compared session by session with the messages applied one after the other.
struct Verdict {
  std::uint64_t messages = 0;
  std::uint64_t sessions = 0;
  std::uint64_t answers = 0;       // without repeated ones
  std::uint64_t repeated = 0;      // answers that a crash made twice, in order
  std::uint64_t dead_letters = 0;  // without repeated ones
  std::uint64_t violations = 0;    // answers out of order, wrong, or of nobody's message
  std::uint64_t unanswered = 0;    // neither answer nor dead letter yet
  std::string first_violation;     // for people
};

struct CheckedTopics {
  std::string messages;
  std::string answers;
  std::string dead_letters;
  std::function<bool(ByteView session)> owns;  // sessions that are checked
};

// Reads the three topics up to their ends as of now. Errors: the log's.
Result<Verdict> check(Backend& log, const CheckedTopics& topics);

}  // namespace weir::chat_sessions
