#include "operators/app/worker.h"

#include <weir/runtime/commit_metadata.h>
#include <weir/runtime/logger.h>

#include <fmt/core.h>

#include <algorithm>
#include <chrono>
#include <utility>

// The commit of a thread, its checkpoints and what follows from them.

namespace weir::internal {

namespace {

// Counts the bytes that a store sends to its changelog.
class CountingSink final : public RecordSink {
 public:
  explicit CountingSink(RecordSink& sink) : sink_(sink) {}

  Result<SinkTopicInfo> open_topic(const std::string& name) override {
    return sink_.open_topic(name);
  }
  Status send(SinkTopic topic, PartitionId partition, std::span<const RecordRef> records) override {
    for (const RecordRef& record : records) {
      bytes_ += record.key.size() + record.value.size();
    }
    return sink_.send(topic, partition, records);
  }
  Result<std::vector<FlushedPartition>> flush() override { return sink_.flush(); }
  Status begin() override { return sink_.begin(); }
  Status send_offsets(std::span<const std::pair<TopicPartition, CommittedOffset>> offsets,
                      const GroupMetadata& group) override {
    return sink_.send_offsets(offsets, group);
  }
  Result<TransactionOutcome> end(bool commit) override { return sink_.end(commit); }

  std::uint64_t bytes() const { return bytes_; }

 private:
  RecordSink& sink_;
  std::uint64_t bytes_ = 0;
};

}  // namespace

bool Worker::commit_is_due() const {
  bool has_work = false;
  for (const std::unique_ptr<Task>& task : tasks_) {
    has_work = has_work || task->has_work();
    if (task->wants_commit()) {
      return true;
    }
    for (const std::unique_ptr<TaskStore>& store : task->stores()) {
      if (store->store->needs_early_commit()) {
        return true;
      }
    }
  }
  const auto interval = std::chrono::milliseconds(core_.options().commit_interval_ms);
  return core_.now() - last_commit_ >= interval && (has_work || !offsets_to_commit().empty());
}

Worker::Offsets Worker::offsets_to_commit() const {
  Offsets offsets;
  for (const Input& input : inputs_) {
    const PartitionGroup& fifos = input.task->fifos();
    const Offset position = fifos.position(input.fifo);
    if (!input.gone && position != input.committed) {
      offsets.push_back(
          {input.partition,
           {position, fifos.leader_epoch(input.fifo),
            encode_commit_metadata(
                {.partition_time = fifos.partition_time(input.fifo), .processors = {}})}});
    }
  }
  return offsets;
}

Status Worker::commit() {
  commit_pending_ = true;
  for (const std::unique_ptr<Task>& task : tasks_) {
    WEIR_TRY(task->flush_results());
  }
  WEIR_TRY(write_changelogs());
  WEIR_TRY_ASSIGN(const std::vector<FlushedPartition> flushed, sink_->flush());
  Offsets offsets = offsets_to_commit();
  WEIR_TRY(commit_offsets(offsets));
  WEIR_TRY(promote(flushed));
  after_commit(offsets);
  return {};
}

Status Worker::write_changelogs() {
  for (const std::unique_ptr<Task>& task : tasks_) {
    for (const std::unique_ptr<TaskStore>& store : task->stores()) {
      store->in_commit = !store->store->scope_empty();
      if (store->in_commit) {
        CountingSink sink(*sink_);
        WEIR_TRY(store->store->write_changelog(sink, store->changelog_topic.handle,
                                               store->changelog.partition));
        store->changelog_bytes += sink.bytes();
      }
    }
  }
  return {};
}

// Takes out the partitions of input topics that were deleted; true if there were any.
bool Worker::forget_gone(Offsets& offsets) {
  bool found = false;
  for (Input& input : inputs_) {
    if (input.gone || core_.is_repartition(input.partition.topic)) {
      continue;
    }
    const Result<TopicDescription> topic =
        core_.backend().admin().describe_topic(input.partition.topic);
    if (topic.ok() || topic.error().code() != Errc::kUnknownTopic) {
      continue;
    }
    found = true;
    input.gone = true;
    input.task->fifos().reset(input.fifo);
    core_.topic_gone(input.partition.topic);
    std::erase_if(offsets, [&](const auto& offset) { return offset.first == input.partition; });
  }
  return found;
}

Status Worker::commit_offsets(Offsets& offsets) {
  if (offsets.empty()) {
    return {};
  }
  Status committed = group_->commit(offsets);
  if (!committed.ok() && committed.error().code() == Errc::kUnknownTopic && forget_gone(offsets)) {
    committed = offsets.empty() ? Status() : group_->commit(offsets);
  }
  return committed;
}

Status Worker::promote(const std::vector<FlushedPartition>& flushed) {
  for (const std::unique_ptr<Task>& task : tasks_) {
    for (const std::unique_ptr<TaskStore>& store : task->stores()) {
      if (!store->in_commit) {
        continue;
      }
      const auto end =
          std::find_if(flushed.begin(), flushed.end(), [&](const FlushedPartition& partition) {
            return partition.topic == store->changelog_topic.handle &&
                   partition.partition == store->changelog.partition;
          });
      if (end == flushed.end()) {
        return Error(Errc::kInternal, fmt::format("the log did not report the end of {}",
                                                  store->changelog.to_string()));
      }
      WEIR_TRY(store->store->promote({store->changelog_topic.id, end->end_offset, end->leader_epoch,
                                      core_.environment().clock.now()}));
      store->in_commit = false;
    }
  }
  return {};
}

void Worker::after_commit(const Offsets& offsets) {
  std::vector<std::pair<TopicPartition, Offset>> published;
  for (const auto& [partition, committed] : offsets) {
    published.emplace_back(partition, committed.offset);
    for (Input& input : inputs_) {
      if (input.partition == partition) {
        input.committed = committed.offset;
      }
    }
  }
  core_.publish_commit(published);
  for (const std::unique_ptr<Task>& task : tasks_) {
    task->clear_work();
    for (const std::unique_ptr<TaskStore>& store : task->stores()) {
      store->cache->committed();
    }
  }
  metrics_.commits.add(1);
  commit_pending_ = false;
  failing_since_.reset();
  last_commit_ = core_.now();
  purge_repartition_topics();
}

Status Worker::tend_checkpoints() {
  const auto interval = std::chrono::milliseconds(core_.options().checkpoint_interval_ms);
  const auto bytes_max = static_cast<std::uint64_t>(core_.options().checkpoint_changelog_bytes);
  for (const std::unique_ptr<Task>& task : tasks_) {
    for (const std::unique_ptr<TaskStore>& store : task->stores()) {
      if (Status polled = store->store->poll_checkpoint(); !polled.ok()) {
        // Nothing is lost: the keys are dirty again and the next one writes them.
        WEIR_WARN("checkpoint failed store={} partition={} error=\"{}\"", store->name,
                  store->changelog.partition.value(), polled.error().to_string());
      }
      const bool is_due =
          core_.now() - store->last_checkpoint >= interval || store->changelog_bytes >= bytes_max;
      if (is_due && !store->store->checkpoint_running()) {
        store->last_checkpoint = core_.now();
        store->changelog_bytes = 0;
        WEIR_TRY(store->store->begin_checkpoint());
      }
    }
  }
  return {};
}

Status Worker::checkpoint_all() {
  for (const std::unique_ptr<Task>& task : tasks_) {
    for (const std::unique_ptr<TaskStore>& store : task->stores()) {
      if (core_.now() >= deadline_) {
        WEIR_WARN(
            "deadline passed before store was checkpointed store={} partition={}: the next "
            "start reads more of its changelog",
            store->name, store->changelog.partition.value());
        continue;
      }
      WEIR_TRY(store->store->begin_checkpoint());
      WEIR_TRY(store->store->wait_checkpoint());
    }
  }
  return {};
}

// Records of repartition topics are of no use once they are committed (KIP-811).
void Worker::purge_repartition_topics() {
  const auto interval = std::chrono::milliseconds(core_.options().repartition_purge_interval_ms);
  if (cannot_purge_ || core_.now() - last_purge_ < interval) {
    return;
  }
  last_purge_ = core_.now();
  for (Input& input : inputs_) {
    if (!core_.is_repartition(input.partition.topic) || input.committed <= input.purged) {
      continue;
    }
    Status purged = core_.backend().admin().delete_records(input.partition, input.committed);
    if (purged.ok()) {
      input.purged = input.committed;
      continue;
    }
    if (purged.error().code() == Errc::kUnsupported) {
      cannot_purge_ = true;
      WEIR_INFO("repartition topics keep what was read: this log deletes no records thread={}",
                index_);
      return;
    }
    WEIR_WARN("repartition topic was not emptied partition={} error=\"{}\"",
              input.partition.to_string(), purged.error().to_string());
  }
}

}  // namespace weir::internal
