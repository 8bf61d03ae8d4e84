#pragma once

#include <weir/log/embedded_log.h>
#include <weir/runtime/backend.h>

#include <functional>
#include <future>
#include <map>
#include <memory>
#include <optional>
#include <string>

namespace weir::log {

enum class Acks {
  kAll,   // acks=all: below the high watermark; on an fsync topic it survives a power cut
  kOne,   // acks=1: appended
  kNone,  // acks=0: handed to the log; the answer has no offset
};

enum class Partitioner {
  kDefault,     // by the key as Java does; without one sticky by bytes (KIP-794)
  kRoundRobin,  // every partition in turn, also with a key
};

// Partition of a record that names none, 0 to `partitions` - 1. Thread-safe: called on the threads
// that send.
using PartitionFunction =
    std::function<std::int32_t(const std::string& topic, const NullableBytes& key,
                               const NullableBytes& value, std::int32_t partitions)>;

// Names in brackets are Kafka's settings, which parse() reads.
struct ProducerOptions {
  Acks acks = Acks::kAll;
  std::int64_t batch_size = 16'384;           // batch.size, bytes
  std::int64_t linger_ms = 5;                 // linger.ms: how long a batch waits for more records
  std::int64_t buffer_memory = 33'554'432;    // buffer.memory: bytes not yet acknowledged
  std::int64_t max_block_ms = 60'000;         // max.block.ms: longest wait for room
  std::int64_t max_request_size = 1'048'576;  // max.request.size: largest record, as a batch alone
  // delivery.timeout.ms: from a batch's first record to its acknowledgement; at least linger.ms.
  std::int64_t delivery_timeout_ms = 120'000;
  // enable.idempotence: the batches carry a producer id and sequences, so that the log takes none
  // twice and none out of order; as a Kafka client would send them. Only with acks=all.
  bool enable_idempotence = true;
  Partitioner partitioner = Partitioner::kDefault;  // partitioner.class: default, round_robin
  bool partitioner_ignore_keys = false;             // partitioner.ignore.keys, for kDefault
  PartitionFunction partition_function;             // set: used instead of `partitioner`
  // compression.type and its level; a topic with a compression.type of its own overrides it.
  Compression compression;

  // By Kafka's names. Errors: kInvalidConfig with every mistake.
  static Result<ProducerOptions> parse(const std::map<std::string, std::string>& settings);
};

struct ProducerRecord {
  std::string topic;
  std::optional<PartitionId> partition;  // nullopt: the partitioner chooses
  NullableBytes key;
  NullableBytes value;
  Timestamp timestamp = kNoTimestamp;  // kNoTimestamp: now
  HeadersView headers;
};

// Where a record went.
struct RecordMetadata {
  TopicPartition partition;
  Offset offset;  // kNoOffset with acks=0
  // The record's, or when it was appended (message.timestamp.type=LogAppendTime).
  Timestamp timestamp = kNoTimestamp;
  std::int32_t serialized_key_size = -1;  // bytes; -1 null
  std::int32_t serialized_value_size = -1;

  bool has_offset() const { return offset != kNoOffset; }
};

// Writes records from any thread, batched by partition.
//
// Threading: thread-safe; close() and the destructor are called by one thread. Callbacks run on the
//            producer's own thread, each exactly once for a record that was taken, in the order of
//            a partition. They may send(), which then does not wait for room; what waits
//            (send_sync, flush, close) refuses to be called by them.
// Order:     records of one partition keep the order of the sends.
// Bounds:    buffer.memory; a full buffer blocks send() up to max.block.ms, then kTimedOut.
class Producer {
 public:
  using Callback = std::function<void(const Result<RecordMetadata>&)>;
  using Future = std::future<Result<RecordMetadata>>;

  // `log` outlives the producer. Errors: kReadOnly; with idempotence kIo, kNoSpace, kTimedOut when
  // no producer id could be had.
  static Result<std::unique_ptr<Producer>> open(EmbeddedLog& log, ProducerOptions options = {});
  // close() without a deadline.
  ~Producer();

  // Encodes the record; its bytes may be reused on return. `done` runs once the record is
  // acknowledged, or lost with an error: what the append said, kUnknownTopic (deleted meanwhile),
  // kTimedOut (delivery.timeout.ms: the outcome is unknown), kClosed (close() gave up before it was
  // written).
  // Errors, then the record was not taken and `done` does not run: kUnknownTopic (also a partition
  // that does not exist), kInvalidArgument (a partition function's answer), kHandlerThrew (the
  // partition function), kInvalidTimestamp, kRecordTooLarge (names the setting), kTimedOut (no
  // room), kClosed.
  Status send(const ProducerRecord& record, Callback done = {});
  // The same with a future, which always gets its answer.
  Result<Future> send_future(const ProducerRecord& record);
  // Sends its batch at once, without linger.ms, and waits for the answer.
  Result<RecordMetadata> send_sync(const ProducerRecord& record);
  // Waits until everything sent before is answered. Errors: the first of a lost batch since the
  // last flush().
  Status flush();
  // No send() from now on; waits until everything is answered. At the deadline what was not
  // written fails with kClosed, what was not acknowledged with kTimedOut. Idempotent.
  // Errors: as flush().
  Status close(Duration timeout = Duration::max());

 private:
  class Impl;
  explicit Producer(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

}  // namespace weir::log
