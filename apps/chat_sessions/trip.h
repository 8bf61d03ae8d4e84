#pragma once

#include <weir/runtime/result.h>

#include <string>
#include <string_view>

namespace weir::chat_sessions {

// What a traveller has said so far; a word of a later message changes what an earlier one asked
// for, so the order of a session's messages is its meaning. Value.
struct Trip {
  std::string city;  // empty: nothing is booked
};

// Applies a message, "book London", "make it Paris", "confirm" or "cancel", and says what the bot
// answers. Errors: kInvalidRecord (it is none of these); the trip stays as it was.
Result<std::string> answer(Trip& trip, std::string_view message);

}  // namespace weir::chat_sessions
