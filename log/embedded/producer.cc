#include "log/embedded/producer_impl.h"

#include <fmt/core.h>

#include <algorithm>
#include <unordered_set>

namespace weir::log {
namespace {

constexpr std::int64_t kSmallestBatch = 512;

std::int32_t size_of(const NullableBytes& bytes) {
  return bytes.is_null() ? -1 : static_cast<std::int32_t>(bytes.size());
}

std::size_t payload_of(const RecordRef& record) {
  return record.key.size() + record.value.size() + record.headers.encoded().size();
}

// Deadlines far ahead do not overflow.
MonotonicTime deadline_in(MonotonicTime now, Duration timeout) {
  constexpr Duration kLongest = std::chrono::hours(24 * 365);
  return now + std::clamp(timeout, Duration::zero(), kLongest);
}

}  // namespace

Error Producer::Impl::refuse_in_callback(const char* call) const {
  return Error(Errc::kInvalidArgument,
               fmt::format("{} was called by a callback of the producer, for which it would wait "
                           "for ever; call it from another thread",
                           call));
}

Error Producer::Impl::closed() const {
  return Error(Errc::kClosed, "the producer was closed; open another");
}

Result<Producer::Impl::Topic*> Producer::Impl::topic(const std::string& name) {
  const std::uint64_t now = directory_.topic_generation();
  if (now != topics_seen_) {
    topics_seen_ = now;
    refresh_topics();
  }
  const auto found = topics_.find(name);
  if (found != topics_.end()) {
    return &found->second;
  }
  WEIR_TRY_ASSIGN(const TopicDescription description, directory_.describe_topic(name));
  TopicPartitioner::Options partitioner;
  partitioner.kind = options_.partitioner == Partitioner::kRoundRobin
                         ? TopicPartitioner::Kind::kRoundRobin
                         : TopicPartitioner::Kind::kDefault;
  partitioner.ignore_keys = options_.partitioner_ignore_keys;
  partitioner.batch_bytes = options_.batch_size;
  Topic& fresh = topics_.emplace(name, partitioner).first->second;
  fresh.id = description.id;
  fresh.partitions.resize(static_cast<std::size_t>(description.partitions));
  return &fresh;
}

// Partitions that were added are used, changed settings followed; what was not appended yet is lost
// with a deleted topic.
void Producer::Impl::refresh_topics() {
  for (auto topic = topics_.begin(); topic != topics_.end();) {
    const Result<TopicDescription> now = directory_.describe_topic(topic->first);
    if (now.ok() && now->id == topic->second.id) {
      topic->second.partitions.resize(static_cast<std::size_t>(now->partitions));
      for (const auto& open : topic->second.partitions) {
        if (open) {
          if (!open->builder.empty()) {
            seal(*open);
          }
          follow_topic(*open);
        }
      }
      ++topic;
    } else {
      drop(topic->second, topic->first);
      topic = topics_.erase(topic);
    }
  }
}

void Producer::Impl::drop(Topic& topic, const std::string& name) {
  for (const auto& open : topic.partitions) {
    if (open && !open->builder.empty()) {
      Sealed lost = take_batch(*open);
      lost.failure = Error(Errc::kUnknownTopic, fmt::format("topic {} was deleted", name));
      transaction_failure_ = lost.failure;
      sealed_.push_back(std::move(lost));
    }
  }
}

Compression Producer::Impl::compression_of(const Open& open) const {
  return open.settings.compression.value_or(options_.compression);
}

// Takes the topic's present settings over. A full batch must be one that the topic takes, also if
// it does not compress.
void Producer::Impl::follow_topic(Open& open) {
  open.settings = open.log->settings();
  const Compression compression = compression_of(open);
  open.batch_bytes =
      std::min(static_cast<std::size_t>(std::max(options_.batch_size, kSmallestBatch)),
               BatchBuilder::batch_bytes_within(
                   static_cast<std::size_t>(open.settings.batch_bytes_max()), compression.codec));
  open.builder = BatchBuilder(open.batch_bytes, compression);
}

Result<Producer::Impl::Open*> Producer::Impl::open(Topic& topic, const std::string& name,
                                                   PartitionId partition) {
  const auto count = static_cast<std::int32_t>(topic.partitions.size());
  if (partition.value() < 0 || partition.value() >= count) {
    return Error(Errc::kUnknownTopic, fmt::format("topic {} has partitions 0 to {}, not {}", name,
                                                  count - 1, partition.value()));
  }
  std::unique_ptr<Open>& slot = topic.partitions[static_cast<std::size_t>(partition.value())];
  if (!slot) {
    TopicPartition full{name, partition};
    WEIR_TRY_ASSIGN(std::shared_ptr<Partition> log, directory_.partition_for_append(full));
    auto waiter = std::make_unique<WatermarkWaiter>(log, notifier_);
    slot = std::make_unique<Open>(Open{
        std::move(full), std::move(log), std::move(waiter), {}, BatchBuilder(0), 0, {}, {}, {}, 0});
    follow_topic(*slot);
  }
  return slot.get();
}

// The user's code: no lock is held.
Result<PartitionId> Producer::Impl::ask_partition_function(const ProducerRecord& record) {
  std::int32_t count = 0;
  {
    const MutexLock lock(mutex_);
    WEIR_TRY_ASSIGN(const Topic* to, topic(record.topic));
    count = static_cast<std::int32_t>(to->partitions.size());
  }
  std::int32_t chosen = 0;
  try {
    chosen = options_.partition_function(record.topic, record.key, record.value, count);
  } catch (const std::exception& thrown) {
    return Error(Errc::kHandlerThrew, fmt::format("the partition function threw for a record of "
                                                  "topic {}: {}",
                                                  record.topic, thrown.what()));
  }
  if (chosen < 0 || chosen >= count) {
    return Error(Errc::kInvalidArgument,
                 fmt::format("the partition function answered {} for a record of topic {}, which "
                             "has partitions 0 to {}",
                             chosen, record.topic, count - 1));
  }
  return PartitionId(chosen);
}

Status Producer::Impl::check_record(const Open& open, const RecordRef& record) const {
  struct Limit {
    const char* name;
    std::int64_t bytes;
  };
  const PartitionSettings& settings = open.settings;
  if (settings.cleanup.compacts && record.key.is_null()) {
    // Compaction would take it away.
    return Error(Errc::kInvalidRecord,
                 fmt::format("topic {} is compacted (cleanup.policy): every record needs a key",
                             open.name.topic));
  }
  // The topic's limit is for what is stored; how large that is, compressed, the append tells.
  const bool compressed = compression_of(open).codec != Codec::kNone;
  const Limit limits[] = {
      {"max.request.size", options_.max_request_size},
      {settings.batch_limit_name(), compressed ? INT32_MAX : settings.batch_bytes_max()},
      {"buffer.memory", options_.buffer_memory}};
  const Limit& least = *std::min_element(
      std::begin(limits), std::end(limits),
      [](const Limit& left, const Limit& right) { return left.bytes < right.bytes; });
  // A record that is far from the limit needs no exact size.
  if (static_cast<std::int64_t>(payload_of(record) + 2 * kBatchHeaderBytes) <= least.bytes)
      [[likely]] {
    return {};
  }
  const std::size_t size = BatchBuilder::batch_size_of(record);
  if (static_cast<std::int64_t>(size) <= least.bytes) {
    return {};
  }
  return Error(
      Errc::kRecordTooLarge,
      fmt::format(
          "a record of {} bytes does not fit {}: {} is {}; split the record or raise the setting",
          size, open.name.to_string(), least.name, least.bytes));
}

bool Producer::Impl::has_room(std::size_t bytes) const {
  return buffered_ == 0 || buffered_ + bytes <= static_cast<std::size_t>(options_.buffer_memory);
}

Status Producer::Impl::wait_for_room(std::size_t bytes) {
  // A callback that waited would keep the room from being made.
  const Clock& clock = system_clock();
  const MonotonicTime deadline =
      clock.monotonic() + std::chrono::milliseconds(on_own_thread() ? 0 : options_.max_block_ms);
  while (!has_room(bytes)) {
    notifier_->notify();
    const Duration left = deadline - clock.monotonic();
    if (left <= Duration::zero()) {
      return Error(Errc::kTimedOut, fmt::format("buffer.memory ({} bytes) stayed full for "
                                                "max.block.ms ({}); the record was not taken",
                                                options_.buffer_memory, options_.max_block_ms));
    }
    progress_.wait_for(mutex_, left);
    if (closing_) {
      return closed();
    }
  }
  return {};
}

Producer::Impl::Sealed Producer::Impl::take_batch(Open& open) {
  Sealed batch;
  batch.name = open.name;
  batch.log = open.log;
  batch.number = next_number_++;
  batch.bytes = open.builder.size_bytes();
  batch.awaited = std::exchange(open.awaited, {});
  batch.delivery_end = open.delivery_end;
  unanswered_.insert(batch.number);
  return batch;
}

void Producer::Impl::seal(Open& open) {
  Sealed batch = take_batch(open);
  const std::int32_t count = open.builder.count();
  const Result<BatchBuilder::Producer> from = stamp(open);
  SharedBytes bytes = open.builder.seal(from.ok() ? *from : BatchBuilder::Producer());
  Result<Partition::Appended> appended =
      from.ok() ? open.log->append(std::move(bytes), AppendOrigin::kBuilder)
                : Result<Partition::Appended>(from.error());
  if (appended.ok()) {
    batch.appended = *appended;
    // A batch that was refused left nothing behind: the next one has its place.
    open.next_sequence = sequence_plus(open.next_sequence, count);
  } else {
    batch.failure = appended.status();
    transaction_failure_ = batch.failure;
  }
  sealed_.push_back(std::move(batch));
}

void Producer::Impl::append(const ProducerRecord& record, const RecordRef& encoded, Topic& topic,
                            Open& to, Callback done, Linger linger) {
  const std::size_t before = to.builder.empty() ? 0 : to.builder.size_bytes();
  std::size_t grown = 0;
  if (to.builder.append(encoded)) [[likely]] {
    grown = to.builder.size_bytes() - before;
  } else {
    seal(to);
    const bool taken = to.builder.append(encoded);
    WEIR_ASSERT(taken);  // the first record of a batch always fits
    grown = to.builder.size_bytes();
  }
  buffered_ += grown;
  const bool first = to.builder.count() == 1;
  if (first) {
    const MonotonicTime now = system_clock().monotonic();
    to.linger_end = now + std::chrono::milliseconds(options_.linger_ms);
    // As in Kafka, a longer linger.ms raises it.
    to.delivery_end =
        now + std::chrono::milliseconds(std::max(options_.delivery_timeout_ms, options_.linger_ms));
  }
  if (done) {
    to.awaited.push_back({to.builder.count() - 1, encoded.timestamp, size_of(record.key),
                          size_of(record.value), std::move(done)});
  }
  const bool at_once = options_.batch_size == 0 || linger == Linger::kNone;
  if (!record.partition) {
    const bool full = at_once || to.builder.size_bytes() >= to.batch_bytes;
    topic.partitioner.appended(record.key, to.name.partition, static_cast<std::int64_t>(grown),
                               full ? OpenBatch::kFull : OpenBatch::kTakesMore);
  }
  if (at_once) {
    seal(to);
  }
  if (first || at_once) {
    notifier_->notify();
  }
}

Status Producer::Impl::send(const ProducerRecord& record, Callback done, Linger linger) {
  if (record.timestamp < 0 && record.timestamp != kNoTimestamp) {
    return Error(Errc::kInvalidTimestamp,
                 fmt::format("timestamp {} of a record for topic {} is negative; it is "
                             "milliseconds since 1970",
                             record.timestamp, record.topic));
  }
  std::optional<PartitionId> chosen = record.partition;
  if (!chosen && options_.partition_function) {
    WEIR_TRY_ASSIGN(chosen, ask_partition_function(record));
  }
  const MutexLock lock(mutex_);
  if (closing_) {
    return closed();
  }
  WEIR_TRY(check_transaction("send()"));
  Status taken = take(record, chosen, std::move(done), linger);
  // KAFKA-9279: an error that the caller passes over must not end in a transaction with a hole.
  if (!taken.ok() && session_ != nullptr && session_->is_open() && !ending_ &&
      transaction_failure_.ok()) {
    transaction_failure_ = taken;
  }
  return taken;
}

Status Producer::Impl::take(const ProducerRecord& record, std::optional<PartitionId> chosen,
                            Callback done, Linger linger) {
  RecordRef encoded{record.key, record.value, record.timestamp, record.headers};
  if (encoded.timestamp == kNoTimestamp) {
    encoded.timestamp = directory_.clock().now();
  }
  WEIR_TRY_ASSIGN(Topic * to, topic(record.topic));
  const PartitionId partition =
      chosen ? *chosen
             : to->partitioner.choose(record.key, static_cast<std::int32_t>(to->partitions.size()),
                                      rng_);
  WEIR_TRY_ASSIGN(Open * target, open(*to, record.topic, partition));
  WEIR_TRY(check_record(*target, encoded));
  const std::size_t bytes = payload_of(encoded) + kBatchHeaderBytes;
  if (!has_room(bytes)) [[unlikely]] {
    WEIR_TRY(wait_for_room(bytes));
    WEIR_TRY(check_transaction("send()"));  // it may have ended meanwhile
    WEIR_TRY_ASSIGN(to, topic(record.topic));
    WEIR_TRY_ASSIGN(target, open(*to, record.topic, partition));
  }
  append(record, encoded, *to, *target, std::move(done), linger);
  return {};
}

Result<Producer::Future> Producer::Impl::send_future(const ProducerRecord& record, Linger linger) {
  // shared_ptr: std::function copies what it holds, and the answer may come before the return.
  const auto answered = std::make_shared<std::promise<Result<RecordMetadata>>>();
  WEIR_TRY(send(
      record, [answered](const Result<RecordMetadata>& answer) { answered->set_value(answer); },
      linger));
  return answered->get_future();
}

Result<RecordMetadata> Producer::Impl::send_sync(const ProducerRecord& record) {
  if (on_own_thread()) {
    return refuse_in_callback("send_sync()");
  }
  WEIR_TRY_ASSIGN(Future answered, send_future(record, Linger::kNone));
  return answered.get();
}

// Seals batches whose linger is over; returns when the next one's is.
MonotonicTime Producer::Impl::seal_due(MonotonicTime now, bool all) {
  MonotonicTime next = now + std::chrono::hours(1);
  for (auto& [name, topic] : topics_) {
    for (auto& open : topic.partitions) {
      if (!open || open->builder.empty()) {
        continue;
      }
      if (all || open->linger_end <= now) {
        seal(*open);
        topic.partitioner.sent(open->name.partition);
      } else {
        next = std::min(next, open->linger_end);
      }
    }
  }
  return next;
}

std::optional<Status> Producer::Impl::answer(const Sealed& batch, MonotonicTime now) const {
  if (!batch.failure.ok()) {
    return batch.failure;
  }
  if (options_.acks != Acks::kAll ||
      batch.log->offsets().high_watermark >= batch.appended.next_offset) {
    return Status();
  }
  if (Status health = batch.log->health(); !health.ok()) {
    return health;
  }
  const bool close_is_over = closing_ && now >= close_end_;
  if (now < batch.delivery_end && !close_is_over) {
    return std::nullopt;
  }
  return Error(
      Errc::kTimedOut,
      fmt::format("offsets {} to {} of {} were appended but not acknowledged {}; whether "
                  "they survive a crash is unknown",
                  batch.appended.base_offset.value(), batch.appended.next_offset.value() - 1,
                  batch.name.to_string(),
                  close_is_over ? "before close() gave up" : "within delivery.timeout.ms"));
}

// A partition's batches are answered in order, also when a later one is known to have failed.
Producer::Impl::Finished Producer::Impl::take_finished(MonotonicTime now, MonotonicTime* next) {
  Finished finished;
  std::deque<Sealed> waiting;
  std::unordered_set<const Partition*> blocked;
  for (Sealed& batch : sealed_) {
    std::optional<Status> status;
    if (!blocked.contains(batch.log.get())) {
      status = answer(batch, now);
    }
    if (status) {
      finished.emplace_back(std::move(batch), std::move(*status));
      continue;
    }
    *next = std::min(*next, batch.delivery_end);
    blocked.insert(batch.log.get());
    waiting.push_back(std::move(batch));
  }
  sealed_ = std::move(waiting);
  return finished;
}

// The deadline of close() is over: what was not written is not written any more.
void Producer::Impl::give_up() {
  lose_unsent(Error(Errc::kClosed, "the record was not written before close() gave up"));
}

void Producer::Impl::lose_unsent(const Error& why) {
  for (auto& [name, topic] : topics_) {
    for (auto& open : topic.partitions) {
      if (open && !open->builder.empty()) {
        Sealed lost = take_batch(*open);
        lost.failure = Error(why).with_context(open->name.to_string());
        sealed_.push_back(std::move(lost));
        open.reset();
      }
    }
  }
}

RecordMetadata Producer::Impl::metadata_of(const Sealed& batch, const Awaited& record) const {
  RecordMetadata metadata;
  metadata.partition = batch.name;
  metadata.offset =
      options_.acks == Acks::kNone ? kNoOffset : batch.appended.base_offset.plus(record.index);
  metadata.timestamp = batch.appended.log_append_time != kNoTimestamp
                           ? batch.appended.log_append_time
                           : record.timestamp;
  metadata.serialized_key_size = record.key_size;
  metadata.serialized_value_size = record.value_size;
  return metadata;
}

void Producer::Impl::finish(const Finished& finished) {
  for (const auto& [batch, status] : finished) {
    for (const Awaited& record : batch.awaited) {
      // A user's exception stops here: the records behind it have their callbacks, too.
      try {
        record.done(status.ok() ? Result<RecordMetadata>(metadata_of(batch, record))
                                : Result<RecordMetadata>(status.error()));
      } catch (const std::exception& thrown) {
        WEIR_ERROR("a producer's callback threw partition={} error=\"{}\"", batch.name.to_string(),
                   thrown.what());
      }
    }
  }
  const MutexLock lock(mutex_);
  for (const auto& [batch, status] : finished) {
    buffered_ -= batch.bytes;
    unanswered_.erase(batch.number);
    if (!status.ok() && first_error_.ok()) {
      first_error_ = status;
    }
  }
  progress_.notify_all();
}

void Producer::Impl::run() {
  for (;;) {
    const std::uint64_t seen = notifier_->generation();
    Finished finished;
    MonotonicTime next{};
    bool stop = false;
    {
      const MutexLock lock(mutex_);
      const MonotonicTime now = system_clock().monotonic();  // not before a close() that is seen
      if (closing_ && now >= close_end_) {
        give_up();
      }
      next = seal_due(now, closing_);
      if (closing_) {
        next = std::min(next, close_end_);
      }
      finished = take_finished(now, &next);
      stop = closing_ && sealed_.empty();
    }
    if (!finished.empty()) {
      finish(finished);
      continue;
    }
    if (stop) {
      return;
    }
    notifier_->wait(seen, next - system_clock().monotonic());
  }
}

Status Producer::Impl::flush() {
  if (on_own_thread()) {
    return refuse_in_callback("flush()");
  }
  const MutexLock lock(mutex_);
  seal_due(system_clock().monotonic(), true);
  notifier_->notify();
  wait_for_answers(next_number_);
  return std::exchange(first_error_, Status());
}

void Producer::Impl::wait_for_answers(std::uint64_t behind) {
  while (!unanswered_.empty() && *unanswered_.begin() < behind) {
    progress_.wait(mutex_);
  }
}

Status Producer::Impl::close(Duration timeout) {
  if (on_own_thread()) {
    return refuse_in_callback("close()");
  }
  {
    const MutexLock lock(mutex_);
    while (ending_) {  // bounded by the waits of the log
      progress_.wait(mutex_);
    }
    if (closing_) {
      return {};
    }
    if (session_ != nullptr && session_->is_open()) {
      lose_unsent(Error(Errc::kInvalidTxnState, "its transaction was aborted by close()"));
    }
    closing_ = true;
    close_end_ = deadline_in(system_clock().monotonic(), timeout);
    progress_.notify_all();
  }
  notifier_->notify();
  thread_.join();
  const MutexLock lock(mutex_);
  if (session_ != nullptr && session_->is_open() && !session_->is_undecided()) {
    if (const Result<TransactionOutcome> aborted = session_->end(false); !aborted.ok()) {
      WEIR_WARN("open transaction not aborted, its timeout does it id={} error=\"{}\"",
                options_.transactional_id, aborted.error().message());
    }
    first_error_ = Status();
  }
  return std::exchange(first_error_, Status());
}

Producer::Producer(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
Producer::~Producer() = default;

Result<std::unique_ptr<Producer>> Producer::open(EmbeddedLog& log, ProducerOptions options) {
  if (log.state_->directory->read_only()) {
    return Error(Errc::kReadOnly, "a producer needs a log that was opened for writing");
  }
  LogDirectory& directory = *log.state_->directory;
  if (!options.transactional_id.empty() &&
      (options.acks != Acks::kAll || !options.enable_idempotence)) {
    return Error(Errc::kInvalidConfig,
                 "producer: transactional.id needs enable.idempotence=true and acks=all");
  }
  ProducerId id = kNoProducerId;
  if (options.transactional_id.empty() && options.enable_idempotence &&
      options.acks == Acks::kAll) {
    WEIR_TRY_ASSIGN(id, directory.next_producer_id());
  }
  return std::unique_ptr<Producer>(
      new Producer(std::make_unique<Impl>(directory, std::move(options), id)));
}

Status Producer::send(const ProducerRecord& record, Callback done) {
  return impl_->send(record, std::move(done), Impl::Linger::kAsSet);
}
Result<Producer::Future> Producer::send_future(const ProducerRecord& record) {
  return impl_->send_future(record, Impl::Linger::kAsSet);
}
Result<RecordMetadata> Producer::send_sync(const ProducerRecord& record) {
  return impl_->send_sync(record);
}
Status Producer::flush() {
  return impl_->flush();
}
Status Producer::close(Duration timeout) {
  return impl_->close(timeout);
}
Status Producer::init_transactions() {
  return impl_->init_transactions();
}
Status Producer::begin_transaction() {
  return impl_->begin_transaction();
}
Status Producer::send_offsets_to_transaction(std::span<const PartitionOffset> offsets,
                                             const GroupMetadata& group) {
  return impl_->send_offsets(offsets, group);
}
Status Producer::commit_transaction() {
  return impl_->end_transaction(true);
}
Status Producer::abort_transaction() {
  return impl_->end_transaction(false);
}

}  // namespace weir::log
