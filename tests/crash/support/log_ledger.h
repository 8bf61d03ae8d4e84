#pragma once

#include "log/broker/log_directory.h"

#include <weir/runtime/file_system.h>

#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace weir::crash {

// How a life of the log ended.
enum class Ending {
  kPowerCut,  // what was not durable may be gone
  kKilled,    // kill -9: the page cache survives
  kClosed,    // a clean close, whatever came then
};

// A record's value by its name "SIZE/PRODUCER/NUMBER": the name, then SIZE bytes that depend on it.
std::string value_of(std::string_view name);
std::string record_name(std::size_t size, int producer, std::int64_t number);

// What the embedded log promised to producers, consumers and administrators, kept outside of it,
// and the comparison of a recovered directory with it. A difference fails the running test.
//
// Checked: the invariants of one node among P5 to P8, P10, P12, P15 and S1 to S3.
//   - Below the durable end of a partition (acknowledged or read while the topic was `fsync`) all
//     is there, at its offset, whole. After kill -9 or a clean close so is everything appended.
//   - Behind it stands what was appended, in its order, up to some offset: nothing else, nothing
//     twice, nothing of a send that was refused, nothing that an earlier recovery did not find.
//   - Offsets and leader epochs go on from batch to batch; the epochs' ends agree with them; the
//     high watermark is the log end; the log start is the one last asked for.
//   - Topics, their ids, partitions and durability are those that were answered for; a deleted
//     topic and its folders are gone for good, and so are its committed offsets.
// What was under way at the end (a send, one change of a topic, a commit) happened wholly or not.
//
// Threading: confined to one thread.
class LogLedger {
 public:
  // --- changes of topics, one at a time: begin(), then done() or refused(); neither when the
  // process ended before the answer
  struct Change {
    enum class Kind { kCreate, kDelete, kGrow, kAlter, kDeleteRecords };
    Kind kind = Kind::kCreate;
    std::string topic;
    std::int32_t partitions = 0;  // kCreate, kGrow: all of them
    bool fsync = true;            // kCreate, kAlter
    TopicPartition partition;     // kDeleteRecords
    Offset before;                // kDeleteRecords
  };
  void begin(Change change);
  void done(const Uuid& id = {});  // kCreate: the new topic's
  void refused() { change_.reset(); }

  // --- records, by name
  void trying(const TopicPartition& partition, const std::vector<std::string>& names);
  // They stand from `base` on. `epoch`: of their batch; kNoLeaderEpoch when nobody said.
  void appended(const TopicPartition& partition, Offset base, LeaderEpoch epoch,
                const std::vector<std::string>& names);
  // With an error that promises that they were not appended.
  void refused(const TopicPartition& partition, const std::vector<std::string>& names);
  // Everything below `end` was acknowledged or can be read. No effect on a `memory` topic.
  void durable(const TopicPartition& partition, Offset end);
  // A consumer got it.
  void saw(const TopicPartition& partition, Offset offset, const std::string& name);

  // --- committed offsets, one commit at a time for each
  using Commit = std::pair<std::string, TopicPartition>;  // group, partition
  void committing(const Commit& commit, Offset offset);
  void committed(const Commit& commit);

  // A clean close has made everything durable.
  void closed();

  // --- after the start that followed an end; `log` is recovered. What is found is what the next
  // life begins with.
  void check(log::LogDirectory& log, FileSystem& files, Ending ending);

  // --- questions
  struct Partition {
    std::map<std::int64_t, std::string> known;  // names by offset
    std::set<std::string> tried;                // sent, outcome unknown
    std::int64_t durable_end = 0;
    std::int64_t start = 0;
    LeaderEpoch last_epoch = kNoLeaderEpoch;  // of the last batch
    bool epoch_must_rise = false;             // records survived an unclean end
    std::int64_t end() const { return known.empty() ? start : known.rbegin()->first + 1; }
  };
  struct Topic {
    Uuid id;  // zero until a check has seen it
    bool fsync = true;
    std::vector<Partition> partitions;
  };
  const std::map<std::string, Topic>& topics() const { return topics_; }
  // Null when there is no such partition.
  const Partition* find(const TopicPartition& partition) const;
  std::uint64_t records_checked() const { return records_checked_; }

 private:
  Partition* get(const TopicPartition& partition);
  void apply(const Change& change);
  bool is_open(Change::Kind kind, const std::string& topic) const;
  void check_topics(log::LogDirectory& log);
  void check_topic(const TopicDescription& found);
  void forget(const std::string& topic);
  void check_folders(FileSystem& files, const std::string& log_folder) const;
  void check_partition(log::LogDirectory& log, const TopicPartition& name, Ending ending);
  void check_start(const TopicPartition& name, Partition& known, const PartitionOffsets& found);
  void check_commits(log::LogDirectory& log);

  std::map<std::string, Topic> topics_;
  std::set<Uuid> deleted_;
  std::optional<Change> change_;
  struct Committed {
    std::optional<Offset> offset;
    std::optional<Offset> pending;
  };
  std::map<Commit, Committed> commits_;
  std::uint64_t records_checked_ = 0;
};

}  // namespace weir::crash
