#pragma once

#include <weir/runtime/clock.h>
#include <weir/runtime/compression.h>
#include <weir/runtime/record.h>

#include <chrono>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

// The port between programs and a log: our embedded log, memory (testing/memory_backend.h), later
// our cluster and Apache Kafka. Four small interfaces; `apps` chooses the backend, nothing else
// knows which it is.

namespace weir {

// Settings by Kafka's names ("cleanup.policy"), as text.
using TopicConfig = std::map<std::string, std::string>;

struct TopicSpec {
  std::string name;
  std::int32_t partitions = 1;
  TopicConfig config;
};

struct TopicDescription {
  std::string name;
  Uuid id;  // zero when the backend has none
  std::int32_t partitions = 0;
  bool internal = false;
  TopicConfig config;  // only what differs from the defaults
};

// Where the value in force of a setting comes from.
enum class SettingSource {
  kTopic,    // set on the topic, also to what the default says
  kDefault,  // not set
};

struct TopicSetting {
  std::string name;
  std::string value;          // in force
  std::string default_value;  // empty when the backend does not know the setting
  SettingSource source = SettingSource::kDefault;
  std::string doc;
};

// What grow_topic() does with a topic that is ordered by key (weir.ordered=true).
enum class OrderedGrowth { kRefuse, kForce };

enum class OffsetSpec {
  kEarliest,    // log start offset
  kLatest,      // high watermark
  kLastStable,  // last stable offset
  kLogEnd,      // log end offset, also what is not acknowledged yet
};

struct PartitionOffsets {
  Offset log_start;
  Offset high_watermark;
  Offset last_stable;
  Offset log_end;
  LeaderEpoch leader_epoch = kNoLeaderEpoch;
};

struct CommittedOffset {
  Offset offset;  // next offset to read
  LeaderEpoch leader_epoch = kNoLeaderEpoch;
  std::string metadata;  // at most 4,096 bytes (Kafka offset.metadata.max.bytes)
  friend bool operator==(const CommittedOffset&, const CommittedOffset&) = default;
};

using PartitionOffset = std::pair<TopicPartition, CommittedOffset>;

struct GroupMemberDescription {
  std::string member_id;
  std::string instance_id;  // empty: none
  std::string client_id;
  std::string host;
  std::vector<TopicPartition> partitions;
};

struct GroupDescription {
  std::string group_id;
  std::string state;          // Kafka's: Empty, PreparingRebalance, CompletingRebalance, Stable
  std::string protocol_type;  // empty: it only has offsets
  std::string assignor;
  std::int32_t generation = 0;
  std::vector<GroupMemberDescription> members;
};

// Topics and what can be asked about their partitions. "Unknown" is std::nullopt: a backend may
// lack topic ids, epochs or the tombstone horizon. Threading: thread-safe. Every call may block on
// disk or network.
class Admin {
 public:
  virtual ~Admin() = default;
  // Durable when ok. Errors: kTopicExists, kInvalidTopic, kInvalidConfig, kReadOnly, kNoSpace.
  virtual Result<TopicDescription> create_topic(const TopicSpec& spec) = 0;
  virtual Result<std::vector<TopicDescription>> list_topics() = 0;
  // Errors: kUnknownTopic.
  virtual Result<TopicDescription> describe_topic(const std::string& name) = 0;
  // Deletes the data and every group's offsets for it. Errors: kUnknownTopic.
  virtual Status delete_topic(const std::string& name) = 0;
  // Errors: kUnknownTopic.
  virtual Result<PartitionOffsets> offsets(const TopicPartition& partition) = 0;
  // First offset whose timestamp is at or after `time`; nullopt when there is none.
  virtual Result<std::optional<Offset>> offset_for_time(const TopicPartition& partition,
                                                        Timestamp time) = 0;
  // End offset of the largest epoch <= `epoch`; nullopt when unknown (KIP-101).
  virtual Result<std::optional<Offset>> epoch_end_offset(const TopicPartition& partition,
                                                         LeaderEpoch epoch) = 0;
  // Below this offset tombstones may have been cleaned away; nullopt when unknown.
  virtual Result<std::optional<Offset>> tombstone_horizon(const TopicPartition& partition) = 0;
  // Moves the log start offset up to `before`, or to the high watermark for kNoOffset (Kafka's -1);
  // a start that is higher already stays. Durable when ok. Errors: kUnknownTopic, kOffsetOutOfRange
  // (above the high watermark, or negative), kInvalidConfig (the topic is compacted only).
  virtual Status delete_records(const TopicPartition& partition, Offset before) = 0;
  // Adds partitions up to the count `partitions`; durable when ok, all or none. Records stay where
  // they are, so a key's next records may go to another partition than its former ones: a topic
  // with weir.ordered=true refuses unless it is forced. Groups are told of new partitions, sources
  // can have them assigned at once and go on with those they have. A sink's handle keeps the count
  // of its opening: open the topic again.
  // Errors: kUnknownTopic, kInvalidTopic (the log's own), kInvalidArgument (not more than there
  // are, too many, ordered and not forced).
  virtual Status grow_topic(const std::string& name, std::int32_t partitions,
                            OrderedGrowth ordered) = 0;
  Status grow_topic(const std::string& name, std::int32_t partitions) {
    return grow_topic(name, partitions, OrderedGrowth::kRefuse);
  }
  // Sets the settings of `set` and brings those of `remove` back to their defaults (Kafka's
  // incrementalAlterConfigs with SET and DELETE). Durable when ok, and in force from the next
  // append on, also for open partitions; stored batches stay as they are. When weir.durability
  // changes, what was appended before is synced first. Removing what is not set does nothing.
  // Errors: kUnknownTopic; kInvalidConfig that lists every unknown key, bad value and key in both
  // lists. Nothing was changed then.
  virtual Status alter_topic(const std::string& name, const TopicConfig& set,
                             const std::vector<std::string>& remove) = 0;
  // Every setting that the backend knows, by name, with what is in force on this topic.
  // Errors: kUnknownTopic.
  virtual Result<std::vector<TopicSetting>> topic_settings(const std::string& name) = 0;
  // Ids of the groups that have members or committed offsets, in the order of their bytes. Offsets
  // of topics that were deleted or made anew do not count.
  virtual Result<std::vector<std::string>> list_groups() = 0;
  // All committed offsets of a group by topic and partition; empty when it has none. They are
  // changed by Group::commit(), also without join().
  virtual Result<std::vector<PartitionOffset>> group_offsets(const std::string& group) = 0;
  // Takes offsets of a group away, so that it starts there as if it had never committed; what is
  // not committed is passed over. Durable when ok; all or nothing. Errors: kReadOnly, kNoSpace,
  // kIo.
  // kLocked: a member subscribes to one of the topics; then nothing was deleted.
  virtual Status delete_group_offsets(const std::string& group,
                                      std::span<const TopicPartition> partitions) = 0;
  // State and members. Errors: kNotFound, kUnsupported (a backend that cannot tell).
  virtual Result<GroupDescription> describe_group(const std::string& group) {
    return Error(Errc::kUnsupported, "this log cannot describe group " + group);
  }
  // The group and all its offsets; durable when ok. Errors: kNotFound, kLocked (it has members),
  // kReadOnly, kUnsupported.
  virtual Status delete_group(const std::string& group) {
    return Error(Errc::kUnsupported, "this log cannot delete group " + group);
  }
};

// Opaque proof of membership, for transactions.
struct GroupMetadata {
  std::string group_id;
  std::int32_t generation = -1;
  std::string member_id;
  std::string instance_id = {};  // group.instance.id; empty: none
};

// Called from Group::poll on the caller's thread.
class GroupListener {
 public:
  virtual ~GroupListener() = default;
  virtual void on_assigned(std::span<const TopicPartition> partitions) = 0;
  virtual void on_revoked(std::span<const TopicPartition> partitions) = 0;
  // Another member already owns them: commit nothing.
  virtual void on_lost(std::span<const TopicPartition> partitions) = 0;
};

// An assignor of the caller's own, run by the member that the group chose for its leader. Members
// without an assignor of this name cannot join. Threading: called from Group::poll.
class GroupAssignor {
 public:
  struct Member {
    std::string member_id;
    std::string instance_id;  // empty: none
    std::vector<std::string> topics;
    std::string user_data;
    std::vector<TopicPartition> owned;
  };
  struct Assigned {
    std::vector<TopicPartition> partitions;
    std::string user_data;
  };
  virtual ~GroupAssignor() = default;
  virtual std::string name() const = 0;
  // Members keep what they own while the group rebalances. assign() then gives nobody what another
  // still owns; the rebalance that follows its revocation does.
  virtual bool is_cooperative() const = 0;
  // By member id, from the partitions of every topic that exists. A partition that is given to two
  // members, to a stranger or that does not exist makes poll() answer kInvalidArgument.
  virtual std::map<std::string, Assigned> assign(const std::map<std::string, std::int32_t>& topics,
                                                 const std::vector<Member>& members) = 0;
};

// Names in brackets are Kafka's consumer settings.
struct GroupOptions {
  std::string client_id;    // client.id
  std::string instance_id;  // group.instance.id: keeps its partitions over a restart; empty: none
  // partition.assignment.strategy, the best first; empty: the backend's default. Names that only
  // the other members know keep this one out.
  std::vector<std::string> assignors;
  GroupAssignor* assignor = nullptr;  // takes the place of `assignors`; outlives the group
  Duration session_timeout = std::chrono::seconds(45);   // session.timeout.ms
  Duration max_poll_interval = std::chrono::minutes(5);  // max.poll.interval.ms
};

// Membership and committed offsets of one consumer group.
// Threading: confined to one thread at a time.
class Group {
 public:
  virtual ~Group() = default;
  // `user_data` is opaque to the backend and travels with the subscription.
  virtual Status join(std::vector<std::string> topics, std::string user_data,
                      GroupListener& listener) = 0;
  // Runs due callbacks. Returns at once when nothing is due. Errors: kFenced (another member has
  // this group.instance.id now), kInvalidConfig (a setting that the group refuses), and those of
  // the log.
  virtual Status poll() = 0;
  virtual Status leave() = 0;
  // Durable when ok. All or nothing. Errors: kFenced, kNoSpace, kIo, kUnknownTopic; kTimedOut while
  // the group rebalances: poll(), then again.
  virtual Status commit(std::span<const std::pair<TopicPartition, CommittedOffset>> offsets) = 0;
  // In the order asked; nullopt where nothing was committed.
  virtual Result<std::vector<std::optional<CommittedOffset>>> committed(
      std::span<const TopicPartition> partitions) = 0;
  // The same, but kUnstableOffset (retriable) while a transaction is open that may commit one of
  // them: for readers with read_committed, which else would read again what it read (KIP-447).
  virtual Result<std::vector<std::optional<CommittedOffset>>> committed_stable(
      std::span<const TopicPartition> partitions) {
    return committed(partitions);
  }
  virtual GroupMetadata metadata() const = 0;
  // What the leader's assignor gave this member beside its partitions.
  virtual std::string assigned_user_data() const { return {}; }
  // Called on any thread when poll() has something to do. Null: nobody. Once, before join().
  // NOLINTNEXTLINE(performance-unnecessary-value-param): an override keeps it
  virtual void set_waker(std::function<void()> /*waker*/) {}
};

// Reads partitions that the caller chose.
// Threading: confined to one thread at a time, except wakeup().
class RecordSource {
 public:
  virtual ~RecordSource() = default;
  // Replaces the assignment; index i of `partitions` names the partition from now on. A topic that
  // does not exist yet is no error: it stays silent until it is made. Positions start unset:
  // seek().
  virtual Status assign(std::vector<TopicPartition> partitions) = 0;
  virtual Status seek(std::uint32_t assignment, Offset offset) = 0;
  // Next offset to fetch.
  virtual Offset position(std::uint32_t assignment) const = 0;
  // Paused partitions return no blocks; what was fetched is not lost.
  virtual void pause(std::uint32_t assignment) = 0;
  virtual void resume(std::uint32_t assignment) = 0;
  // Whole batches below the high watermark (read_committed: below the last stable offset), round
  // robin over partitions, at most about SourceOptions::poll_bytes_max. Waits up to `timeout` for
  // the first; empty when none came. Blocks stay valid as long as the caller keeps them.
  virtual Result<std::vector<RecordBlock>> poll(Duration timeout) = 0;
  // Makes the present or next poll() return at once. Thread-safe.
  virtual void wakeup() = 0;
};

using SinkTopic = std::uint32_t;  // handle of an opened topic

struct SinkTopicInfo {
  SinkTopic handle = 0;
  std::int32_t partitions = 0;
  Uuid id;
};

struct FlushedPartition {
  SinkTopic topic = 0;
  PartitionId partition;
  Offset end_offset;  // behind the last record sent
  LeaderEpoch leader_epoch = kNoLeaderEpoch;
};

enum class TransactionOutcome { kCommitted, kAborted, kFenced, kUnknown };

// Writes records. Records of one partition keep the order of the sends.
// Threading: confined to one thread at a time.
class RecordSink {
 public:
  virtual ~RecordSink() = default;
  // Again for a topic that grew: a handle keeps the count of partitions of its opening.
  // Errors: kUnknownTopic.
  virtual Result<SinkTopicInfo> open_topic(const std::string& name) = 0;
  // Encodes the records into the partition's open batch; the bytes may be reused on return. Blocks
  // while the sink's buffer is full (buffer.memory), at most max.block.ms, then kTimedOut.
  // Errors: kRecordTooLarge (that record and those behind it were not taken), kIo, kNoSpace,
  // kUnknownTopic (deleted meanwhile). A failed append is reported by the next call, at the latest
  // by flush().
  virtual Status send(SinkTopic topic, PartitionId partition,
                      std::span<const RecordRef> records) = 0;
  // Sends open batches and waits until all that was sent is acknowledged (acks=all: below the high
  // watermark). Reports the partitions that were written since the last flush().
  virtual Result<std::vector<FlushedPartition>> flush() = 0;

  // One open transaction per sink. A backend without transactions answers kUnsupported.
  // What a transactional sink sends between begin() and end() is seen by read_committed readers all
  // together behind end(true), or never. Errors: kInvalidArgument (no transactional id; one is
  // open), kFenced (a newer sink has the transactional id: close this one).
  virtual Status begin() = 0;
  // The group's offsets count from the commit on. Errors: kFenced also when `group` is no longer
  // the member that it was.
  virtual Status send_offsets(std::span<const std::pair<TopicPartition, CommittedOffset>> offsets,
                              const GroupMetadata& group) = 0;
  // Durable with all that was sent, when committed; no flush() is needed before. An error changed
  // nothing: end() again, with false when something could not be sent. kUnknown: end() again with
  // the same wish, or begin(), finds out.
  virtual Result<TransactionOutcome> end(bool commit) = 0;
};

struct SourceOptions {
  std::size_t poll_bytes_max = 1U << 20U;
  std::size_t partition_bytes_max = 1U << 20U;  // max.partition.fetch.bytes
  bool read_committed = false;
  // Verify CRCs of what comes from disk (check.crcs).
  bool check_crcs = true;
};

struct SinkOptions {
  std::string client_id;
  std::size_t batch_bytes = 64U << 10U;           // batch.size
  std::size_t buffer_bytes_max = 32U << 20U;      // buffer.memory
  Duration block_max = std::chrono::seconds(60);  // max.block.ms
  bool acks_all = true;                           // false: acks=1, acknowledged by the append
  Compression compression;                        // compression.type and its level
  std::string transactional_id;                   // empty: none
  // transaction.timeout.ms: an open transaction is aborted after it, and its sink fenced.
  Duration transaction_timeout = std::chrono::minutes(1);
};

// A log, whichever. Threading: thread-safe. Outlives what it made.
class Backend {
 public:
  virtual ~Backend() = default;
  virtual Admin& admin() = 0;
  virtual Result<std::unique_ptr<RecordSource>> make_source(const SourceOptions& options) = 0;
  virtual Result<std::unique_ptr<RecordSink>> make_sink(const SinkOptions& options) = 0;
  virtual Result<std::unique_ptr<Group>> make_group(const std::string& group_id) = 0;
  // A member with settings of its own. A backend that knows none makes a group as above, and
  // refuses a group.instance.id and an assignor. Errors also: kInvalidConfig.
  virtual Result<std::unique_ptr<Group>> make_group_member(const std::string& group_id,
                                                           const GroupOptions& options) {
    if (!options.instance_id.empty() || options.assignor != nullptr) {
      return Error(Errc::kUnsupported,
                   "this log's groups have no group.instance.id and no assignor of one's own");
    }
    return make_group(group_id);
  }
};

}  // namespace weir
