#pragma once

#include "runtime/dispatch/dispatcher.h"
#include "runtime/lane/lane_shard.h"

#include <weir/runtime/lanes.h>

#include <cstdint>
#include <deque>
#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace weir::internal {

// One record of a test's log: the `number`th of its session (from 1).
struct TestRecord {
  Offset offset;
  std::string session;  // empty: no key
  std::uint64_t number = 0;
};

// A partition's log as a test writes it, with holes wherever it likes.
struct TestLog {
  std::vector<TestRecord> records;
  Offset end;  // behind records, markers and holes

  void add(std::string session, std::uint64_t number, std::int64_t hole = 0) {
    records.push_back({end.plus(hole), std::move(session), number});
    end = end.plus(hole + 1);
  }
  void add_marker() { end = end.next(); }
};

// The records of `log` from `position` on, at most `records_max`, as a source would give them.
RecordBlock make_block(const TestLog& log, Offset position, std::size_t records_max);

// The number that make_block() wrote into the record.
std::uint64_t number_of(const RecordView& record);

// A dispatcher and its workers' lanes, joined by queues that the test moves one message at a time.
struct Engine {
  Engine(const DispatchOptions& dispatch, const LaneOptions& lanes, std::uint64_t seed);

  Dispatcher dispatcher;
  std::vector<std::unique_ptr<LaneShard>> shards;
  std::vector<std::deque<ShardMessage>> to_shard;
  std::vector<std::deque<ShardReport>> to_dispatcher;
  std::vector<std::vector<DeadLetter>> letters;  // by worker, not answered yet
  MonotonicTime now{std::chrono::seconds(1)};

  void take_messages();
  // False when nothing was there.
  bool move_message(std::uint32_t worker);
  void take_report(std::uint32_t worker);
  bool move_report(std::uint32_t worker);
  // Moves everything that is under way until nothing is.
  void settle();
  bool start(std::uint32_t worker, Attempt& attempt) { return shards[worker]->start(attempt, now); }
  void finish(std::uint32_t worker, const Attempt& attempt, Outcome outcome) {
    shards[worker]->finish(attempt.run, std::move(outcome), now);
  }
  // Answers every letter.
  void answer_letters(bool ok);
  void advance(Duration by);
};

// One worker, one partition, whose records a test writes and whose handler it plays.
class LanesTest {
 public:
  explicit LanesTest(LaneOptions lanes = {}, DispatchOptions dispatch = {})
      : engine(dispatch, lanes, 1) {}

  Engine engine;
  TestLog log;
  Offset position;
  CommittedOffset committed{Offset(0), kNoLeaderEpoch, ""};

  void assign();
  // Offers what is in the log and not fetched yet, in blocks of `block_records`.
  void fetch(std::size_t block_records = 1'000);
  // Appends one record for each session and fetches them.
  void feed(const std::vector<std::string>& sessions);
  std::optional<Attempt> start();
  // "session/number" of each, started and finished with `ok` until nothing is ready.
  std::vector<std::string> run_all();
  void finish(const Attempt& attempt, Outcome outcome) {
    engine.finish(0, attempt, std::move(outcome));
    engine.settle();
  }
  void fail(const Attempt& attempt) {
    finish(attempt, Outcome::retry(Error(Errc::kTimedOut, "not now")));
  }
  Offset commit_value() { return engine.dispatcher.tracker(0).commit_value(); }
  // Commits and remembers what was written.
  void commit();
  const ShardCounters& counters() { return engine.shards[0]->counters(); }

 private:
  std::vector<std::uint64_t> numbers_;
  std::vector<std::string> sessions_;
};

std::string name_of(const Attempt& attempt);

}  // namespace weir::internal
