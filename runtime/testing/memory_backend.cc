#include "runtime/testing/memory_log.h"

#include <weir/runtime/testing/memory_backend.h>

#include <fmt/core.h>

#include <algorithm>
#include <utility>

namespace weir::testing {

class MemoryBackend::AdminImpl final : public Admin {
 public:
  explicit AdminImpl(memory::Log& log) : log_(log) {}

  Result<TopicDescription> create_topic(const TopicSpec& spec) override {
    MutexLock lock(log_.mutex);
    return log_.create_topic(spec);
  }

  Result<std::vector<TopicDescription>> list_topics() override {
    MutexLock lock(log_.mutex);
    std::vector<TopicDescription> descriptions;
    for (const auto& [name, topic] : log_.topics()) {
      descriptions.push_back(topic.describe());
    }
    return descriptions;
  }

  Result<TopicDescription> describe_topic(const std::string& name) override {
    MutexLock lock(log_.mutex);
    WEIR_TRY_ASSIGN(const memory::Topic* topic, log_.topic(name));
    return topic->describe();
  }

  Status delete_topic(const std::string& name) override {
    MutexLock lock(log_.mutex);
    return log_.delete_topic(name);
  }

  Result<PartitionOffsets> offsets(const TopicPartition& partition) override {
    MutexLock lock(log_.mutex);
    WEIR_TRY_ASSIGN(const memory::Partition* found, log_.partition(partition));
    return PartitionOffsets{found->log_start, found->log_end, found->log_end, found->log_end,
                            LeaderEpoch(0)};
  }

  Result<std::optional<Offset>> offset_for_time(const TopicPartition& partition,
                                                Timestamp time) override {
    MutexLock lock(log_.mutex);
    WEIR_TRY_ASSIGN(const memory::Partition* found, log_.partition(partition));
    for (const auto& batch : found->batches) {
      for (const RecordView& record : batch->records) {
        if (record.offset >= found->log_start && record.timestamp >= time) {
          return std::optional(record.offset);
        }
      }
    }
    return std::optional<Offset>();
  }

  Result<std::optional<Offset>> epoch_end_offset(const TopicPartition& partition,
                                                 LeaderEpoch epoch) override {
    MutexLock lock(log_.mutex);
    WEIR_TRY_ASSIGN(const memory::Partition* found, log_.partition(partition));
    // Everything is written in epoch 0.
    return epoch < LeaderEpoch(0) ? std::optional<Offset>() : std::optional(found->log_end);
  }

  Result<std::optional<Offset>> tombstone_horizon(const TopicPartition& partition) override {
    MutexLock lock(log_.mutex);
    WEIR_TRY_ASSIGN(const memory::Partition* found, log_.partition(partition));
    return std::optional(found->log_start);  // nothing is ever compacted
  }

  Status delete_records(const TopicPartition& partition, Offset before) override {
    MutexLock lock(log_.mutex);
    WEIR_TRY_ASSIGN(memory::Partition * found, log_.partition(partition));
    if (before == kNoOffset) {
      before = found->log_end;
    }
    if (before < Offset(0) || before > found->log_end) {
      return Error(Errc::kOffsetOutOfRange,
                   fmt::format("records of {} cannot be deleted before offset {}; the log holds {} "
                               "to {}",
                               partition.to_string(), before.value(), found->log_start.value(),
                               found->log_end.value()));
    }
    found->delete_before(before);
    log_.changed.notify_all();
    return {};
  }

  Status grow_topic(const std::string& name, std::int32_t partitions,
                    OrderedGrowth ordered) override {
    MutexLock lock(log_.mutex);
    return log_.grow_topic(name, partitions, ordered);
  }

  Status alter_topic(const std::string& name, const TopicConfig& set,
                     const std::vector<std::string>& remove) override {
    MutexLock lock(log_.mutex);
    return log_.alter_topic(name, set, remove);
  }

  Result<std::vector<TopicSetting>> topic_settings(const std::string& name) override {
    MutexLock lock(log_.mutex);
    WEIR_TRY_ASSIGN(const memory::Topic* topic, log_.topic(name));
    return topic->settings();
  }

  Result<std::vector<std::string>> list_groups() override {
    MutexLock lock(log_.mutex);
    std::vector<std::string> ids;
    for (const auto& [id, group] : log_.groups()) {
      if (!group.offsets.empty()) {
        ids.push_back(id);
      }
    }
    return ids;
  }

  Result<std::vector<PartitionOffset>> group_offsets(const std::string& group) override {
    MutexLock lock(log_.mutex);
    const auto found = log_.groups().find(group);
    return found == log_.groups().end()
               ? std::vector<PartitionOffset>()
               : std::vector<PartitionOffset>(found->second.offsets.begin(),
                                              found->second.offsets.end());
  }

  Status delete_group_offsets(const std::string& group,
                              std::span<const TopicPartition> partitions) override {
    MutexLock lock(log_.mutex);
    WEIR_TRY(log_.take_fault(FaultPoint::kCommit));
    for (const TopicPartition& partition : partitions) {
      log_.group(group).offsets.erase(partition);
    }
    return {};
  }

 private:
  memory::Log& log_;
};

struct MemoryBackend::State {
  explicit State(const Clock& clock) : log(clock), admin(log) {}

  memory::Log log;
  AdminImpl admin;
};

MemoryBackend::MemoryBackend(const Clock& clock) : state_(std::make_unique<State>(clock)) {}

MemoryBackend::~MemoryBackend() = default;

Admin& MemoryBackend::admin() {
  return state_->admin;
}

Result<std::unique_ptr<RecordSource>> MemoryBackend::make_source(const SourceOptions& options) {
  return memory::make_source(state_->log, options);
}

Result<std::unique_ptr<RecordSink>> MemoryBackend::make_sink(const SinkOptions& options) {
  return memory::make_sink(state_->log, options);
}

Result<std::unique_ptr<Group>> MemoryBackend::make_group(const std::string& group_id) {
  if (group_id.empty()) {
    return Error(Errc::kInvalidArgument, "a group needs an id; the given one is empty");
  }
  return memory::make_group(state_->log, group_id);
}

void MemoryBackend::fail_next(FaultPoint point, Error error) {
  MutexLock lock(state_->log.mutex);
  state_->log.plan_fault(point, std::move(error));
}

std::vector<MemoryBackend::OwnedRecord> MemoryBackend::records(
    const TopicPartition& partition) const {
  MutexLock lock(state_->log.mutex);
  std::vector<OwnedRecord> owned;
  Result<memory::Partition*> found = state_->log.partition(partition);
  if (!found.ok()) {
    return owned;
  }
  for (const auto& batch : (*found)->batches) {
    for (const RecordView& record : batch->records) {
      if (record.offset >= (*found)->log_start) {
        owned.push_back({record.key.to_owned(), record.value.to_owned(), record.offset,
                         record.timestamp, Headers(record.headers)});
      }
    }
  }
  return owned;
}

}  // namespace weir::testing
