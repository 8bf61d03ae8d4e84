#pragma once

#include <weir/log/embedded_log.h>
#include <weir/runtime/backend.h>

#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>

namespace weir::log {

struct ProducerOptions {
  bool acks_all = true;                       // acks: all, or 1 (acknowledged by the append)
  std::int64_t batch_size = 16'384;           // batch.size, bytes
  std::int64_t linger_ms = 5;                 // linger.ms: how long a batch waits for more records
  std::int64_t buffer_memory = 33'554'432;    // buffer.memory: bytes not yet acknowledged
  std::int64_t max_block_ms = 60'000;         // max.block.ms: longest wait for room
  std::int64_t max_request_size = 1'048'576;  // max.request.size: largest record

  // By Kafka's names. Errors: kInvalidConfig with every mistake.
  static Result<ProducerOptions> parse(const std::map<std::string, std::string>& settings);
};

struct ProducerRecord {
  std::string topic;
  std::optional<PartitionId>
      partition;  // nullopt: by the key; without a key sticky by bytes (KIP-794)
  NullableBytes key;
  NullableBytes value;
  Timestamp timestamp = kNoTimestamp;  // kNoTimestamp: now
  HeadersView headers;
};

// Where a record went.
struct RecordMetadata {
  TopicPartition partition;
  Offset offset;
};

// Writes records from any thread, batched by partition.
//
// Threading: thread-safe. Callbacks run on the producer's own thread, in the order of a partition;
// they
//            must not call back into the producer.
// Order:     records of one partition keep the order of the sends.
// Bounds:    buffer.memory; a full buffer blocks send() up to max.block.ms, then kTimedOut.
class Producer {
 public:
  using Callback = std::function<void(const Result<RecordMetadata>&)>;

  // `log` outlives the producer.
  static Result<std::unique_ptr<Producer>> open(EmbeddedLog& log, ProducerOptions options = {});
  // flush(), then stops.
  ~Producer();

  // Encodes the record; its bytes may be reused on return. `done` runs once the record is
  // acknowledged (acks=all: it survives a power cut on an fsync topic), or lost with an error.
  // Errors: kUnknownTopic, kRecordTooLarge, kTimedOut, kClosed: `done` does not run then.
  Status send(const ProducerRecord& record, Callback done = {});
  // Waits until everything sent is acknowledged. Errors: the first of a lost batch since the last
  // flush().
  Status flush();

 private:
  class Impl;
  explicit Producer(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

}  // namespace weir::log
