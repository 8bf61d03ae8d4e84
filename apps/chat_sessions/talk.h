#pragma once

#include "apps/cli/options.h"

#include <weir/runtime/session_engine.h>

#include <cstdint>
#include <string>

namespace weir::chat_sessions {

struct TalkOptions {
  cli::CommonOptions common;
  std::uint64_t sessions = 1'000;
  std::uint64_t messages = 50'000;
  double fail_rate = 0.1;
  double nonsense = 0.0005;
  std::uint64_t back_off_ms = 5;
  std::uint32_t attempts_max = 10;
  std::uint64_t seed = 1;
  std::uint64_t rate = 0;  // messages a second; 0: as fast as they are taken
  std::int32_t partitions = 4;
  std::uint32_t workers = 2;
  std::string topic = "chat";
  std::string group = "travel-bot";
  bool is_quarantined = false;  // later messages of a session follow its dead letter
};

// Sends the messages that are not there yet, runs the bot over all of them until the end, a signal
// or an error, checks the topics against the oracle and prints the result. Returns the exit code.
int talk(const TalkOptions& options);

}  // namespace weir::chat_sessions
