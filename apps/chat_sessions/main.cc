// Chats of travellers with a bot: thousands of sessions share a few partitions, each handled
// strictly in order, with failures that are tried again and messages that end as dead letters.
#include "apps/chat_sessions/talk.h"

#include <CLI/CLI.hpp>

namespace weir::chat_sessions {
namespace {

int run(int argc, char** argv) {
  TalkOptions options;
  CLI::App app(
      "Travellers chat with a bot that must take each one's messages in order (\"make it Paris\" "
      "behind \"book London\"); checks the answers of every session",
      "chat_sessions");
  cli::add_common_options(app, options.common);
  const auto probability = CLI::Range(0.0, 1.0).description("");
  app.add_option("--sessions", options.sessions, "Travellers")
      ->check(CLI::Range(std::uint64_t{1}, std::uint64_t{10'000'000}).description(""))
      ->capture_default_str();
  app.add_option("--messages", options.messages, "Messages of all together")->capture_default_str();
  app.add_option("--fail-rate", options.fail_rate,
                 "Probability that an attempt fails as if a service were down, 0 to 1")
      ->check(probability)
      ->capture_default_str();
  app.add_option("--nonsense-rate", options.nonsense,
                 "Probability of a message that no bot understands: a dead letter, 0 to 1")
      ->check(probability)
      ->capture_default_str();
  app.add_option("--back-off-ms", options.back_off_ms, "Wait before the second attempt; doubles")
      ->check(CLI::Range(std::uint64_t{0}, std::uint64_t{60'000}).description(""))
      ->capture_default_str();
  app.add_option("--attempts", options.attempts_max, "Attempts before a message is a dead letter")
      ->check(CLI::Range(std::uint32_t{1}, std::uint32_t{1'000}).description(""))
      ->capture_default_str();
  app.add_option("--seed", options.seed, "Of messages and failures")->capture_default_str();
  app.add_option("--rate", options.rate, "Messages sent a second; 0: as fast as they are taken")
      ->capture_default_str();
  app.add_option("--partitions", options.partitions, "Partitions of topics that are made")
      ->check(CLI::Range(1, 10'000).description(""))
      ->capture_default_str();
  app.add_option("--workers", options.workers, "Threads that run handlers")
      ->check(CLI::Range(std::uint32_t{1}, std::uint32_t{256}).description(""))
      ->capture_default_str();
  app.add_option("--topic", options.topic,
                 "Messages; answers go to TOPIC.answers, dead letters to TOPIC.dlq")
      ->capture_default_str();
  app.add_option("--group", options.group, "Consumer group of the bot")->capture_default_str();
  app.add_flag("--quarantine", options.is_quarantined,
               "Later messages of a session follow its first dead letter");
  app.footer(
      "A run that was stopped goes on when it is started again with the same seed, sessions and\n"
      "rates. Ctrl-C ends running handlers, commits and checks what is there.\n"
      "Exit code 1 when an order was violated or a message got neither answer nor dead letter.\n"
      "Examples:\n  chat_sessions\n"
      "  chat_sessions --sessions 10 --messages 50000 --fail-rate 0.1 --back-off-ms 1\n"
      "  chat_sessions --nonsense-rate 0.01 --messages 10000; weir dlq list chat.dlq");
  int code = 0;
  if (!cli::parse(app, argc, argv, options.common, &code)) {
    return code;
  }
  return talk(options);
}

}  // namespace
}  // namespace weir::chat_sessions

int main(int argc, char** argv) {
  return weir::chat_sessions::run(argc, argv);
}
