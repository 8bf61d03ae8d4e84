#include "apps/chat_sessions/chat.h"

#include <weir/runtime/session_hash.h>

#include <fmt/core.h>

#include <array>
#include <charconv>

namespace weir::chat_sessions {

namespace {

constexpr std::array<std::string_view, 8> kCities{"London", "Paris",  "Rome",   "Oslo",
                                                  "Madrid", "Vienna", "Lisbon", "Prague"};

}  // namespace

Result<Line> Line::parse(ByteView bytes) {
  Line line;
  const auto [end, error] = std::from_chars(bytes.data(), bytes.data() + bytes.size(), line.number);
  if (error != std::errc() || end == bytes.data() + bytes.size() || *end != '\t') {
    return Error(Errc::kInvalidRecord, "a line is NUMBER TAB TEXT");
  }
  line.text = bytes.substr(static_cast<std::size_t>(end - bytes.data()) + 1);
  return line;
}

std::string Line::to_string() const {
  return fmt::format("{}\t{}", number, text);
}

Chat::Chat(std::uint64_t seed, std::uint64_t sessions, double nonsense)
    : rng_(seed), nonsense_(nonsense), prefix_(fmt::format("{}-", seed)), numbers_(sessions) {}

std::string Chat::text(bool is_first) {
  const double kind = rng_.unit();
  const std::string_view city = kCities[rng_.below(kCities.size())];
  if (rng_.unit() < nonsense_) {
    return "%$#!";
  }
  if (is_first || kind < 0.3) {
    return fmt::format("book {}", city);
  }
  if (kind < 0.8) {
    return fmt::format("make it {}", city);
  }
  return kind < 0.9 ? "confirm" : "cancel";
}

Message Chat::next() {
  const std::uint64_t session = rng_.below(numbers_.size());
  const std::uint64_t number = ++numbers_[session];
  const std::string said = text(number == 1);
  return {fmt::format("{}{}", prefix_, session), number, Line{number, said}.to_string()};
}

bool fails(std::uint64_t seed, ByteView session, std::uint64_t number, std::uint32_t attempt,
           double rate) {
  constexpr std::uint64_t kNumberFactor = 0x9e3779b97f4a7c15U;
  constexpr std::uint64_t kAttemptFactor = 0xd6e8feb86659fd93U;
  return Rng(seed ^ session_hash(session) ^ (number * kNumberFactor) ^ (attempt * kAttemptFactor))
             .unit() < rate;
}

}  // namespace weir::chat_sessions
