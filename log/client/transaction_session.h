#pragma once

#include "log/broker/log_directory.h"
#include "log/record/batch_builder.h"

#include <weir/runtime/backend.h>

#include <map>
#include <memory>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <vector>

namespace weir::log {

// A producer's side of its transactions (Kafka's TransactionManager, transaction.version 2): its id
// and epoch, the partitions of the open transaction, the sequences there.
//
// Threading: confined to one thread at a time; calls block on the disk.
class TransactionSession {
 public:
  // Takes the transactional id over: fences every other producer of it and aborts what it left
  // open. Waits up to `block_max` while that is being done. Errors: as Transactions::init();
  // kReadOnly.
  static Result<std::unique_ptr<TransactionSession>> open(LogDirectory& directory,
                                                          const std::string& transactional_id,
                                                          Duration timeout, Duration block_max);

  // Errors: kInvalidArgument (one is open), kFenced. One whose outcome is unknown is resolved
  // first; its errors then.
  Status begin();
  bool is_open() const { return open_; }
  // The outcome of its end is unknown: end() again.
  bool is_undecided() const { return unknown_.has_value(); }
  // Errors: kInvalidArgument when no transaction is open, kFenced.
  Status check_open(std::string_view call) const;
  // Before the first batches to these partitions in this transaction; what was added is passed
  // over.
  Status add(const std::vector<TopicPartition>& partitions);
  bool has(const TopicPartition& partition) const { return added_.contains(partition); }
  // For the next batch to a partition, of so many records.
  BatchBuilder::Producer stamp(const TopicPartition& partition, std::int32_t records);
  // Errors: kFenced also when `group` is a member no more (KIP-447).
  Status send_offsets(std::span<const PartitionOffset> offsets, const GroupMetadata& group);
  // Durable when committed, as all that was appended before. Errors, with the transaction still
  // open: kNoSpace, kConcurrentTransactions.
  Result<TransactionOutcome> end(bool commit);
  const std::string& transactional_id() const { return id_; }

 private:
  TransactionSession(LogDirectory& directory, std::string id, Duration block_max)
      : directory_(directory), id_(std::move(id)), block_max_(block_max) {}
  // Calls `attempt` again while it is answered CONCURRENT_TRANSACTIONS.
  template <class Attempt>
  auto try_until_free(Attempt&& attempt);
  TransactionOutcome close(bool commit, ProducerIdAndEpoch next);
  void fence(Error error);

  LogDirectory& directory_;
  const std::string id_;
  const Duration block_max_;
  ProducerIdAndEpoch producer_;
  bool open_ = false;
  std::optional<bool> unknown_;  // the wish of an end() whose outcome is not known
  std::optional<Error> fenced_;
  std::set<TopicPartition> added_;
  std::map<TopicPartition, std::int32_t> sequences_;  // of this epoch
};

}  // namespace weir::log
