#pragma once

#include <weir/runtime/backend.h>
#include <weir/runtime/clock.h>
#include <weir/runtime/rng.h>
#include <weir/runtime/testing/memory_backend.h>
#include <weir/runtime/thread_annotations.h>

#include <cstdint>
#include <deque>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

// What the parts of MemoryBackend share: topics, groups, faults.

namespace weir::testing::memory {

// Records of one send, in one allocation. Immutable once it is in a partition.
struct Batch {
  std::string bytes;
  RecordViews records;  // views of `bytes`

  // Copies `records`; their offsets are relative to the batch until it is appended.
  static std::shared_ptr<Batch> encode(std::span<const RecordRef> records, Timestamp now);
  Offset base() const { return records.front().offset; }
  Offset next() const { return records.back().offset.next(); }
};

// Bytes of a record batch v2 with this record alone, what max.message.bytes is compared with.
std::size_t encoded_size(const RecordRef& record);

struct Partition {
  // shared_ptr: blocks that were polled outlive delete_records() and delete_topic().
  std::deque<std::shared_ptr<const Batch>> batches;
  Offset log_start{0};
  Offset log_end{0};

  // Index of the batch that holds `offset` or is the first behind it; batches.size() at the end.
  std::size_t find_batch(Offset offset) const;
  // Gives the batch its offsets and returns the new end.
  Offset append(std::shared_ptr<Batch> batch);
  void delete_before(Offset offset);
};

struct Topic {
  std::string name;
  Uuid id;
  TopicConfig config;
  std::size_t message_bytes_max = 0;
  bool ordered = false;  // weir.ordered
  std::vector<Partition> partitions;

  TopicDescription describe() const;
  // What this backend acts on, and whatever else was set.
  std::vector<TopicSetting> settings() const;
};

using Offsets = std::vector<std::pair<TopicPartition, CommittedOffset>>;

// The backend gives all partitions to the member that joined last.
struct GroupState {
  std::map<TopicPartition, CommittedOffset> offsets;
  std::string member_id;  // empty: no member
  std::int32_t generation = 0;
};

// Threading: everything under `mutex`; `changed` is signalled when a source may have something new.
class Log {
 public:
  explicit Log(const Clock& the_clock);

  Mutex mutex;
  CondVar changed;
  const Clock& clock;

  Result<TopicDescription> create_topic(const TopicSpec& spec) WEIR_REQUIRES(mutex);
  Status delete_topic(const std::string& name) WEIR_REQUIRES(mutex);
  Status grow_topic(const std::string& name, std::int32_t partitions, OrderedGrowth ordered)
      WEIR_REQUIRES(mutex);
  Status alter_topic(const std::string& name, const TopicConfig& set,
                     const std::vector<std::string>& remove) WEIR_REQUIRES(mutex);
  // Null when there is none. With an id: also null when the topic was made anew since.
  Topic* find_topic(const std::string& name) WEIR_REQUIRES(mutex);
  Topic* find_topic(const std::string& name, const Uuid& id) WEIR_REQUIRES(mutex);
  Result<Topic*> topic(const std::string& name) WEIR_REQUIRES(mutex);
  Result<Partition*> partition(const TopicPartition& partition) WEIR_REQUIRES(mutex);
  const std::map<std::string, Topic>& topics() const WEIR_REQUIRES(mutex) { return topics_; }

  GroupState& group(const std::string& group_id) WEIR_REQUIRES(mutex) { return groups_[group_id]; }
  const std::map<std::string, GroupState>& groups() const WEIR_REQUIRES(mutex) { return groups_; }
  // Errors: kUnknownTopic, kInvalidArgument (metadata too long, negative offset).
  Status check_offsets(std::span<const std::pair<TopicPartition, CommittedOffset>> offsets)
      WEIR_REQUIRES(mutex);
  void put_offsets(const std::string& group_id, const Offsets& offsets) WEIR_REQUIRES(mutex);

  // A new sink with this transactional id fences the sinks before it.
  std::uint64_t fence_producers(const std::string& transactional_id) WEIR_REQUIRES(mutex);
  bool is_fenced(const std::string& transactional_id, std::uint64_t epoch) WEIR_REQUIRES(mutex);

  // The error that fail_next() planned for this call, once.
  void plan_fault(MemoryBackend::FaultPoint point, Error error) WEIR_REQUIRES(mutex);
  Status take_fault(MemoryBackend::FaultPoint point) WEIR_REQUIRES(mutex);

 private:
  std::map<std::string, Topic> topics_ WEIR_GUARDED_BY(mutex);
  std::map<std::string, GroupState> groups_ WEIR_GUARDED_BY(mutex);
  std::map<std::string, std::uint64_t> producer_epochs_ WEIR_GUARDED_BY(mutex);
  std::map<MemoryBackend::FaultPoint, std::deque<Error>> faults_ WEIR_GUARDED_BY(mutex);
  Rng rng_ WEIR_GUARDED_BY(mutex);
};

std::unique_ptr<RecordSource> make_source(Log& log, const SourceOptions& options);
std::unique_ptr<RecordSink> make_sink(Log& log, const SinkOptions& options);
std::unique_ptr<Group> make_group(Log& log, const std::string& group_id);

}  // namespace weir::testing::memory
