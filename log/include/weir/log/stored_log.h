#pragma once

#include <weir/log/isolation_level.h>
#include <weir/runtime/backend.h>
#include <weir/runtime/file_system.h>

#include <memory>
#include <string>
#include <vector>

namespace weir::log {

struct StoredLogOptions {
  FileSystem* files = nullptr;  // null: the machine's disk
  IsolationLevel isolation = IsolationLevel::kReadCommitted;
};

// Offsets [from, to) that a folder should hold and does not give.
struct LostOffsets {
  Offset from;
  Offset to;
  std::string what;  // file, position, cause
};

// What was found when a partition of a folder was read through.
struct StoredPartitionReport {
  TopicPartition name;
  std::string folder;                     // empty: the topic has this partition, the folder has not
  PartitionOffsets offsets;               // as Admin::offsets()
  std::uint64_t bytes = 0;                // of its segment files
  std::vector<LostOffsets> lost;          // in offset order
  std::string tail;                       // what stands behind the last whole batch; empty: nothing
  std::vector<std::string> transactions;  // those whose end is unknown, and what was made of them
};

// A folder that a one-node Apache Kafka, Kafka's tools or Weir left behind, as a Backend that only
// reads: nothing is imported, nothing is ever written into it. The folder is one of
//   - a data directory (Kafka's log.dirs, the `log` folder of Weir's): topics, ids and settings are
//     those of its metadata log, `__cluster_metadata-0`, from its newest whole snapshot on.
//     Metadata records of a type that is not known are passed over. Partition folders of topics
//     that the metadata does not have are topics too, save those of topics that were deleted;
//   - any folder with partition folders: topics by the names of the folders, ids from
//     partition.metadata;
//   - one partition folder, under any name: TOPIC-N is that partition, another name is partition 0
//     of a topic of that name.
// A topic without an id gets one that is made from its name and its first batches: the same for
// every copy. Nothing but the .log files is needed; indexes, snapshots and checkpoint files may be
// missing, empty or wrong. What a crash left of a compaction (.swap) counts as Kafka counts it.
//
// What is served. At the first use of a partition all its bytes are read and checked, by their CRC
// too. Every intact record is served at its offset. Damage and missing segments are stepped over
// and are in report(); behind the last whole batch the log ends. Nothing is served below the log
// start of log-start-offset-checkpoint. A batch with a right CRC whose records make no sense
// answers kCorrupt: seek behind it. Message sets of magic 0 and 1 are refused: the partition
// answers kUnsupported.
//
// Transactions. With kReadCommitted, aborted records are left out, by the markers in the log and by
// .txnindex where a marker is lost, and the log ends at the first record of a transaction that is
// still open: that offset is what high_watermark and last_stable say, so that a reader that waits
// for the high watermark comes to an end. A transaction whose end may be lost in damage does not
// end the log; its records are served and report() names it. With kReadUncommitted everything is
// served, and SourceOptions::read_committed asks for the same per source.
//
// Time. A folder is read as of the first use of each partition; what a running process writes
// later is not seen, a batch that is being written then is not either. Open it again for more.
//
// Threading:  thread-safe.
// Ownership:  outlives every source it made.
// Bounds:     per open partition: 48 bytes a MiB of log, an entry an aborted transaction and a
//             damaged range, one descriptor; batches of at most 256 MiB.
// Errors:     whatever would change something answers kReadOnly, groups do too.
class StoredLog : public Backend {
 public:
  // Errors: kNotFound, kInvalidArgument (no partition folder is there; says what to name), kIo.
  static Result<std::unique_ptr<StoredLog>> open(const std::string& folder,
                                                 StoredLogOptions options = {});
  ~StoredLog() override;

  Admin& admin() override;
  Result<std::unique_ptr<RecordSource>> make_source(const SourceOptions& options) override;
  Result<std::unique_ptr<RecordSink>> make_sink(const SinkOptions& options) override;
  Result<std::unique_ptr<Group>> make_group(const std::string& group_id) override;

  // Reads the partition through if that was not done yet. Errors: kUnknownTopic, kUnsupported
  // (magic 0 and 1), kIo.
  Result<StoredPartitionReport> report(const TopicPartition& partition);
  // What was odd about the folder as a whole, for people: folders that were left out, metadata that
  // cannot be read, no clean end.
  const std::vector<std::string>& notes() const;
  // A data directory without the marker of a clean end: a process uses it, or died.
  bool may_be_in_use() const;

 private:
  struct State;
  explicit StoredLog(std::unique_ptr<State> state);
  std::unique_ptr<State> state_;
};

// `own`, but the named topics are read from `stored`: an application keeps its outputs, internal
// topics and committed offsets in `own` and takes its input from the folder. Topics of the same
// names in `own` are not seen. Offsets of the named topics are committed in `own` for a stand-in,
// an empty topic that is made there by the first make_group(): its name has the stored topic's id,
// so that a restart goes on where it was and another folder is read from its start.
//
// Threading, ownership: as Backend; outlived by `own` and `stored`.
// Errors: kUnknownTopic (the folder has no such topic; names those it has).
Result<std::unique_ptr<Backend>> read_topics_from(StoredLog& stored,
                                                  std::vector<std::string> topics, Backend& own);

}  // namespace weir::log
