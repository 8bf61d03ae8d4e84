#include "log/embedded/embedded_log_state.h"
#include "log/partition/await.h"
#include "log/record/batch_builder.h"

#include <weir/log/producer.h>
#include <weir/runtime/murmur2.h>
#include <weir/runtime/rng.h>
#include <weir/runtime/settings.h>
#include <weir/runtime/thread_annotations.h>

#include <fmt/core.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <deque>
#include <thread>
#include <unordered_map>
#include <vector>

namespace weir::log {
namespace {

struct ProducerSettings {
  std::string acks = "all";
  std::int64_t batch_size = 16'384;
  std::int64_t linger_ms = 5;
  std::int64_t buffer_memory = 33'554'432;
  std::int64_t max_block_ms = 60'000;
  std::int64_t max_request_size = 1'048'576;
};

using P = Property<ProducerSettings>;
const std::array kProperties{
    P{.name = "acks",
      .member = &ProducerSettings::acks,
      .one_of = "all,-1,1",
      .doc = "all: on disk (fsync topics). 1: appended."},
    P{.name = "batch.size",
      .member = &ProducerSettings::batch_size,
      .min = 0,
      .max = 64 << 20,
      .doc = "Bytes of a batch; 0 batches nothing."},
    P{.name = "linger.ms",
      .member = &ProducerSettings::linger_ms,
      .min = 0,
      .max = INT32_MAX,
      .doc = "How long a batch waits for more records."},
    P{.name = "buffer.memory",
      .member = &ProducerSettings::buffer_memory,
      .min = 1,
      .doc = "Bytes that are not acknowledged yet; more makes send() wait."},
    P{.name = "max.block.ms",
      .member = &ProducerSettings::max_block_ms,
      .min = 0,
      .doc = "Longest wait of send()."},
    P{.name = "max.request.size",
      .member = &ProducerSettings::max_request_size,
      .min = 0,
      .max = INT32_MAX,
      .doc = "Largest record, as a batch of its own."},
};

}  // namespace

Result<ProducerOptions> ProducerOptions::parse(const std::map<std::string, std::string>& settings) {
  WEIR_TRY_ASSIGN(const ProducerSettings read,
                  parse_settings<ProducerSettings>("producer", kProperties, settings));
  ProducerOptions options;
  options.acks_all = read.acks != "1";
  options.batch_size = read.batch_size;
  options.linger_ms = read.linger_ms;
  options.buffer_memory = read.buffer_memory;
  options.max_block_ms = read.max_block_ms;
  options.max_request_size = read.max_request_size;
  return options;
}

class Producer::Impl {
 public:
  Impl(LogDirectory& directory, ProducerOptions options)
      : directory_(directory),
        options_(options),
        rng_(entropy_seed()),
        notifier_(std::make_shared<Notifier>()) {
    thread_ = std::thread([this] { run(); });
  }
  ~Impl() {
    flush().ignore("the caller had flush() to learn of it");
    {
      const MutexLock lock(mutex_);
      stopping_ = true;
    }
    notifier_->notify();
    thread_.join();
  }
  Impl(const Impl&) = delete;
  Impl& operator=(const Impl&) = delete;

  Status send(const ProducerRecord& record, Callback done);
  Status flush();

 private:
  struct Open {  // one partition's open batch
    TopicPartition name;
    std::shared_ptr<Partition> log;
    std::unique_ptr<WatermarkWaiter> waiter;
    BatchBuilder builder;
    std::vector<std::pair<std::int32_t, Callback>> callbacks;  // index in the batch
    MonotonicTime deadline{};                                  // of the open batch
  };
  struct InFlight {
    TopicPartition name;
    std::shared_ptr<Partition> log;
    Offset base;
    Offset end;
    std::size_t bytes = 0;
    std::vector<std::pair<std::int32_t, Callback>> callbacks;
  };
  struct Topic {
    Uuid id;
    std::vector<std::unique_ptr<Open>> partitions;
    std::int32_t sticky = -1;
    std::int64_t sticky_bytes = 0;
  };
  using Finished = std::vector<std::pair<InFlight, Status>>;

  Result<Topic*> topic(const std::string& name) WEIR_REQUIRES(mutex_);
  void drop_deleted_topics() WEIR_REQUIRES(mutex_);
  Result<Open*> open(Topic& topic, const std::string& name, PartitionId partition)
      WEIR_REQUIRES(mutex_);
  PartitionId choose(Topic& topic, const ProducerRecord& record) WEIR_REQUIRES(mutex_);
  Status check_size(const Open& open, const RecordRef& record) const;
  Status wait_for_room(std::size_t bytes) WEIR_REQUIRES(mutex_);
  void seal(Open& open) WEIR_REQUIRES(mutex_);
  MonotonicTime seal_due(MonotonicTime now, bool all) WEIR_REQUIRES(mutex_);
  Finished take_finished() WEIR_REQUIRES(mutex_);
  void finish(Finished finished) WEIR_EXCLUDES(mutex_);
  void run();

  LogDirectory& directory_;
  const ProducerOptions options_;
  Mutex mutex_;
  CondVar progress_;  // acknowledged or failed
  Rng rng_ WEIR_GUARDED_BY(mutex_);
  std::unordered_map<std::string, Topic> topics_ WEIR_GUARDED_BY(mutex_);
  std::uint64_t topics_seen_ WEIR_GUARDED_BY(mutex_) = 0;
  std::deque<InFlight> in_flight_ WEIR_GUARDED_BY(mutex_);
  Finished failed_ WEIR_GUARDED_BY(mutex_);            // appends that failed, for their callbacks
  std::size_t buffered_ WEIR_GUARDED_BY(mutex_) = 0;   // bytes in open and in-flight batches
  std::size_t finishing_ WEIR_GUARDED_BY(mutex_) = 0;  // batches whose callbacks run
  Status first_error_ WEIR_GUARDED_BY(mutex_);
  bool stopping_ WEIR_GUARDED_BY(mutex_) = false;
  std::shared_ptr<Notifier> notifier_;
  std::thread thread_;
};

Result<Producer::Impl::Topic*> Producer::Impl::topic(const std::string& name) {
  const std::uint64_t now = directory_.topic_generation();
  if (now != topics_seen_) {
    topics_seen_ = now;
    drop_deleted_topics();
  }
  const auto found = topics_.find(name);
  if (found != topics_.end()) {
    return &found->second;
  }
  WEIR_TRY_ASSIGN(const TopicDescription description, directory_.describe_topic(name));
  Topic fresh;
  fresh.id = description.id;
  fresh.partitions.resize(static_cast<std::size_t>(description.partitions));
  return &(topics_[name] = std::move(fresh));
}

// What was not appended yet is lost with its topic; its callbacks hear of it.
void Producer::Impl::drop_deleted_topics() {
  for (auto topic = topics_.begin(); topic != topics_.end();) {
    const Result<TopicDescription> now = directory_.describe_topic(topic->first);
    if (now.ok() && now->id == topic->second.id) {
      ++topic;
      continue;
    }
    for (auto& open : topic->second.partitions) {
      if (open && !open->builder.empty()) {
        InFlight lost{open->name,
                      open->log,
                      kNoOffset,
                      kNoOffset,
                      open->builder.size_bytes(),
                      std::move(open->callbacks)};
        failed_.emplace_back(
            std::move(lost),
            Error(Errc::kUnknownTopic, fmt::format("topic {} was deleted", topic->first)));
      }
    }
    topic = topics_.erase(topic);
  }
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
    constexpr std::int64_t kSmallestBatch = 512;
    // A full batch must be one that the topic takes.
    const std::int64_t batch_bytes = std::min(std::max(options_.batch_size, kSmallestBatch),
                                              log->options().settings.batch_bytes_max());
    slot.reset(new Open{std::move(full),
                        std::move(log),
                        std::move(waiter),
                        BatchBuilder(static_cast<std::size_t>(batch_bytes)),
                        {},
                        MonotonicTime{}});
  }
  return slot.get();
}

PartitionId Producer::Impl::choose(Topic& topic, const ProducerRecord& record) {
  const auto count = static_cast<std::int32_t>(topic.partitions.size());
  if (record.partition) {
    return *record.partition;
  }
  if (count == 1) {
    return PartitionId(0);
  }
  if (!record.key.is_null()) {
    return partition_for_key(record.key.view(), count);
  }
  // KIP-794: stay until batch.size bytes went there, then a random other.
  if (topic.sticky < 0 || topic.sticky_bytes >= options_.batch_size) {
    topic.sticky = static_cast<std::int32_t>(rng_.below(static_cast<std::uint64_t>(count)));
    topic.sticky_bytes = 0;
  }
  topic.sticky_bytes += static_cast<std::int64_t>(record.value.size() + kBatchHeaderBytes);
  return PartitionId(topic.sticky);
}

Status Producer::Impl::check_size(const Open& open, const RecordRef& record) const {
  const PartitionSettings& settings = open.log->options().settings;
  const std::int64_t topic_limit = settings.batch_bytes_max();
  const bool by_topic = topic_limit < options_.max_request_size;
  const std::int64_t limit = by_topic ? topic_limit : options_.max_request_size;
  // A record that is far from the limit needs no exact size.
  const std::size_t payload =
      record.key.size() + record.value.size() + record.headers.encoded().size();
  if (static_cast<std::int64_t>(payload + 2 * kBatchHeaderBytes) <= limit) [[likely]] {
    return {};
  }
  const std::size_t size = BatchBuilder::batch_size_of(record);
  if (static_cast<std::int64_t>(size) <= limit) {
    return {};
  }
  return Error(
      Errc::kRecordTooLarge,
      fmt::format(
          "a record of {} bytes does not fit {}: {} is {}; split the record or raise the setting",
          size, open.name.to_string(), by_topic ? settings.batch_limit_name() : "max.request.size",
          limit));
}

Status Producer::Impl::wait_for_room(std::size_t bytes) {
  const auto bound = static_cast<std::size_t>(options_.buffer_memory);
  if (buffered_ == 0 || buffered_ + bytes <= bound) [[likely]] {
    return {};  // the clock is read only for a wait
  }
  const Clock& clock = system_clock();
  const MonotonicTime deadline =
      clock.monotonic() + std::chrono::milliseconds(options_.max_block_ms);
  while (buffered_ > 0 && buffered_ + bytes > bound) {
    notifier_->notify();
    const Duration left = deadline - clock.monotonic();
    if (left <= Duration::zero()) {
      return Error(Errc::kTimedOut, fmt::format("buffer.memory ({} bytes) stayed full for "
                                                "max.block.ms ({}); the record was not taken",
                                                options_.buffer_memory, options_.max_block_ms));
    }
    progress_.wait_for(mutex_, left);
  }
  return {};
}

void Producer::Impl::seal(Open& open) {
  InFlight batch{open.name,
                 open.log,
                 kNoOffset,
                 kNoOffset,
                 open.builder.size_bytes(),
                 std::move(open.callbacks)};
  open.callbacks.clear();
  Result<Partition::Appended> appended =
      open.log->append(open.builder.seal(), AppendOrigin::kBuilder);
  if (!appended.ok()) {
    failed_.emplace_back(std::move(batch), appended.status());
    return;
  }
  batch.base = appended->base_offset;
  batch.end = appended->next_offset;
  in_flight_.push_back(std::move(batch));
}

Status Producer::Impl::send(const ProducerRecord& record, Callback done) {
  const MutexLock lock(mutex_);
  RecordRef encoded{record.key, record.value, record.timestamp, record.headers};
  if (encoded.timestamp == kNoTimestamp) {
    encoded.timestamp = directory_.clock().now();
  }
  WEIR_TRY(wait_for_room(record.key.size() + record.value.size() + record.headers.encoded().size() +
                         kBatchHeaderBytes));
  WEIR_TRY_ASSIGN(Topic * to, topic(record.topic));
  WEIR_TRY_ASSIGN(Open * target, open(*to, record.topic, choose(*to, record)));
  WEIR_TRY(check_size(*target, encoded));
  const std::size_t before = target->builder.empty() ? 0 : target->builder.size_bytes();
  if (!target->builder.append(encoded)) {
    seal(*target);
    const bool taken = target->builder.append(encoded);
    WEIR_ASSERT(taken);  // the first record of a batch always fits
    buffered_ += target->builder.size_bytes();
  } else {
    buffered_ += target->builder.size_bytes() - before;
  }
  const bool first = target->builder.count() == 1;
  if (first) {
    target->deadline = system_clock().monotonic() + std::chrono::milliseconds(options_.linger_ms);
  }
  if (done) {
    target->callbacks.emplace_back(target->builder.count() - 1, std::move(done));
  }
  if (options_.batch_size == 0) {
    seal(*target);
  }
  if (first || options_.batch_size == 0) {
    notifier_->notify();
  }
  return {};
}

// Seals batches whose linger is over; returns the next deadline.
MonotonicTime Producer::Impl::seal_due(MonotonicTime now, bool all) {
  MonotonicTime next = now + std::chrono::hours(1);
  for (auto& [name, topic] : topics_) {
    for (auto& open : topic.partitions) {
      if (!open || open->builder.empty()) {
        continue;
      }
      if (all || open->deadline <= now) {
        seal(*open);
      } else {
        next = std::min(next, open->deadline);
      }
    }
  }
  return next;
}

Producer::Impl::Finished Producer::Impl::take_finished() {
  Finished finished = std::move(failed_);
  failed_.clear();
  std::deque<InFlight> waiting;
  for (InFlight& batch : in_flight_) {
    const bool acknowledged =
        !options_.acks_all || batch.log->offsets().high_watermark >= batch.end;
    Status health = acknowledged ? Status() : batch.log->health();
    if (acknowledged || !health.ok()) {
      finished.emplace_back(std::move(batch), std::move(health));
    } else {
      waiting.push_back(std::move(batch));
    }
  }
  in_flight_ = std::move(waiting);
  finishing_ += finished.size();
  return finished;
}

void Producer::Impl::finish(Finished finished) {
  for (const auto& [batch, status] : finished) {
    for (const auto& [index, done] : batch.callbacks) {
      if (status.ok()) {
        done(RecordMetadata{batch.name, batch.base.plus(index)});
      } else {
        done(status.error());
      }
    }
  }
  const MutexLock lock(mutex_);
  for (const auto& [batch, status] : finished) {
    buffered_ -= batch.bytes;
    if (!status.ok() && first_error_.ok()) {
      first_error_ = status;
    }
  }
  finishing_ -= finished.size();
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
      next = seal_due(system_clock().monotonic(), stopping_);
      finished = take_finished();
      stop = stopping_ && in_flight_.empty();
    }
    if (!finished.empty()) {
      finish(std::move(finished));
      continue;
    }
    if (stop) {
      return;
    }
    notifier_->wait(seen, next - system_clock().monotonic());
  }
}

Status Producer::Impl::flush() {
  const MutexLock lock(mutex_);
  seal_due(system_clock().monotonic(), true);
  notifier_->notify();
  while (!in_flight_.empty() || !failed_.empty() || finishing_ > 0) {
    progress_.wait(mutex_);
  }
  Status result = std::move(first_error_);
  first_error_ = Status();
  return result;
}

Producer::Producer(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
Producer::~Producer() = default;

Result<std::unique_ptr<Producer>> Producer::open(EmbeddedLog& log, ProducerOptions options) {
  if (log.state_->directory->read_only()) {
    return Error(Errc::kReadOnly, "a producer needs a log that was opened for writing");
  }
  return std::unique_ptr<Producer>(
      new Producer(std::make_unique<Impl>(*log.state_->directory, options)));
}

Status Producer::send(const ProducerRecord& record, Callback done) {
  return impl_->send(record, std::move(done));
}
Status Producer::flush() {
  return impl_->flush();
}

}  // namespace weir::log
