#include "apps/chat_sessions/oracle.h"

#include "apps/chat_sessions/chat.h"
#include "apps/chat_sessions/trip.h"
#include "apps/cli/topic_reader.h"

#include <fmt/core.h>

#include <map>
#include <set>

namespace weir::chat_sessions {

namespace {

struct Session {
  std::vector<std::string> messages;  // texts, by number from 1
  std::set<std::uint64_t> dead;
  std::vector<std::pair<std::uint64_t, std::string>> answers;
};
using Sessions = std::map<std::string, Session, std::less<>>;

using TakeLine = std::function<void(Session& session, const Line& line)>;

Status read(Backend& log, const std::string& topic, const CheckedTopics& topics, Sessions& sessions,
            const TakeLine& take) {
  WEIR_TRY_ASSIGN(const auto reader, cli::TopicReader::open(log, topic));
  return reader->update_to_end([&](const RecordView& record) -> Status {
    if (record.key.is_null() || record.value.is_null() || !topics.owns(record.key.view())) {
      return {};
    }
    WEIR_TRY_ASSIGN(const Line line, Line::parse(record.value.view()));
    take(sessions[std::string(record.key.view())], line);
    return {};
  });
}

class Judge {
 public:
  explicit Judge(Verdict& verdict) : verdict_(verdict) {}

  void judge(const std::string& name, const Session& session) {
    name_ = &name;
    verdict_.messages += session.messages.size();
    verdict_.dead_letters += session.dead.size();
    Trip trip;
    std::uint64_t number = 0;  // of the last message that was applied
    for (const auto& [answered, text] : session.answers) {
      if (answered <= number) {
        ++verdict_.repeated;  // contiguous up to `number`: the next one is checked against it
        continue;
      }
      std::string expected;
      while (number < answered && number < session.messages.size()) {
        ++number;
        expected = apply(trip, session, number, number == answered);
      }
      if (number != answered || expected != text) {
        violation(fmt::format("answer {} is \"{}\" instead of \"{}\"", answered, text, expected));
        return;
      }
      ++verdict_.answers;
    }
    for (++number; number <= session.messages.size(); ++number) {
      verdict_.unanswered += session.dead.contains(number) ? 0U : 1U;
    }
  }

 private:
  // A message before the answered one must be in the dead-letter topic, and the answered one not.
  std::string apply(Trip& trip, const Session& session, std::uint64_t number, bool is_answered) {
    const bool is_dead = session.dead.contains(number);
    if (is_dead == is_answered) {
      violation(fmt::format("message {} was {}", number,
                            is_dead ? "answered and is a dead letter too" : "skipped"));
    }
    if (is_dead && !is_answered) {
      return {};
    }
    const Result<std::string> said = answer(trip, session.messages[number - 1]);
    return said.ok() ? *said : said.error().message();
  }
  void violation(const std::string& what) {
    if (verdict_.violations++ == 0) {
      verdict_.first_violation = fmt::format("session {}: {}", *name_, what);
    }
  }

  Verdict& verdict_;
  const std::string* name_ = nullptr;
};

}  // namespace

Result<Verdict> check(Backend& log, const CheckedTopics& topics) {
  Verdict verdict;
  Sessions sessions;
  WEIR_TRY(read(log, topics.messages, topics, sessions, [&](Session& session, const Line& line) {
    if (line.number == session.messages.size() + 1) {
      session.messages.emplace_back(line.text);
    } else if (verdict.violations++ == 0) {
      verdict.first_violation = fmt::format("message {} was sent out of order", line.number);
    }
  }));
  WEIR_TRY(read(log, topics.answers, topics, sessions, [](Session& session, const Line& line) {
    session.answers.emplace_back(line.number, line.text);
  }));
  WEIR_TRY(read(log, topics.dead_letters, topics, sessions,
                [](Session& session, const Line& line) { session.dead.insert(line.number); }));
  Judge judge(verdict);
  for (const auto& [name, session] : sessions) {
    judge.judge(name, session);
  }
  verdict.sessions = sessions.size();
  return verdict;
}

}  // namespace weir::chat_sessions
