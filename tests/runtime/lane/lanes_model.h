#pragma once

#include "tests/runtime/lane/lanes_world.h"

#include <weir/runtime/rng.h>

#include <map>
#include <memory>
#include <set>
#include <string>
#include <utility>
#include <vector>

// Random interleavings of everything that can happen to lanes, with the oracle of session-workers
// 2.3, the checker of 2.11 and the invariants R1 to R3 of 2.6 after every step.

namespace weir::internal {

inline constexpr std::uint32_t kPartitions = 3;
inline constexpr int kSessions = 7;  // a partition
// The empty name is the session of records without a key.
inline std::string session_name(int session) {
  return session == 1 ? "" : "session-of-a-length-" + std::to_string(session);
}

// What a session's outside effects look like (2.11): 1..k, after a hand-over j..k again (j <= k +
// 1), never a hole, never back.
struct SessionHistory {
  std::uint64_t written = 0;   // records in the log
  std::uint64_t seen = 0;      // the highest effect
  std::uint64_t expected = 1;  // the next effect
  bool may_repeat = false;     // there was a hand-over since the last effect
};

struct ModelPartition {
  TestLog log;
  CommittedOffset committed{Offset(0), kNoLeaderEpoch, ""};
  Offset position;
  Offset assigned_at;
  Offset last_commit_value;
  bool is_paused = false;
  bool is_draining = false;
  std::set<Offset> open;      // offered in this epoch, not terminal
  std::set<Offset> finished;  // terminal in some epoch
  std::map<std::string, SessionHistory> sessions;
};

struct Run {
  std::uint32_t worker = 0;
  Attempt attempt;
  std::string session;
  bool is_terminal = false;  // its gap was skipped
};

class LanesModel {
 public:
  explicit LanesModel(std::uint64_t seed) : rng_(seed) { start_engine(true); }

  void step();
  void finish_everything();
  const std::string& problem() const { return problem_; }
  std::uint64_t count(const char* what) { return counts_[what]; }
  std::map<std::string, std::uint64_t>& counts() { return counts_; }

 private:
  void start_engine(bool is_first);
  void wrong(const std::string& what) { problem_ += (problem_.empty() ? "" : "; ") + what; }
  ModelPartition& any_partition(std::uint32_t* number) {
    *number = static_cast<std::uint32_t>(rng_.below(kPartitions));
    return partitions_[*number];
  }
  std::uint32_t any_worker() {
    return static_cast<std::uint32_t>(rng_.below(engine_->shards.size()));
  }
  bool is_current(std::uint32_t partition, std::uint32_t epoch) const {
    return engine_->dispatcher.is_assigned(partition) &&
           engine_->dispatcher.epoch(partition) == epoch;
  }
  void append();
  void fetch(std::uint32_t number, std::size_t records_max);
  void start(std::uint32_t worker);
  void finish(std::size_t index, Outcome::Kind kind);
  void answer_letter(std::uint32_t worker, std::size_t index, bool ok);
  void begin_commit();
  void finish_commit(CommitResult result);
  void assign(std::uint32_t number);
  void drain(std::uint32_t number);
  void release(std::uint32_t number);
  void crash();
  void effect(std::uint32_t partition, const RecordView& record, const std::string& session);
  void check();
  void check_partition(std::uint32_t number);
  Outcome::Kind any_outcome();

  Rng rng_;
  DispatchOptions dispatch_;
  LaneOptions lanes_;
  bool has_slow_handlers_ = false;
  std::size_t other_metadata_ = 0;  // bytes beside the lane map, so that it must shrink (E2)
  std::unique_ptr<Engine> engine_;
  std::vector<ModelPartition> partitions_{kPartitions};
  std::vector<Run> runs_;
  std::multiset<std::pair<std::uint32_t, std::string>> running_;
  std::vector<PartitionCommit> in_flight_;
  std::map<std::string, std::uint64_t> counts_;
  std::string problem_;
};

}  // namespace weir::internal
