#pragma once

#include "log/broker/log_directory.h"
#include "log/client/transaction_session.h"
#include "log/record/batch_builder.h"

#include <weir/runtime/backend.h>

#include <deque>
#include <memory>
#include <vector>

namespace weir::log {

// RecordSink over partitions of this process's directory. A batch is encoded once, into the buffer
// that is then written and read; a full batch is compressed and appended on the caller's thread. A
// topic with a codec of its own gets its batches in that, whatever SinkOptions says, so that they
// are compressed once.
//
// With a TransactionSession every record is sent in a transaction: its batches carry producer id,
// epoch and sequences, and become durable with the end of the transaction at the latest.
//
// Threading: confined to one thread at a time.
// Bounds:    batches that were appended but are not yet acknowledged hold at most
//            SinkOptions::buffer_bytes_max before compression; then send() waits.
class EmbeddedSink : public RecordSink {
 public:
  // `session`: null without a transactional id.
  EmbeddedSink(LogDirectory& directory, SinkOptions options,
               std::unique_ptr<TransactionSession> session = nullptr)
      : directory_(directory), options_(std::move(options)), session_(std::move(session)) {}

  Result<SinkTopicInfo> open_topic(const std::string& name) override;
  Status send(SinkTopic topic, PartitionId partition, std::span<const RecordRef> records) override;
  Result<std::vector<FlushedPartition>> flush() override;
  Status begin() override;
  Status send_offsets(std::span<const std::pair<TopicPartition, CommittedOffset>> offsets,
                      const GroupMetadata& group) override;
  Result<TransactionOutcome> end(bool commit) override;

 private:
  struct Target {
    std::shared_ptr<Partition> log;  // opened at the first send
    PartitionSettings settings;      // in force at the last append
    BatchBuilder builder;
    Offset end = kNoOffset;  // behind what was appended since the last flush
    LeaderEpoch epoch;
    bool open = false;  // listed in open_targets_
  };
  struct Topic {
    TopicDescription description;
    std::vector<std::unique_ptr<Target>> targets;
  };
  struct Unacknowledged {
    std::shared_ptr<Partition> log;
    Offset end;
    std::size_t bytes = 0;
  };

  Result<Target*> target(Topic& topic, PartitionId partition);
  Compression compression_of(const PartitionSettings& settings) const;
  BatchBuilder make_builder(const PartitionSettings& settings) const;
  static Status check_keys(const Target& target, std::span<const RecordRef> records);
  Status check_size(const Target& target, const RecordRef& record) const;
  Status send_now(SinkTopic topic, PartitionId partition, std::span<const RecordRef> records);
  Status note_missing(Status status);
  Status add(Target& target, const RecordRef& record);
  Status append(Target& target);
  Status add_to_transaction(const Target& target);
  void append_all();
  void forget_sent();
  Status wait_for_room();
  Status take_failure();

  LogDirectory& directory_;
  const SinkOptions options_;
  std::vector<Topic> topics_;
  std::vector<std::pair<SinkTopic, PartitionId>>
      open_targets_;  // with records since the last flush
  std::deque<Unacknowledged> unacknowledged_;
  std::size_t unacknowledged_bytes_ = 0;
  Status failure_;  // of an append, until flush() reported it
  // What is missing in the open transaction, whoever was told of it: it can only be aborted.
  Status transaction_failure_;
  const std::unique_ptr<TransactionSession> session_;
};

}  // namespace weir::log
