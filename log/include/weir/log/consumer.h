#pragma once

#include <weir/runtime/backend.h>

#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace weir::log {

struct ConsumerOptions {
  std::string group_id;                         // group.id; empty: no committed offsets
  std::string auto_offset_reset = "latest";     // auto.offset.reset: earliest, latest, none
  std::size_t poll_bytes_max = 1U << 20U;       // fetch.max.bytes of one poll
  std::size_t partition_bytes_max = 1U << 20U;  // max.partition.fetch.bytes
  bool check_crcs = true;                       // check.crcs

  // By Kafka's names. Errors: kInvalidConfig with every mistake.
  static Result<ConsumerOptions> parse(const std::map<std::string, std::string>& settings);
};

// Reads chosen partitions; poll() gives whole batches. Over any Backend.
//
// Threading: confined to one thread at a time, except wakeup().
class Consumer {
 public:
  // `backend` outlives the consumer.
  static Result<std::unique_ptr<Consumer>> open(Backend& backend, ConsumerOptions options = {});

  // Starts each partition at its committed offset, else where auto.offset.reset says.
  // Errors: kOffsetOutOfRange when nothing is committed and the policy is none; kUnknownTopic.
  Status assign(std::vector<TopicPartition> partitions);
  Status seek(const TopicPartition& partition, Offset offset);
  Status seek_to_beginning(const TopicPartition& partition);
  Status seek_to_end(const TopicPartition& partition);
  // First record at or after `time`; the end when there is none.
  Status seek_to_time(const TopicPartition& partition, Timestamp time);
  Status pause(const TopicPartition& partition);
  Status resume(const TopicPartition& partition);

  struct Batch {
    const TopicPartition* partition = nullptr;  // lives as long as the assignment
    RecordBlock block;
  };
  // Waits up to `timeout` for the first batch. A position outside the log follows auto.offset.reset
  // when there is a group, with a line on the log that names the gap; without one, or with none, it
  // is an error. Errors: kOffsetOutOfRange, kUnknownTopic (deleted), kCorrupt, kIo.
  Result<std::vector<Batch>> poll(Duration timeout);
  Offset position(const TopicPartition& partition) const;
  // Commits the positions: everything that poll() returned counts as processed. Durable when ok.
  Status commit();
  Result<std::optional<CommittedOffset>> committed(const TopicPartition& partition);
  void wakeup();

 private:
  Consumer(Backend& backend, ConsumerOptions options);
  Result<std::uint32_t> index_of(const TopicPartition& partition) const;
  Status reset(std::uint32_t index, const std::string& why);
  Status recover_position(std::uint32_t index, const Error& error);

  Backend& backend_;
  const ConsumerOptions options_;
  std::unique_ptr<RecordSource> source_;
  std::unique_ptr<Group> group_;
  std::vector<TopicPartition> assigned_;
  std::vector<LeaderEpoch> epochs_;
};

}  // namespace weir::log
