#include "log/client/transaction_session.h"

#include "log/partition/notifier.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <iterator>
#include <utility>

namespace weir::log {

namespace {

constexpr Duration kRetryBackoff = std::chrono::milliseconds(20);  // retry.backoff.ms of Kafka

bool is_unknown(Errc code) {
  return code == Errc::kIo || code == Errc::kTimedOut || code == Errc::kClosed;
}

}  // namespace

// In one process the transaction before is being ended by another thread, or waits for room on the
// disk.
template <class Attempt>
auto TransactionSession::try_until_free(Attempt&& attempt) {
  const Clock& clock = system_clock();  // a wait is real time, whatever the records' clock says
  const MonotonicTime deadline = clock.monotonic() + block_max_;
  Notifier nobody;
  while (true) {
    auto result = attempt();
    if (result.ok() || result.error().code() != Errc::kConcurrentTransactions ||
        clock.monotonic() >= deadline) {
      return result;
    }
    nobody.wait(nobody.generation(), kRetryBackoff);
  }
}

Result<std::unique_ptr<TransactionSession>> TransactionSession::open(
    LogDirectory& directory, const std::string& transactional_id, Duration timeout,
    Duration block_max) {
  if (directory.read_only()) {
    return Error(Errc::kReadOnly, fmt::format("transactional id {} needs a log that can be written",
                                              transactional_id));
  }
  const auto timeout_ms = std::chrono::duration_cast<std::chrono::milliseconds>(timeout).count();
  std::unique_ptr<TransactionSession> session(
      new TransactionSession(directory, transactional_id, block_max));
  WEIR_TRY_ASSIGN(session->producer_, session->try_until_free([&] {
    return directory.transactions().init(
        transactional_id,
        static_cast<std::int32_t>(std::clamp<std::int64_t>(timeout_ms, -1, INT32_MAX)));
  }));
  return session;
}

void TransactionSession::fence(Error error) {
  fenced_ = std::move(error).with_context(
      fmt::format("producer of transactional id {} cannot go on, close it", id_));
  open_ = false;
}

Status TransactionSession::begin() {
  if (fenced_) {
    return *fenced_;
  }
  if (unknown_) {
    WEIR_TRY_ASSIGN(const TransactionOutcome outcome, end(*unknown_));
    if (outcome == TransactionOutcome::kUnknown) {
      return Error(Errc::kTimedOut,
                   fmt::format("how the last transaction of {} ended is still unknown", id_));
    }
    WEIR_TRY(fenced_ ? Status(*fenced_) : Status());
  }
  if (open_) {
    return Error(Errc::kInvalidArgument,
                 fmt::format("transaction of {} is open; end() it before the next begin()", id_));
  }
  open_ = true;
  return Status();
}

Status TransactionSession::check_open(std::string_view call) const {
  if (fenced_) {
    return *fenced_;
  }
  if (!open_ || unknown_) {
    return Error(Errc::kInvalidArgument,
                 fmt::format("{} without an open transaction of {}; begin() first", call, id_));
  }
  return Status();
}

Status TransactionSession::add(const std::vector<TopicPartition>& partitions) {
  std::vector<TopicPartition> fresh;
  std::ranges::copy_if(partitions, std::back_inserter(fresh),
                       [this](const TopicPartition& one) { return !added_.contains(one); });
  if (fresh.empty()) {
    return Status();
  }
  // Not fatal here when it is fenced: the coordinator may have aborted a transaction that took too
  // long, and end(false) then gives the epoch to go on with.
  WEIR_TRY(try_until_free(
      [&] { return directory_.transactions().add_partitions(id_, producer_, fresh); }));
  added_.insert(fresh.begin(), fresh.end());
  return Status();
}

BatchBuilder::Producer TransactionSession::stamp(const TopicPartition& partition,
                                                 std::int32_t records) {
  std::int32_t& next = sequences_[partition];
  const BatchBuilder::Producer producer{producer_.id, producer_.epoch, next, true};
  next = static_cast<std::int32_t>((std::int64_t{next} + records) & INT32_MAX);
  return producer;
}

Status TransactionSession::send_offsets(std::span<const PartitionOffset> offsets,
                                        const GroupMetadata& group) {
  WEIR_TRY(check_open("send_offsets()"));
  if (offsets.empty()) {
    return Status();
  }
  GroupIdentity member{group.group_id, group.generation, group.member_id, std::nullopt};
  if (!group.instance_id.empty()) {
    member.instance_id = group.instance_id;
  }
  WEIR_TRY_ASSIGN(const TopicPartition partition,
                  directory_.offsets().partition_of(group.group_id));
  WEIR_TRY(add({partition}));  // may wait for long, so without the permit
  // Kept until the offsets are in the log: no generation begins in between.
  WEIR_TRY_ASSIGN(
      const GroupService::CommitPermit permit,
      directory_.groups().begin_commit(member, GroupService::CommitKind::kTransactional));
  return directory_.offsets().commit_in_transaction(group.group_id, producer_.id, producer_.epoch,
                                                    offsets);
}

TransactionOutcome TransactionSession::close(bool commit, ProducerIdAndEpoch next) {
  if (next != producer_) {
    sequences_.clear();  // they count anew in every epoch
  }
  producer_ = next;
  open_ = false;
  unknown_.reset();
  added_.clear();
  return commit ? TransactionOutcome::kCommitted : TransactionOutcome::kAborted;
}

Result<TransactionOutcome> TransactionSession::end(bool commit) {
  if (fenced_) {
    return TransactionOutcome::kFenced;
  }
  if (!open_) {
    return Error(Errc::kInvalidArgument,
                 fmt::format("end() without an open transaction of {}; begin() first", id_));
  }
  if (unknown_ && *unknown_ != commit) {
    return Error(Errc::kInvalidArgument,
                 fmt::format("transaction of {}: its {} may have been done; end() it so again", id_,
                             *unknown_ ? "commit" : "abort"));
  }
  if (added_.empty()) {
    return close(commit, producer_);  // the coordinator never heard of it
  }
  const auto end = [this](bool wish) {
    return try_until_free([&] { return directory_.transactions().end(id_, producer_, wish); });
  };
  Result<ProducerIdAndEpoch> ended = end(commit);
  const bool was_aborted = commit && !ended.ok() && ended.error().code() == Errc::kInvalidTxnState;
  if (was_aborted) {  // it timed out; the abort is answered as done, with the next epoch
    ended = end(false);
  }
  if (ended.ok()) {
    return close(commit && !was_aborted, *ended);
  }
  if (ended.error().code() == Errc::kFenced || ended.error().code() == Errc::kInvalidTxnState) {
    fence(ended.error());
    return TransactionOutcome::kFenced;
  }
  if (is_unknown(ended.error().code())) {
    unknown_ = commit;
    return TransactionOutcome::kUnknown;
  }
  return ended.error();
}

}  // namespace weir::log
