#include "runtime/testing/memory_log.h"

#include <fmt/core.h>

#include <algorithm>
#include <set>
#include <utility>

namespace weir::testing::memory {

namespace {

// Sends are appended at once, so outside a transaction nothing is ever buffered. A transaction is
// buffered here until end(), whole: readers see all of it or nothing, and an aborted one leaves no
// holes.
class Sink final : public RecordSink {
 public:
  Sink(Log& log, const SinkOptions& options) : log_(log), options_(options) {
    if (is_transactional()) {
      MutexLock lock(log_.mutex);
      epoch_ = log_.fence_producers(options_.transactional_id);
    }
  }

  Result<SinkTopicInfo> open_topic(const std::string& name) override {
    MutexLock lock(log_.mutex);
    WEIR_TRY_ASSIGN(const Topic* topic, log_.topic(name));
    const auto known = std::find_if(topics_.begin(), topics_.end(), [topic](const Opened& opened) {
      return opened.name == topic->name && opened.id == topic->id;
    });
    SinkTopicInfo info;
    info.handle = static_cast<SinkTopic>(std::distance(topics_.begin(), known));
    info.partitions = static_cast<std::int32_t>(topic->partitions.size());
    info.id = topic->id;
    if (known == topics_.end()) {
      topics_.push_back({topic->name, topic->id});
    }
    return info;
  }

  Status send(SinkTopic topic, PartitionId partition, std::span<const RecordRef> records) override {
    MutexLock lock(log_.mutex);
    WEIR_TRY(log_.take_fault(MemoryBackend::FaultPoint::kSend));
    WEIR_TRY(check_open_for_send());
    const Place place{topic, partition};
    WEIR_TRY_ASSIGN(Partition * target, find(place));
    const std::size_t message_bytes_max = log_.find_topic(topics_[topic].name)->message_bytes_max;

    std::size_t first = 0;
    std::size_t batch_size = 0;
    for (std::size_t i = 0; i < records.size(); ++i) {
      const std::size_t size = encoded_size(records[i]);
      if (Status legal = check_record(place, records[i], size, message_bytes_max); !legal.ok()) {
        WEIR_TRY(take(place, *target, records.subspan(first, i - first)));
        return legal;
      }
      if (i > first && batch_size + size > std::min(options_.batch_bytes, message_bytes_max)) {
        WEIR_TRY(take(place, *target, records.subspan(first, i - first)));
        first = i;
        batch_size = 0;
      }
      batch_size += size;
    }
    return take(place, *target, records.subspan(first));
  }

  Result<std::vector<FlushedPartition>> flush() override {
    MutexLock lock(log_.mutex);
    WEIR_TRY(log_.take_fault(MemoryBackend::FaultPoint::kFlush));
    WEIR_TRY(check_not_fenced());
    std::map<Place, Offset> ends = written_;
    for (const Place& place : unflushed_) {
      // Where the records will be if nobody else writes the partition before end().
      WEIR_TRY_ASSIGN(const Partition* target, find(place));
      ends[place] = target->log_end.plus(buffered_counts_[place]);
    }
    written_.clear();
    unflushed_.clear();
    std::vector<FlushedPartition> flushed;
    for (const auto& [place, end] : ends) {
      flushed.push_back({place.first, place.second, end, LeaderEpoch(0)});
    }
    return flushed;
  }

  Status begin() override {
    if (!is_transactional()) {
      return Error(Errc::kInvalidArgument,
                   "begin() on a sink without a transactional id; set "
                   "SinkOptions::transactional_id");
    }
    MutexLock lock(log_.mutex);
    WEIR_TRY(check_not_fenced());
    if (in_transaction_ && !end_failed_) {
      return Error(Errc::kInvalidArgument,
                   fmt::format("transaction of {} is open; end() it before the next begin()",
                               options_.transactional_id));
    }
    drop_transaction();  // one whose end() failed is resolved as aborted
    in_transaction_ = true;
    return {};
  }

  Status send_offsets(std::span<const std::pair<TopicPartition, CommittedOffset>> offsets,
                      const GroupMetadata& group) override {
    MutexLock lock(log_.mutex);
    WEIR_TRY(check_not_fenced());
    WEIR_TRY(check_in_transaction("send_offsets()"));
    const GroupState& state = log_.group(group.group_id);
    const bool has_member = !state.member_id.empty();
    if (state.member_id != group.member_id ||
        (has_member && state.generation != group.generation)) {
      return Error(Errc::kFenced,
                   fmt::format("group {} is at generation {} with member {}; offsets of member "
                               "\"{}\" generation {} are refused, join again",
                               group.group_id, state.generation, state.member_id, group.member_id,
                               group.generation));
    }
    WEIR_TRY(log_.check_offsets(offsets));
    Offsets& pending = buffered_offsets_[group.group_id];
    pending.insert(pending.end(), offsets.begin(), offsets.end());
    return {};
  }

  Result<TransactionOutcome> end(bool commit) override {
    MutexLock lock(log_.mutex);
    WEIR_TRY(check_in_transaction("end()"));
    if (log_.is_fenced(options_.transactional_id, epoch_)) {
      drop_transaction();
      return TransactionOutcome::kFenced;
    }
    if (!commit) {
      drop_transaction();
      return TransactionOutcome::kAborted;
    }
    if (Status fault = log_.take_fault(MemoryBackend::FaultPoint::kCommit); !fault.ok()) {
      end_failed_ = true;  // the transaction stays as it is: end() again, or begin() the next
      return std::move(fault).error();
    }
    if (!can_commit()) {
      drop_transaction();
      return TransactionOutcome::kAborted;
    }
    commit_transaction();
    drop_transaction();
    return TransactionOutcome::kCommitted;
  }

 private:
  struct Opened {
    std::string name;
    Uuid id;
  };
  using Place = std::pair<SinkTopic, PartitionId>;
  struct Buffered {
    Place place;
    std::shared_ptr<Batch> batch;
  };

  bool is_transactional() const { return !options_.transactional_id.empty(); }

  Status check_not_fenced() WEIR_REQUIRES(log_.mutex) {
    if (is_transactional() && log_.is_fenced(options_.transactional_id, epoch_)) {
      return Error(Errc::kFenced,
                   fmt::format("a newer producer uses transactional id {}; close this one",
                               options_.transactional_id));
    }
    return {};
  }

  Status check_in_transaction(std::string_view call) const {
    if (!in_transaction_) {
      return Error(Errc::kInvalidArgument,
                   fmt::format("{} without an open transaction; call begin() first", call));
    }
    return {};
  }

  Status check_open_for_send() WEIR_REQUIRES(log_.mutex) {
    WEIR_TRY(check_not_fenced());
    return is_transactional() ? check_in_transaction("send() of a transactional sink") : Status();
  }

  static Status check_record(const Place& place, const RecordRef& record, std::size_t size,
                             std::size_t message_bytes_max) {
    if (size > message_bytes_max) {
      return Error(Errc::kRecordTooLarge,
                   fmt::format("record for partition {} takes {} bytes; max.message.bytes of the "
                               "topic is {}",
                               place.second.value(), size, message_bytes_max));
    }
    if (record.timestamp < kNoTimestamp) {
      return Error(Errc::kInvalidTimestamp,
                   fmt::format("timestamp {} is negative; give milliseconds since 1970 or -1 for "
                               "the time of the append",
                               record.timestamp));
    }
    return {};
  }

  Result<Partition*> find(const Place& place) WEIR_REQUIRES(log_.mutex) {
    if (place.first >= topics_.size()) {
      return Error(Errc::kInvalidArgument,
                   fmt::format("topic handle {} was not opened by this sink", place.first));
    }
    const Opened& opened = topics_[place.first];
    if (log_.find_topic(opened.name, opened.id) == nullptr) {
      return Error(Errc::kUnknownTopic,
                   fmt::format("topic {} with id {} was deleted; open it again if it was made anew",
                               opened.name, opened.id.to_string()));
    }
    return log_.partition({opened.name, place.second});
  }

  // Appends or buffers one batch.
  Status take(const Place& place, Partition& target, std::span<const RecordRef> records)
      WEIR_REQUIRES(log_.mutex) {
    if (records.empty()) {
      return {};
    }
    std::shared_ptr<Batch> batch = Batch::encode(records, log_.clock.now());
    if (!in_transaction_) {
      written_[place] = target.append(std::move(batch));
      log_.changed.notify_all();
      return {};
    }
    if (buffered_bytes_ + batch->bytes.size() > options_.buffer_bytes_max) {
      // Only end() makes room and it comes from this thread, so waiting for it cannot help.
      return Error(Errc::kTimedOut,
                   fmt::format("transaction of {} fills the sink's buffer of {} bytes; end it "
                               "earlier or raise buffer.memory",
                               options_.transactional_id, options_.buffer_bytes_max));
    }
    buffered_bytes_ += batch->bytes.size();
    buffered_counts_[place] += static_cast<std::int64_t>(records.size());
    buffered_.push_back({place, std::move(batch)});
    unflushed_.insert(place);
    return {};
  }

  // Whether everything that the transaction touches still exists.
  bool can_commit() WEIR_REQUIRES(log_.mutex) {
    const bool has_partitions =
        std::all_of(buffered_counts_.begin(), buffered_counts_.end(),
                    [this](const auto& entry)
                        WEIR_NO_THREAD_SAFETY_ANALYSIS { return find(entry.first).ok(); });
    return has_partitions && std::all_of(buffered_offsets_.begin(), buffered_offsets_.end(),
                                         [this](const auto& entry) WEIR_NO_THREAD_SAFETY_ANALYSIS {
                                           return log_.check_offsets(entry.second).ok();
                                         });
  }

  // Requires: can_commit().
  void commit_transaction() WEIR_REQUIRES(log_.mutex) {
    for (Buffered& buffered : buffered_) {
      Partition& target = *find(buffered.place).value();
      const Offset end = target.append(std::move(buffered.batch));
      if (unflushed_.contains(buffered.place)) {
        written_[buffered.place] = end;
      }
    }
    for (const auto& [group_id, offsets] : buffered_offsets_) {
      log_.put_offsets(group_id, offsets);
    }
    log_.changed.notify_all();
  }

  void drop_transaction() {
    in_transaction_ = false;
    end_failed_ = false;
    buffered_.clear();
    buffered_counts_.clear();
    buffered_offsets_.clear();
    buffered_bytes_ = 0;
    unflushed_.clear();
  }

  Log& log_;
  const SinkOptions options_;
  std::uint64_t epoch_ = 0;
  std::vector<Opened> topics_;  // by handle
  // Appended since the last flush(), with the end of this sink's last batch.
  std::map<Place, Offset> written_;

  bool in_transaction_ = false;
  bool end_failed_ = false;
  std::vector<Buffered> buffered_;
  std::map<Place, std::int64_t> buffered_counts_;  // records
  std::map<std::string, Offsets> buffered_offsets_;
  std::size_t buffered_bytes_ = 0;
  std::set<Place> unflushed_;  // buffered since the last flush()
};

}  // namespace

std::unique_ptr<RecordSink> make_sink(Log& log, const SinkOptions& options) {
  return std::make_unique<Sink>(log, options);
}

}  // namespace weir::testing::memory
