#include "log/client/embedded_sink.h"

#include "log/partition/await.h"

#include <fmt/core.h>

#include <algorithm>
#include <utility>

namespace weir::log {
Result<SinkTopicInfo> EmbeddedSink::open_topic(const std::string& name) {
  WEIR_TRY_ASSIGN(TopicDescription description, directory_.describe_topic(name));
  SinkTopicInfo info;
  info.handle = static_cast<SinkTopic>(topics_.size());
  info.partitions = description.partitions;
  info.id = description.id;
  Topic topic;
  topic.description = std::move(description);
  topic.targets.resize(static_cast<std::size_t>(info.partitions));
  topics_.push_back(std::move(topic));
  return info;
}

Result<EmbeddedSink::Target*> EmbeddedSink::target(Topic& topic, PartitionId partition) {
  std::unique_ptr<Target>& slot = topic.targets[static_cast<std::size_t>(partition.value())];
  if (!slot) {
    const TopicPartition name{topic.description.name, partition};
    WEIR_TRY_ASSIGN(std::shared_ptr<Partition> log, directory_.partition_for_append(name));
    if (log->options().topic_id != topic.description.id) {
      return Error(Errc::kUnknownTopic,
                   fmt::format("topic {} was deleted and made again; open it anew", name.topic));
    }
    const PartitionSettings settings = log->settings();
    slot = std::make_unique<Target>(
        Target{std::move(log), settings, make_builder(settings), kNoOffset, kNoLeaderEpoch, false});
  }
  return slot.get();
}

Compression EmbeddedSink::compression_of(const PartitionSettings& settings) const {
  return settings.compression.value_or(options_.compression);
}

// A full batch must be one that the topic takes, also if it does not compress.
BatchBuilder EmbeddedSink::make_builder(const PartitionSettings& settings) const {
  const Compression compression = compression_of(settings);
  const std::size_t batch_bytes = BatchBuilder::batch_bytes_within(
      static_cast<std::size_t>(settings.batch_bytes_max()), compression.codec);
  return BatchBuilder(std::min(options_.batch_bytes, batch_bytes), compression);
}

Status EmbeddedSink::send(SinkTopic topic, PartitionId partition,
                          std::span<const RecordRef> records) {
  if (!failure_.ok()) [[unlikely]] {
    return failure_;
  }
  if (session_) {
    WEIR_TRY(session_->check_open("send()"));
  }
  return note_missing(send_now(topic, partition, records));
}

// KAFKA-9279: an error that the caller passes over must not end in a transaction with a hole.
Status EmbeddedSink::note_missing(Status status) {
  if (!status.ok() && session_ && session_->is_open() && transaction_failure_.ok()) {
    transaction_failure_ = status;
  }
  return status;
}

Status EmbeddedSink::send_now(SinkTopic topic, PartitionId partition,
                              std::span<const RecordRef> records) {
  if (topic >= topics_.size() || partition.value() < 0 ||
      partition.value() >= topics_[topic].description.partitions) [[unlikely]] {
    return Error(
        Errc::kInvalidArgument,
        fmt::format("sink has no partition {} of topic handle {}; a topic that grew must be "
                    "opened again",
                    partition.value(), topic));
  }
  WEIR_TRY_ASSIGN(Target * to, target(topics_[topic], partition));
  if (to->settings.cleanup.compacts) {
    WEIR_TRY(check_keys(*to, records));
  }
  if (!to->open) {
    to->open = true;
    open_targets_.emplace_back(topic, partition);
  }
  for (const RecordRef& record : records) {
    if (record.timestamp == kNoTimestamp) {
      RecordRef stamped = record;
      stamped.timestamp = directory_.clock().now();
      WEIR_TRY(add(*to, stamped));
    } else {
      WEIR_TRY(add(*to, record));
    }
  }
  return {};
}

// Kafka's rule: compaction would take a record without a key away.
Status EmbeddedSink::check_keys(const Target& target, std::span<const RecordRef> records) {
  for (const RecordRef& record : records) {
    if (record.key.is_null()) {
      return Error(Errc::kInvalidRecord,
                   fmt::format("{} is compacted (cleanup.policy): every record needs a key",
                               target.log->options().name.to_string()));
    }
  }
  return {};
}

// The topic's limit is for what is stored: how large that is, compressed, is known at the append.
Status EmbeddedSink::check_size(const Target& target, const RecordRef& record) const {
  const bool compressed = compression_of(target.settings).codec != Codec::kNone;
  const auto limit =
      static_cast<std::size_t>(compressed ? INT32_MAX : target.settings.batch_bytes_max());
  const std::size_t payload =
      record.key.size() + record.value.size() + record.headers.encoded().size();
  if (payload + 2 * kBatchHeaderBytes <= limit) [[likely]] {
    return {};  // a record that is far from the limit needs no exact size
  }
  const std::size_t size = BatchBuilder::batch_size_of(record);
  if (size <= limit) {
    return {};
  }
  return Error(
      Errc::kRecordTooLarge,
      fmt::format("a record of {} bytes does not fit {} ({} {}); split it or raise the setting of "
                  "the topic",
                  size, target.log->options().name.to_string(),
                  compressed ? "a batch" : target.settings.batch_limit_name(), limit));
}

Status EmbeddedSink::add(Target& target, const RecordRef& record) {
  WEIR_TRY(check_size(target, record));
  if (target.builder.append(record)) [[likely]] {
    return {};
  }
  WEIR_TRY(append(target));
  const bool taken = target.builder.append(record);
  WEIR_ASSERT(taken);  // the first record of a batch always fits
  return {};
}

Status EmbeddedSink::append(Target& target) {
  WEIR_TRY(wait_for_room());
  const std::size_t bytes = target.builder.size_bytes();
  BatchBuilder::Producer producer;
  if (session_) {
    if (Status added = add_to_transaction(target); !added.ok()) {
      failure_ = std::move(added);
      return failure_;
    }
    producer = session_->stamp(target.log->options().name, target.builder.count());
  }
  Result<Partition::Appended> appended =
      target.log->append(target.builder.seal(producer), AppendOrigin::kBuilder);
  if (!appended.ok()) {
    failure_ = std::move(appended).error().with_context(
        fmt::format("append to {}", target.log->options().name.to_string()));
    return failure_;
  }
  target.end = appended->next_offset;
  target.epoch = appended->leader_epoch;
  // Settings may change while the log is open: what was just sealed is the last of the old form.
  if (PartitionSettings now = target.log->settings(); now != target.settings) {
    target.settings = now;
    target.builder = make_builder(now);
  }
  if (options_.acks_all && target.settings.durability == DurabilityMode::kFsync) {
    unacknowledged_.push_back({target.log, target.end, bytes});
    unacknowledged_bytes_ += bytes;
  }
  return {};
}

// Whatever is open now is added with it, so that a transaction over many partitions costs few
// records of its state.
Status EmbeddedSink::add_to_transaction(const Target& target) {
  if (session_->has(target.log->options().name)) {
    return {};
  }
  std::vector<TopicPartition> partitions;
  for (const auto& [topic, partition] : open_targets_) {
    partitions.push_back({topics_[topic].description.name, partition});
  }
  return session_->add(partitions);
}

Status EmbeddedSink::wait_for_room() {
  while (!unacknowledged_.empty()) {
    const Unacknowledged& oldest = unacknowledged_.front();
    if (oldest.log->offsets().high_watermark < oldest.end) {
      if (unacknowledged_bytes_ < options_.buffer_bytes_max) {
        return {};
      }
      if (Status acknowledged = await_high_watermark(oldest.log, oldest.end, options_.block_max);
          !acknowledged.ok()) {
        failure_ = std::move(acknowledged).error().with_context("wait for room in buffer.memory");
        return failure_;
      }
    }
    unacknowledged_bytes_ -= oldest.bytes;
    unacknowledged_.pop_front();
  }
  return {};
}

Status EmbeddedSink::take_failure() {
  Status failure = note_missing(std::exchange(failure_, Status()));
  for (const auto& [topic, partition] : open_targets_) {
    topics_[topic].targets[static_cast<std::size_t>(partition.value())].reset();  // open it anew
  }
  open_targets_.clear();
  unacknowledged_.clear();
  unacknowledged_bytes_ = 0;
  return failure;
}

void EmbeddedSink::append_all() {
  for (const auto& [topic, partition] : open_targets_) {
    Target& to = *topics_[topic].targets[static_cast<std::size_t>(partition.value())];
    if (failure_.ok() && !to.builder.empty()) {
      append(to).ignore("failure_ keeps it");
    }
  }
}

Result<std::vector<FlushedPartition>> EmbeddedSink::flush() {
  std::vector<FlushedPartition> flushed;
  append_all();  // first, so that one round of syncs serves all partitions
  for (const auto& [topic, partition] : open_targets_) {
    Target& to = *topics_[topic].targets[static_cast<std::size_t>(partition.value())];
    if (!failure_.ok()) {
      break;
    }
    if (to.end != kNoOffset && options_.acks_all) {
      failure_ = await_high_watermark(to.log, to.end, options_.block_max);
    }
    if (to.end != kNoOffset) {
      flushed.push_back({topic, partition, to.end, to.epoch});
    }
    to.end = kNoOffset;
    to.open = false;
  }
  if (!failure_.ok()) {
    return take_failure().error();
  }
  open_targets_.clear();
  unacknowledged_.clear();
  unacknowledged_bytes_ = 0;
  return flushed;
}

// --- Transactions

Status EmbeddedSink::begin() {
  if (!session_) {
    return Error(Errc::kInvalidArgument,
                 "begin() on a sink without a transactional id; set SinkOptions::transactional_id");
  }
  WEIR_TRY(session_->begin());
  transaction_failure_ = Status();
  return Status();
}

Status EmbeddedSink::send_offsets(
    std::span<const std::pair<TopicPartition, CommittedOffset>> offsets,
    const GroupMetadata& group) {
  if (!session_) {
    return Error(Errc::kInvalidArgument,
                 "send_offsets() on a sink without a transactional id; set "
                 "SinkOptions::transactional_id");
  }
  return note_missing(session_->send_offsets(offsets, group));
}

// What was appended stands before the end in the write-ahead log: one sync makes all of it durable,
// and nothing is waited for before.
Result<TransactionOutcome> EmbeddedSink::end(bool commit) {
  if (!session_) {
    return Error(Errc::kInvalidArgument,
                 "end() on a sink without a transactional id; set SinkOptions::transactional_id");
  }
  if (commit) {
    append_all();
    if (const Status missing = failure_.ok() ? transaction_failure_ : failure_; !missing.ok()) {
      return Error(missing.error())
          .with_context(fmt::format("transaction of {} cannot be committed, end it with an abort",
                                    session_->transactional_id()));
    }
  }
  WEIR_TRY_ASSIGN(const TransactionOutcome outcome, session_->end(commit));
  if (outcome != TransactionOutcome::kUnknown) {
    forget_sent();
  }
  return outcome;
}

void EmbeddedSink::forget_sent() {
  failure_ = Status();
  transaction_failure_ = Status();
  for (const auto& [topic, partition] : open_targets_) {
    std::unique_ptr<Target>& target =
        topics_[topic].targets[static_cast<std::size_t>(partition.value())];
    if (target == nullptr || !target->builder.empty()) {
      target.reset();  // with records that nobody shall see
    } else {
      target->end = kNoOffset;
      target->open = false;
    }
  }
  open_targets_.clear();
  unacknowledged_.clear();
  unacknowledged_bytes_ = 0;
}

}  // namespace weir::log
