#pragma once

#include <weir/operators/internal/flow.h>
#include <weir/runtime/backend.h>
#include <weir/runtime/record.h>

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <vector>

namespace weir::internal {

// Where a record's bytes stand in SinkBuffer::bytes(): begin() was called before the key was
// appended, key_end and the nulls are the caller's.
struct SinkMark {
  std::size_t begin = 0;
  std::size_t key_end = 0;
  bool key_is_null = false;
  bool value_is_null = false;
};

// Records of one task on their way to one topic: serialised into one growing arena, handed to the
// RecordSink as spans of one partition, never record by record.
//
// Partition: masked murmur2 of the key's bytes (Kafka's default); records without a key stay on one
//            partition from flush to flush and then move on.
// Order:     records of one partition keep the order of add(), whichever node added them.
// Bounds:    flushed when a partition has `records_max` records or the arena `kBytesMax` bytes.
// Errors:    a record that the log refuses for what it is follows the production policy if it was
//            sent alone, as those of `kAloneBytes` and more are under kContinue or with dead
//            letters; else the task fails, as it does when a dead letter is refused.
// Threading: confined to the task.
class SinkBuffer {
 public:
  static constexpr std::size_t kRecordsMax = 256;
  static constexpr std::size_t kBytesMax = 256U << 10U;
  static constexpr std::size_t kAloneBytes = 1U << 10U;

  // Borrows all. `topic` is for messages; `records_max` at most kRecordsMax.
  SinkBuffer(RecordSink& sink, std::string topic, SinkTopicInfo info, TaskContext& task,
             std::size_t records_max = kRecordsMax);

  // The arena: append the key, then the value, then call add().
  std::string& bytes() { return bytes_; }
  // The record of `flow`: its timestamp and headers.
  void add(const SinkMark& mark, const Flow& flow) {
    add(mark, flow.record.timestamp, flow.record.headers, flow);
  }
  // With headers of its own; `flow` is what an error is about.
  void add(const SinkMark& mark, Timestamp timestamp, HeadersView headers, const Flow& flow);
  // Hands everything to the sink. An error makes the task fail.
  void flush();
  // Forgets what was not handed over.
  void clear();
  std::uint64_t sent() const { return sent_; }

 private:
  struct Entry {
    std::size_t begin;
    std::size_t key_end;
    std::size_t value_end;
    std::size_t headers_end;
    Timestamp timestamp;
    std::uint32_t header_count;
    std::uint32_t partition;
    bool key_is_null;
    bool value_is_null;
  };
  std::uint32_t choose_partition(const SinkMark& mark);
  void send(std::uint32_t partition, std::span<const RecordRef> records, const Flow* flow);
  void flush(const Flow* flow);

  RecordSink& sink_;
  std::string topic_;
  SinkTopicInfo info_;
  TaskContext& task_;
  std::size_t records_max_;
  std::string bytes_;
  std::vector<Entry> entries_;
  std::vector<std::uint32_t> counts_;  // by partition
  std::vector<RecordRef> refs_;
  std::vector<std::uint32_t> starts_;
  std::uint32_t keyless_partition_ = 0;
  std::uint64_t sent_ = 0;
};

// Buffers of topics that are chosen record by record, opened when they are first written to.
//
// Bounds:    kTopicsMax topics; a record for one more is rejected.
// Threading: confined to the task.
class DynamicSinks {
 public:
  static constexpr std::size_t kTopicsMax = 1000;

  DynamicSinks(RecordSink& sink, TaskContext& task, std::size_t records_max)
      : sink_(sink), task_(task), records_max_(records_max) {}

  // Null when the topic does not exist (the record was rejected: production) or the log does not
  // answer (the task failed and is made again).
  SinkBuffer* find_or_open(const std::string& topic, const Flow& flow);
  void flush();

 private:
  RecordSink& sink_;
  TaskContext& task_;
  std::size_t records_max_;
  std::map<std::string, std::unique_ptr<SinkBuffer>, std::less<>> buffers_;
};

}  // namespace weir::internal
