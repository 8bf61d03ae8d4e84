#pragma once

#include <weir/runtime/backend.h>

#include <cstdint>
#include <functional>
#include <map>
#include <set>
#include <string>
#include <vector>

namespace weir::crash {

// What is known of the sessions between crashes, and the checker of session-workers 2.11: per
// session no inversion and no skip; an answer is repeated only behind a restart, in order, and
// never below what was committed before it; the count in the state is exact; everything below a
// committed offset has its answer or its dead letter. Reports by gtest.
class SessionLedger {
 public:
  // Reads what the last process left; nobody writes meanwhile.
  void check_after_crash(Backend& log);
  // And now everything has its answer.
  void check_drained(Backend& log);

  std::uint64_t messages() const { return messages_; }
  std::uint64_t answers() const { return answers_; }
  std::uint64_t repeated() const { return repeated_; }
  std::uint64_t letters() const { return letters_; }

 private:
  struct Session {
    std::int64_t sent = 0;
    std::int64_t seen = 0;       // largest number answered
    std::int64_t committed = 0;  // largest number below the offset committed before this process
    std::int64_t at = -1;        // number of the last answer of this process; -1: none yet
    std::map<std::int64_t, std::int64_t> counts;  // of the answers that may be repeated
    std::set<std::int64_t> dead;
  };
  struct Sent {
    std::string session;
    std::int64_t number = 0;
  };

  void read_new(Backend& log, const std::string& topic,
                const std::function<void(std::int32_t partition, const RecordView&)>& take);
  void take_answer(const std::string& name, std::int64_t number, std::int64_t count);
  void check_committed(Backend& log);
  // The first number behind `number` that can succeed.
  static std::int64_t behind(const std::string& name, const Session& session, std::int64_t number);

  std::map<TopicPartition, Offset> positions_;
  std::map<std::string, Session> sessions_;
  std::map<std::int32_t, std::vector<Sent>> sent_;  // by partition and offset
  std::map<std::int32_t, std::int64_t> committed_;  // offsets
  std::uint64_t messages_ = 0;
  std::uint64_t answers_ = 0;
  std::uint64_t repeated_ = 0;
  std::uint64_t letters_ = 0;
};

}  // namespace weir::crash
