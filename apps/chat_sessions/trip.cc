#include "apps/chat_sessions/trip.h"

#include <fmt/core.h>

#include <utility>

namespace weir::chat_sessions {

Result<std::string> answer(Trip& trip, std::string_view message) {
  constexpr std::string_view kBook = "book ";
  constexpr std::string_view kChange = "make it ";
  if (message.starts_with(kBook)) {
    trip.city = message.substr(kBook.size());
    return fmt::format("booked {}", trip.city);
  }
  if (message.starts_with(kChange)) {
    if (trip.city.empty()) {
      return std::string("nothing to change");
    }
    const std::string before =
        std::exchange(trip.city, std::string(message.substr(kChange.size())));
    return fmt::format("changed {} to {}", before, trip.city);
  }
  if (message == "confirm") {
    return trip.city.empty() ? "nothing to confirm" : fmt::format("confirmed {}", trip.city);
  }
  if (message == "cancel") {
    const std::string before = std::exchange(trip.city, {});
    return before.empty() ? "nothing to cancel" : fmt::format("cancelled {}", before);
  }
  return Error(Errc::kInvalidRecord, fmt::format("\"{}\" is no message of a traveller", message));
}

}  // namespace weir::chat_sessions
