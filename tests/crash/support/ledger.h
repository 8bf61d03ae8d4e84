#pragma once

#include "tests/crash/support/word_pipeline.h"

#include <weir/runtime/backend.h>
#include <weir/runtime/file_system.h>

#include <array>
#include <cstdint>
#include <map>
#include <set>
#include <string>
#include <vector>

namespace weir::crash {

// What the pipeline promised, kept outside of it, and the comparison of a recovered log and store
// with it. A difference fails the running test.
//
// Bounds on counts. Once committed offsets are C, lines and repartition records below C are never
// processed again; what stands at or above C when the process dies may be processed once more. So
// after any number of crashes, for each word:
//     true count <= count <= true count + sum over crashes of its occurrences at or above C.
//
// Threading: confined to one thread.
class Ledger {
 public:
  struct Options {
    std::string state_dir;
    // Records of the repartition topic are deleted once they are committed, so that counts can be
    // compared only when everything is drained.
    bool purges = false;
  };
  explicit Ledger(Options options) : options_(std::move(options)) {}

  // --- what was promised
  void acknowledged(std::int64_t number);
  void committed(const TopicPartition& partition, Offset offset);

  // --- after a crash, before the application runs again; `log` is recovered
  // `whole`: reads the input topic from its start, else only what is new.
  void check_after_crash(Backend& log, FileSystem& files, bool whole);
  // --- beside the running application, through a log opened for reading
  void check_beside(Backend& log, FileSystem& files);
  // --- after a drain and a clean stop
  void check_drained(Backend& log, FileSystem& files);

  // Final counts as the store has them.
  static Counts read_store(Backend& log, FileSystem& files, const std::string& state_dir);

  std::size_t acknowledged_lines() const { return acknowledged_lines_; }
  std::size_t lines() const { return lines_[0].size() + lines_[1].size(); }
  // Of check_drained(): how much too high all counts are together, and how much was allowed.
  std::int64_t repeated() const { return repeated_; }
  std::int64_t allowed() const { return allowed_; }

 private:
  struct Read {
    Offset offset;
    std::string key;
    std::string value;
  };
  static void take_records(const RecordBlock& block, Offset from, std::vector<Read>& records);
  static std::vector<Read> read(Backend& log, const TopicPartition& partition, Offset from);
  std::map<TopicPartition, Offset> read_committed(Backend& log);
  void check_lines(Backend& log, bool whole);
  void take_line(std::size_t partition, const Read& record);
  void check_repartition(Backend& log, const std::map<TopicPartition, Offset>& offsets);
  void allow_repetition(Backend& log, const std::map<TopicPartition, Offset>& offsets);

  const Options options_;
  std::size_t acknowledged_lines_ = 0;
  std::set<std::int64_t> unseen_;  // acknowledged, not found in the log yet
  std::map<TopicPartition, Offset> committed_;
  std::array<std::vector<std::int64_t>, kPartitions> lines_;  // numbers by offset
  std::set<std::int64_t> seen_;
  Counts true_counts_;
  Counts committed_line_counts_;  // of the lines below `lines_settled_`
  std::array<std::size_t, kPartitions> lines_settled_{};
  std::array<std::vector<std::string>, kPartitions> repartitioned_;  // words by offset
  Counts repartition_sent_;                                          // in the topic
  Counts repartition_settled_;  // of the words below `words_settled_`
  std::array<std::size_t, kPartitions> words_settled_{};
  // Per word: how often it may have been repeated, in all; sent to the repartition topic again;
  // counted again.
  Counts allowance_;
  Counts resent_;
  Counts counted_twice_;
  Counts last_store_;  // as of the last crash
  std::int64_t repeated_ = 0;
  std::int64_t allowed_ = 0;
};

}  // namespace weir::crash
