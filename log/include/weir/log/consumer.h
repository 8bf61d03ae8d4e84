#pragma once

#include <weir/log/isolation_level.h>
#include <weir/runtime/backend.h>

#include <atomic>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <vector>

namespace weir::log {

class CommitQueue;
class Fetches;
struct OffsetReset;

// Names in brackets are Kafka's settings, which parse() reads.
struct ConsumerOptions {
  std::string group_id;                      // group.id; empty: no group, nothing is committed
  std::string auto_offset_reset = "latest";  // earliest, latest, none, by_duration:PnDTnHnMn.nS
  bool auto_commit = true;                   // enable.auto.commit; means nothing without a group
  Duration auto_commit_interval = std::chrono::seconds(5);            // auto.commit.interval.ms
  std::size_t poll_records_max = 500;                                 // max.poll.records
  IsolationLevel isolation_level = IsolationLevel::kReadUncommitted;  // isolation.level
  // fetch.max.bytes: of one fetch, in which the first batch is whole. About what one poll gives:
  // what waits longer is out of the processor's cache by then.
  std::size_t poll_bytes_max = 64U << 10U;
  std::size_t partition_bytes_max = 1U << 20U;  // max.partition.fetch.bytes
  bool check_crcs = true;                       // check.crcs
  // partition.assignment.strategy, the best first: range, roundrobin, cooperative-sticky. Members
  // of one group need one in common. Kafka's default is range and cooperative-sticky.
  std::vector<std::string> assignors = {"cooperative-sticky"};
  std::string instance_id;  // group.instance.id: keeps its partitions over a restart; empty: none
  std::string client_id;    // client.id
  Duration session_timeout = std::chrono::seconds(45);   // session.timeout.ms
  Duration max_poll_interval = std::chrono::minutes(5);  // max.poll.interval.ms
  // Tells when to commit automatically, and "now" for by_duration; null: the machine's clock.
  const Clock* clock = nullptr;

  // By Kafka's names. Errors: kInvalidConfig with every mistake.
  static Result<ConsumerOptions> parse(const std::map<std::string, std::string>& settings);
};

using ConsumerOffsets = std::map<TopicPartition, CommittedOffset>;
using CommitCallback = std::function<void(const ConsumerOffsets&, const Status&)>;

struct OffsetAndTimestamp {
  Offset offset;
  Timestamp timestamp = kNoTimestamp;  // of that record
  LeaderEpoch leader_epoch = kNoLeaderEpoch;

  friend bool operator==(const OffsetAndTimestamp&, const OffsetAndTimestamp&) = default;
};

// Records of one partition that one poll gave: a record batch or, with max.poll.records, a part of
// one. Ownership: `block` keeps the bytes alive; `partition` lives as long as the consumer.
struct ConsumerBatch {
  const TopicPartition* partition = nullptr;
  std::span<const RecordView> records;  // never empty
  Offset next_offset;                   // the position behind it
  LeaderEpoch leader_epoch = kNoLeaderEpoch;
  Offset high_watermark;  // when it was fetched
  std::shared_ptr<const RecordBlock> block;
};

struct ConsumerRecord {
  const TopicPartition& partition;
  const RecordView& record;
};

// What one poll gave, by batches or record by record:
//
//   for (const auto& [partition, record] : *consumer->poll(timeout)) { ... record.value ... }
//
// Ownership: views are valid as long as this object, or a copy of their batch, lives.
class ConsumerRecords {
 public:
  ConsumerRecords() = default;
  explicit ConsumerRecords(std::vector<ConsumerBatch> batches) : batches_(std::move(batches)) {}

  const std::vector<ConsumerBatch>& batches() const { return batches_; }
  bool empty() const { return batches_.empty(); }
  std::size_t count() const;

  class Iterator {
   public:
    using value_type = ConsumerRecord;
    using difference_type = std::ptrdiff_t;
    explicit Iterator(const ConsumerBatch* batch) : batch_(batch) {}
    ConsumerRecord operator*() const { return {*batch_->partition, batch_->records[index_]}; }
    Iterator& operator++() {
      if (++index_ == batch_->records.size()) {
        ++batch_;
        index_ = 0;
      }
      return *this;
    }
    bool operator==(const Iterator&) const = default;

   private:
    const ConsumerBatch* batch_;
    std::size_t index_ = 0;
  };
  Iterator begin() const { return Iterator(batches_.data()); }
  Iterator end() const { return Iterator(batches_.data() + batches_.size()); }

 private:
  std::vector<ConsumerBatch> batches_;
};

// Reads partitions in the order of their offsets, over any Backend. Its rules are those of Kafka's
// KafkaConsumer; where they differ, the comment says so.
//
// Position:  the next record that poll() gives. It is found by the first poll() or position():
//            the committed offset, else what auto.offset.reset says. An offset that was committed
//            under a leader epoch that ended below it is set back to that end (KIP-320), with a
//            line on the diagnostics; so is a position outside the log to what auto.offset.reset
//            says.
// Threading: confined to one thread at a time, except wakeup().
// Bounds:    holds at most fetch.max.bytes that poll() has not given yet, and for each paused
//            partition max.partition.fetch.bytes more.
class Consumer {
 public:
  // `backend` outlives the consumer. Errors: kInvalidConfig.
  static Result<std::unique_ptr<Consumer>> open(Backend& backend, ConsumerOptions options = {});
  // As after a crash: nothing is committed. close() first.
  ~Consumer();
  Consumer(const Consumer&) = delete;
  Consumer& operator=(const Consumer&) = delete;

  // Reads these partitions, without membership in the group. Those that were assigned before keep
  // position and pause. With automatic commit the positions so far are committed first.
  // Errors: kInvalidArgument while subscribed.
  Status assign(const std::vector<TopicPartition>& partitions);
  // Joins the group, which shares out every partition of its members' topics, also of topics that
  // are made later; the partitions come with poll(). Who does not poll for max.poll.interval.ms
  // loses them to the others. The listener (null: none) is called from poll(), unsubscribe() and
  // close(); it may use this consumer and outlives the subscription:
  //   on_assigned  partitions came; seek() here overrides the committed offset
  //   on_revoked   partitions go after this; commit here (automatic commit has just done so)
  //   on_lost      partitions are gone with their topic, or another member has them: commit nothing
  // With a group.instance.id the consumer is a static member: when it closes, its partitions wait
  // session.timeout.ms for its return.
  // Errors: kInvalidArgument (no group.id, or partitions were assigned).
  Status subscribe(std::vector<std::string> topics, GroupListener* listener = nullptr);
  // Ends assign() or subscribe(). With automatic commit the positions are committed first.
  Status unsubscribe();
  std::vector<TopicPartition> assignment() const;
  const std::vector<std::string>& subscription() const { return topics_; }
  // For transactions that commit this consumer's offsets. Errors: kInvalidArgument (no group.id).
  Result<GroupMetadata> group_metadata() const;

  // At most max.poll.records records; what a fetch holds beyond them comes with the next polls.
  // Waits up to `timeout` for the first. Records count as processed when poll() is called again:
  // then automatic commit may commit them. An error is reported at once and again by each poll that
  // has nothing else to give, until the partition is sought, paused or unassigned; records of
  // other partitions are not lost.
  // Errors: kOffsetOutOfRange (auto.offset.reset is none), kUnknownTopic (never made, or deleted;
  // not while subscribed), kCorrupt, kIo, kInvalidArgument (nothing assigned), kClosed; of the
  // group: kFenced (another has this group.instance.id now), kInvalidConfig (no
  // partition.assignment.strategy in common, session.timeout.ms outside the limits), kLocked
  // (group.max.size), kNoSpace.
  Result<ConsumerRecords> poll(Duration timeout);
  // Makes the present or next poll() return at once, with nothing. Thread-safe.
  void wakeup();

  Status seek(const TopicPartition& partition, Offset offset);
  // As of the next poll() or position(), as in Kafka. Without partitions: all.
  Status seek_to_beginning(const std::vector<TopicPartition>& partitions = {});
  Status seek_to_end(const std::vector<TopicPartition>& partitions = {});
  // To the first record at or after `time`, as of now; to the end when there is none.
  Status seek_to_time(const TopicPartition& partition, Timestamp time);
  // A paused partition gives no records; what was fetched of it stays.
  Status pause(const std::vector<TopicPartition>& partitions);
  Status resume(const std::vector<TopicPartition>& partitions);
  std::vector<TopicPartition> paused() const;

  // Errors: kInvalidArgument (not assigned), and as poll() when the position is to be found.
  Result<Offset> position(const TopicPartition& partition);
  // high watermark - position; never negative (Kafka's currentLag).
  Result<std::int64_t> current_lag(const TopicPartition& partition);
  // high watermark - committed offset, never negative; nullopt when nothing is committed. What
  // Kafka's tools call the group's LAG.
  Result<std::optional<std::int64_t>> committed_lag(const TopicPartition& partition);

  // Of any partitions, also unassigned ones. Errors: kUnknownTopic.
  Result<std::map<TopicPartition, Offset>> beginning_offsets(
      const std::vector<TopicPartition>& partitions);
  // High watermarks.
  Result<std::map<TopicPartition, Offset>> end_offsets(
      const std::vector<TopicPartition>& partitions);
  // First record with a timestamp at or after the time, in offset order; nullopt: none. Reads it.
  Result<std::map<TopicPartition, std::optional<OffsetAndTimestamp>>> offsets_for_times(
      const std::map<TopicPartition, Timestamp>& times);

  // Commits the positions: everything that poll() returned counts as processed. Durable when ok.
  // Waits for asynchronous commits before it.
  // Errors: kInvalidArgument (no group.id), kFenced (it is not a member, or not any more, or it
  // never subscribed and others have), kTimedOut (the group rebalances: poll(), then again; or
  // the disk does not answer), kUnknownTopic, kNoSpace, kIo.
  Status commit();
  // Commits these; offsets are those of the next record to read. Metadata: at most 4,096 bytes.
  Status commit(const ConsumerOffsets& offsets);
  // Returns before the commit is done. Commits of one consumer are done in the order of the calls.
  // `done` runs in that order on the caller's thread: in a later poll(), commit or close().
  Status commit_async(CommitCallback done = {});
  Status commit_async(ConsumerOffsets offsets, CommitCallback done = {});
  // Waits for asynchronous commits. nullopt: none, or no group.
  Result<std::optional<CommittedOffset>> committed(const TopicPartition& partition);
  Result<std::map<TopicPartition, std::optional<CommittedOffset>>> committed(
      const std::vector<TopicPartition>& partitions);

  // With automatic commit the positions are committed; then asynchronous commits are waited for,
  // their callbacks run, and the group is left. Everything answers kClosed afterwards. Idempotent.
  Status close();

 private:
  class Membership;

  Consumer(Backend& backend, ConsumerOptions options, const OffsetReset& reset,
           std::unique_ptr<RecordSource> source, std::unique_ptr<Group> group);
  Status check_open() const;
  Status check_group(const char* action) const;
  Status poll_group();
  // true: a position was put right, so that another fetch may give records.
  Result<bool> fetch(Duration timeout);
  Status recover_position(std::uint32_t index, const Error& error);
  Duration wait_limit(Duration left) const;

  // Gives partitions without a position one. A failure stays with its partition and is returned
  // when it is new.
  Status find_positions();
  Status find_positions(std::span<const std::uint32_t> indices);
  Status find_position(std::uint32_t index, const std::optional<CommittedOffset>& committed);
  Status start_at_committed(std::uint32_t index, const CommittedOffset& committed);
  Status reset_position(std::uint32_t index, const std::string& why);
  Result<std::optional<OffsetAndTimestamp>> offset_for_time(RecordSource& reader,
                                                            const TopicPartition& partition,
                                                            Timestamp time);

  Status check_topic(const TopicPartition& partition, const Uuid& read_id);
  Result<ConsumerOffsets> positions();
  ConsumerOffsets uncommitted();
  void note_committed(const ConsumerOffsets& offsets);
  bool commits_automatically() const;
  void auto_commit_if_due();
  // Before partitions are given up. A failure is logged, too.
  Status auto_commit_now();
  Status stop_reading();

  Backend& backend_;
  const ConsumerOptions options_;
  const Clock& clock_;
  const std::unique_ptr<const OffsetReset> reset_;
  std::unique_ptr<RecordSource> source_;
  std::unique_ptr<Group> group_;          // null: no group.id
  std::unique_ptr<CommitQueue> commits_;  // null: no group.id; behind group_, which it uses
  std::unique_ptr<Fetches> fetches_;
  std::unique_ptr<Membership> membership_;  // null: not subscribed
  std::vector<std::string> topics_;         // subscribed
  MonotonicTime next_auto_commit_{};
  std::atomic<bool> woken_{false};
  bool closed_ = false;
};

}  // namespace weir::log
