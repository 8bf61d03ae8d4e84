#pragma once

#include "log/coordinator/offsets_codec.h"
#include "log/partition/partition.h"

#include <weir/runtime/backend.h>
#include <weir/runtime/thread_annotations.h>

#include <map>
#include <memory>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace weir::log {

inline constexpr std::string_view kOffsetsTopic = "__consumer_offsets";

// What the coordinator needs from the directory above it.
class OffsetsTopic {
 public:
  virtual ~OffsetsTopic() = default;
  // Number of partitions of `__consumer_offsets`; 0 when the topic does not exist yet.
  virtual std::int32_t partition_count() = 0;
  // Makes the topic if needed; afterwards partition_count() > 0.
  virtual Status ensure_exists() = 0;
  virtual Result<std::shared_ptr<Partition>> open(PartitionId partition) = 0;
  // Current id of a topic; zero when it does not exist.
  virtual Uuid topic_id(const std::string& topic) = 0;
};

// Committed offsets of all groups, kept in `__consumer_offsets` in Kafka's record format. A
// partition of that topic is read when the first group in it is asked for.
//
// An offset counts only for the topic id it was committed under, so that a topic that was deleted
// and made again is read from its start even when the deletion was cut short by a crash.
//
// Threading: thread-safe.
class GroupOffsets {
 public:
  GroupOffsets(OffsetsTopic& topic, const Clock& clock) : topic_(topic), clock_(clock) {}

  // Durable when ok; all or nothing (one batch).
  // Errors: kUnknownTopic, kInvalidArgument (metadata over 4,096 bytes), kNoSpace, kIo, kTimedOut.
  Status commit(const std::string& group,
                std::span<const std::pair<TopicPartition, CommittedOffset>> offsets);
  // `require_stable`: kUnstableOffset (retriable) while an open transaction may change one of them
  // (KIP-447).
  Result<std::vector<std::optional<CommittedOffset>>> committed(
      const std::string& group, std::span<const TopicPartition> partitions,
      bool require_stable = false);

  // --- Offsets in a transaction (TxnOffsetCommit); transactional_offsets.cc

  // The partition of `__consumer_offsets` that has the group; makes the topic if needed.
  Result<TopicPartition> partition_of(const std::string& group);
  // They count from the commit marker of the producer in partition_of(group) on. Appended when ok;
  // durable with the marker, which is written behind them. Requires: that partition was added to
  // the transaction. Errors: as commit(); kFenced (the producer's epoch is over).
  Status commit_in_transaction(const std::string& group, ProducerId producer, ProducerEpoch epoch,
                               std::span<const PartitionOffset> offsets);
  // The producer's marker was appended to that partition, below `end`: it decides what was written
  // since the one before it, once it is durable. Both may be told late and in any order of the
  // producers, but a marker before the producer's next transaction begins.
  void note_marker(PartitionId index, ProducerId producer, bool commit, Offset end);
  void on_marker_durable(PartitionId index, ProducerId producer, Offset end);

  // Groups with offsets that count, in the order of their bytes. Reads the whole topic.
  Result<std::vector<std::string>> groups();
  // Every offset of a group that counts, by partition.
  Result<std::vector<PartitionOffset>> all_committed(const std::string& group);
  // Writes tombstones for these offsets of a group; durable when ok, all or nothing (one batch).
  // What a transaction that is open has set so far goes, too, as in Kafka. Partitions without a
  // committed offset are passed over. Errors: kNoSpace, kIo, kTimedOut.
  Status forget(const std::string& group, std::span<const TopicPartition> partitions);
  // One offset as it is stored, whether it counts or not.
  struct Stored {
    TopicPartition partition;
    Offset offset;
    Timestamp commit_timestamp = 0;
    bool is_pending = false;  // a transaction that is open sets it, now or for the first time
  };
  Result<std::vector<Stored>> stored(const std::string& group);
  // Groups with anything stored. Reads the whole topic.
  Result<std::vector<std::string>> stored_groups();
  // The group has a record of its own, which the first commit then does not write. false: it had
  // one already. Errors: kCorrupt, kIo.
  Result<bool> note_group(const std::string& group);
  // The opposite, when its record was deleted.
  void forget_group(const std::string& group);
  // Writes tombstones for every group's offsets of a topic that was deleted. Commits wait
  // meanwhile, so that none for a new topic of that name stands before its tombstone.
  Status forget_topic(const std::string& topic, const Uuid& id);
  // Read-only processes: what was committed since is read again at the next question.
  void invalidate();

 private:
  struct Entry {
    OffsetValue value;
    Offset written_at;  // in __consumer_offsets: the later record wins
  };
  using Group = std::map<TopicPartition, Entry>;
  struct PendingOffset {
    std::string group;
    TopicPartition partition;
    Entry entry;  // written_at is kOffsetMax until its append is answered
    std::uint64_t append = 0;
  };
  struct Marker {
    Offset end;
    bool commit = false;
    bool is_durable = false;
  };
  // Transactions of one producer that are not over: the next may have begun before the marker of
  // the last is durable.
  struct Pending {
    std::vector<PendingOffset> offsets;
    std::vector<Marker> markers;  // in the order of the log; an offset is of the first behind it
  };
  struct Shard {
    std::shared_ptr<Partition> partition;
    Offset next_offset;  // replayed up to here
    std::map<std::string, Group> groups;
    std::map<ProducerId, Pending> pending;
    std::set<std::string> known_groups;  // a group record exists, or is being written
  };

  // Reads the partition if that was not done yet. Requires: the topic exists.
  Result<Shard*> shard(PartitionId index) WEIR_REQUIRES(mutex_);
  // A commit is on its way to the log; forget_topic() waits for it.
  class Appending {
   public:
    explicit Appending(GroupOffsets& offsets) : offsets_(offsets) { offsets_.begin_append(); }
    ~Appending() { offsets_.end_append(); }
    Appending(const Appending&) = delete;
    Appending& operator=(const Appending&) = delete;

   private:
    GroupOffsets& offsets_;
  };
  void begin_append() WEIR_EXCLUDES(mutex_);
  void end_append() WEIR_EXCLUDES(mutex_);
  Status forget_topic_in(PartitionId index, const std::string& topic, const Uuid& id)
      WEIR_EXCLUDES(mutex_);
  // Null: the topic does not exist.
  Result<Shard*> shard_of(const std::string& group) WEIR_REQUIRES(mutex_);
  static Status replay(Shard& shard, const RecordView& record);
  static Status replay_pending(Shard& shard, ProducerId producer, const RecordView& record);
  static Status replay_marker(Shard& shard, ProducerId producer, const RecordView& record);
  static void settle(Shard& shard, ProducerId producer);
  static void on_append_answered(Shard& shard, ProducerId producer, std::uint64_t append,
                                 std::optional<Offset> written_at);
  static bool is_pending(const Shard& shard, const std::string& group,
                         const TopicPartition& partition);
  // What was written below `before`.
  static void drop_pending(Shard& shard, const std::string& group, const TopicPartition& partition,
                           Offset before);
  // Values for the records of a commit. Errors: kUnknownTopic, kInvalidArgument.
  Result<std::vector<OffsetValue>> values_of(const std::string& group,
                                             std::span<const PartitionOffset> offsets,
                                             Timestamp now);
  static Status replay_to_end(Shard& shard);
  // Whether it was committed under the topic's present id.
  bool counts(const TopicPartition& partition, const Entry& entry) const;

  OffsetsTopic& topic_;
  const Clock& clock_;
  Mutex mutex_;
  std::map<PartitionId, Shard> shards_ WEIR_GUARDED_BY(mutex_);
  std::uint64_t last_append_ WEIR_GUARDED_BY(mutex_) = 0;
  CondVar changed_;
  std::size_t appending_ WEIR_GUARDED_BY(mutex_) = 0;
  bool forgetting_ WEIR_GUARDED_BY(mutex_) = false;  // forget_topic()
};

}  // namespace weir::log
