#include "log/embedded/producer_impl.h"

#include <fmt/core.h>

namespace weir::log {

Status Producer::Impl::check_transaction(std::string_view call) const {
  if (options_.transactional_id.empty()) {
    return {};
  }
  if (session_ == nullptr || ending_) {
    return Error(Errc::kInvalidArgument,
                 fmt::format("{} of the producer of transactional.id {}: {}", call,
                             options_.transactional_id,
                             ending_ ? "its transaction is being ended by another thread"
                                     : "call init_transactions() first"));
  }
  WEIR_TRY(session_->check_open(call));
  return transaction_failure_;
}

Status Producer::Impl::init_transactions() {
  if (options_.transactional_id.empty()) {
    return Error(Errc::kInvalidArgument, "init_transactions() needs a transactional.id");
  }
  {
    const MutexLock lock(mutex_);
    if (session_ != nullptr) {
      return Error(Errc::kInvalidArgument, "init_transactions() was called before");
    }
  }
  WEIR_TRY_ASSIGN(auto session, TransactionSession::open(
                                    directory_, options_.transactional_id,
                                    std::chrono::milliseconds(options_.transaction_timeout_ms),
                                    std::chrono::milliseconds(options_.max_block_ms)));
  const MutexLock lock(mutex_);
  session_ = std::move(session);
  return {};
}

Status Producer::Impl::begin_transaction() {
  const MutexLock lock(mutex_);
  if (closing_) {
    return closed();
  }
  if (session_ == nullptr || ending_) {
    return Error(
        Errc::kInvalidArgument,
        "begin_transaction() needs init_transactions() before, and no other call that ends "
        "a transaction at the same time");
  }
  WEIR_TRY(session_->begin());
  transaction_failure_ = Status();
  return {};
}

Status Producer::Impl::send_offsets(std::span<const PartitionOffset> offsets,
                                    const GroupMetadata& group) {
  const MutexLock lock(mutex_);
  if (options_.transactional_id.empty()) {
    return Error(Errc::kInvalidArgument, "send_offsets_to_transaction() needs a transactional.id");
  }
  WEIR_TRY(check_transaction("send_offsets_to_transaction()"));
  Status sent = session_->send_offsets(offsets, group);
  if (!sent.ok()) {
    transaction_failure_ = sent;
  }
  return sent;
}

// Whether the call is in turn; nothing else can end a transaction meanwhile.
Status Producer::Impl::check_end(bool commit) const {
  const std::string_view call = commit ? "commit_transaction()" : "abort_transaction()";
  if (options_.transactional_id.empty()) {
    return Error(Errc::kInvalidArgument, fmt::format("{} needs a transactional.id", call));
  }
  const bool mine = session_ != nullptr && !ending_;
  if (mine && session_->is_undecided()) {
    return {};
  }
  Status turn = check_transaction(call);
  const bool has_failed = !transaction_failure_.ok() && mine && session_->check_open(call).ok();
  if (turn.ok() || (!commit && has_failed)) {
    return {};
  }
  return has_failed ? cannot_commit() : std::move(turn);
}

Error Producer::Impl::cannot_commit() const {
  return Error(transaction_failure_.error())
      .with_context(fmt::format("transaction of {} cannot be committed, abort it",
                                options_.transactional_id));
}

Status Producer::Impl::end_transaction(bool commit) {
  if (on_own_thread()) {
    return refuse_in_callback(commit ? "commit_transaction()" : "abort_transaction()");
  }
  std::uint64_t behind = 0;
  {
    const MutexLock lock(mutex_);
    WEIR_TRY(check_end(commit));
    if (commit) {
      seal_due(system_clock().monotonic(), true);
      if (!transaction_failure_.ok()) {
        return cannot_commit();
      }
    } else {
      lose_unsent(Error(Errc::kInvalidTxnState, "its transaction was aborted before it was sent"));
    }
    ending_ = true;
    behind = next_number_;
  }
  notifier_->notify();
  const Result<TransactionOutcome> outcome = session_->end(commit);
  const MutexLock lock(mutex_);
  ending_ = false;
  progress_.notify_all();
  WEIR_TRY(outcome.status());
  if (*outcome == TransactionOutcome::kUnknown) {
    return Error(Errc::kTimedOut,
                 fmt::format("whether the transaction of {} is {} is unknown; "
                             "call it again",
                             options_.transactional_id, commit ? "committed" : "aborted"));
  }
  wait_for_answers(behind);
  if (!commit) {
    first_error_ = Status();  // of what was aborted
  }
  transaction_failure_ = Status();
  if (*outcome == TransactionOutcome::kFenced) {
    return session_->check_open("");
  }
  if (commit && *outcome == TransactionOutcome::kAborted) {
    return Error(Errc::kInvalidTxnState,
                 fmt::format("the transaction of {} was aborted: it was open for longer than "
                             "transaction.timeout.ms {}; begin another",
                             options_.transactional_id, options_.transaction_timeout_ms));
  }
  return {};
}

// The producer id, epoch and sequence of the open batch.
Result<BatchBuilder::Producer> Producer::Impl::stamp(Open& open) {
  if (session_ == nullptr) {
    return id_ == kNoProducerId
               ? BatchBuilder::Producer()
               : BatchBuilder::Producer{id_, ProducerEpoch(0), open.next_sequence, false};
  }
  if (!session_->has(open.name)) {
    // With everything that is open now: few records of the transaction's state.
    std::vector<TopicPartition> partitions = {open.name};
    for (const auto& [name, topic] : topics_) {
      for (const auto& other : topic.partitions) {
        if (other && !other->builder.empty()) {
          partitions.push_back(other->name);
        }
      }
    }
    WEIR_TRY(session_->add(partitions));
  }
  return session_->stamp(open.name, open.builder.count());
}

}  // namespace weir::log
