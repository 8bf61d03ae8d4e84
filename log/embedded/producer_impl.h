#pragma once

#include "log/client/topic_partitioner.h"
#include "log/client/transaction_session.h"
#include "log/embedded/embedded_log_state.h"
#include "log/partition/await.h"
#include "log/record/batch_builder.h"

#include <weir/log/producer.h>
#include <weir/runtime/logger.h>
#include <weir/runtime/rng.h>
#include <weir/runtime/thread_annotations.h>

#include <chrono>
#include <deque>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <thread>
#include <unordered_map>
#include <utility>
#include <vector>

namespace weir::log {

// The producer: producer.cc, and producer_transactions.cc for its transactions.
// Threading: as Producer.
class Producer::Impl {
 public:
  // `id`: kNoProducerId without idempotence.
  Impl(LogDirectory& directory, ProducerOptions options, ProducerId id)
      : directory_(directory),
        options_(std::move(options)),
        id_(id),
        rng_(entropy_seed()),
        notifier_(std::make_shared<Notifier>()) {
    thread_ = std::thread([this] { run(); });
    own_thread_ = thread_.get_id();
  }
  ~Impl() { close(Duration::max()).ignore("the caller had flush() or close() to learn of it"); }
  Impl(const Impl&) = delete;
  Impl& operator=(const Impl&) = delete;

  enum class Linger { kAsSet, kNone };
  Status send(const ProducerRecord& record, Callback done, Linger linger);
  Result<Future> send_future(const ProducerRecord& record, Linger linger);
  Result<RecordMetadata> send_sync(const ProducerRecord& record);
  Status flush();
  Status close(Duration timeout);

  Status init_transactions();
  Status begin_transaction();
  Status send_offsets(std::span<const PartitionOffset> offsets, const GroupMetadata& group);
  Status end_transaction(bool commit);

 private:
  Status take(const ProducerRecord& record, std::optional<PartitionId> partition, Callback done,
              Linger linger) WEIR_REQUIRES(mutex_);
  // A record that somebody waits for.
  struct Awaited {
    std::int32_t index = 0;  // in its batch
    Timestamp timestamp = kNoTimestamp;
    std::int32_t key_size = -1;
    std::int32_t value_size = -1;
    Callback done;
  };
  struct Open {  // one partition's open batch
    TopicPartition name;
    std::shared_ptr<Partition> log;
    std::unique_ptr<WatermarkWaiter> waiter;
    PartitionSettings settings;  // the topic's, as of the last change
    BatchBuilder builder;
    std::size_t batch_bytes = 0;  // the builder's bound
    std::vector<Awaited> awaited;
    MonotonicTime linger_end{};    // of the open batch
    MonotonicTime delivery_end{};  // of the open batch
    std::int32_t next_sequence = 0;
  };
  // A batch that was sealed; in the order of sealing, so a partition's are in order.
  struct Sealed {
    TopicPartition name;
    std::shared_ptr<Partition> log;
    std::uint64_t number = 0;
    std::size_t bytes = 0;
    std::vector<Awaited> awaited;
    MonotonicTime delivery_end{};
    Status failure;  // of the append
    Partition::Appended appended{};
  };
  struct Topic {
    explicit Topic(const TopicPartitioner::Options& options) : partitioner(options) {}
    Uuid id;
    std::vector<std::unique_ptr<Open>> partitions;
    TopicPartitioner partitioner;
  };
  using Finished = std::vector<std::pair<Sealed, Status>>;

  bool on_own_thread() const { return std::this_thread::get_id() == own_thread_; }
  Error refuse_in_callback(const char* call) const;
  Error closed() const;

  Result<Topic*> topic(const std::string& name) WEIR_REQUIRES(mutex_);
  void refresh_topics() WEIR_REQUIRES(mutex_);
  void drop(Topic& topic, const std::string& name) WEIR_REQUIRES(mutex_);
  Result<Open*> open(Topic& topic, const std::string& name, PartitionId partition)
      WEIR_REQUIRES(mutex_);
  Result<PartitionId> ask_partition_function(const ProducerRecord& record) WEIR_EXCLUDES(mutex_);
  Status check_record(const Open& open, const RecordRef& record) const;
  bool has_room(std::size_t bytes) const WEIR_REQUIRES(mutex_);
  // Lets go of the lock while it waits, so topics may go.
  Status wait_for_room(std::size_t bytes) WEIR_REQUIRES(mutex_);
  void append(const ProducerRecord& record, const RecordRef& encoded, Topic& topic, Open& to,
              Callback done, Linger linger) WEIR_REQUIRES(mutex_);
  Compression compression_of(const Open& open) const;
  void follow_topic(Open& open) WEIR_REQUIRES(mutex_);
  Sealed take_batch(Open& open) WEIR_REQUIRES(mutex_);
  void seal(Open& open) WEIR_REQUIRES(mutex_);
  MonotonicTime seal_due(MonotonicTime now, bool all) WEIR_REQUIRES(mutex_);
  // The answer, or nullopt while it is to be waited for.
  std::optional<Status> answer(const Sealed& batch, MonotonicTime now) const WEIR_REQUIRES(mutex_);
  Finished take_finished(MonotonicTime now, MonotonicTime* next) WEIR_REQUIRES(mutex_);
  void give_up() WEIR_REQUIRES(mutex_);
  void lose_unsent(const Error& why) WEIR_REQUIRES(mutex_);
  // --- producer_transactions.cc
  Status check_transaction(std::string_view call) const WEIR_REQUIRES(mutex_);
  Status check_end(bool commit) const WEIR_REQUIRES(mutex_);
  Error cannot_commit() const WEIR_REQUIRES(mutex_);
  Result<BatchBuilder::Producer> stamp(Open& open) WEIR_REQUIRES(mutex_);
  void wait_for_answers(std::uint64_t behind) WEIR_REQUIRES(mutex_);
  RecordMetadata metadata_of(const Sealed& batch, const Awaited& record) const;
  void finish(const Finished& finished) WEIR_EXCLUDES(mutex_);
  void run();

  LogDirectory& directory_;
  const ProducerOptions options_;
  const ProducerId id_;
  Mutex mutex_;
  CondVar progress_;  // batches were answered, or the producer closes
  Rng rng_ WEIR_GUARDED_BY(mutex_);
  std::unordered_map<std::string, Topic> topics_ WEIR_GUARDED_BY(mutex_);
  std::uint64_t topics_seen_ WEIR_GUARDED_BY(mutex_) = 0;
  std::deque<Sealed> sealed_ WEIR_GUARDED_BY(mutex_);
  std::uint64_t next_number_ WEIR_GUARDED_BY(mutex_) = 0;
  std::set<std::uint64_t> unanswered_ WEIR_GUARDED_BY(mutex_);  // numbers of sealed batches
  std::size_t buffered_ WEIR_GUARDED_BY(mutex_) = 0;            // bytes of open and sealed batches
  Status first_error_ WEIR_GUARDED_BY(mutex_);
  bool closing_ WEIR_GUARDED_BY(mutex_) = false;
  MonotonicTime close_end_ WEIR_GUARDED_BY(mutex_){};
  // Null without a transactional id and before init_transactions(). Used under the lock, but for
  // the end of a transaction: while ending_ nobody else uses it.
  std::unique_ptr<TransactionSession> session_;
  bool ending_ WEIR_GUARDED_BY(mutex_) = false;
  Status transaction_failure_ WEIR_GUARDED_BY(mutex_);  // it can only be aborted
  std::shared_ptr<Notifier> notifier_;
  std::thread thread_;
  std::thread::id own_thread_;
};

}  // namespace weir::log
