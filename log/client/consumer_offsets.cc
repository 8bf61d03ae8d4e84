#include "log/client/commit_queue.h"
#include "log/client/fetches.h"
#include "log/client/membership.h"
#include "log/client/offset_reset.h"

#include <weir/log/consumer.h>
#include <weir/runtime/logger.h>

#include <fmt/core.h>

#include <algorithm>

// Consumer: positions, commits and what can be asked about offsets.

namespace weir::log {
namespace {

Result<std::uint32_t> index_of(const Fetches& fetches, const TopicPartition& partition) {
  const std::optional<std::uint32_t> index = fetches.find(partition);
  if (!index) {
    return Error(Errc::kInvalidArgument,
                 fmt::format("{} is not assigned to this consumer; assign() it or subscribe() to "
                             "its topic first",
                             partition.to_string()));
  }
  return *index;
}

// All of them or none.
Result<std::vector<std::uint32_t>> indices_of(const Fetches& fetches,
                                              const std::vector<TopicPartition>& partitions) {
  std::vector<std::uint32_t> indices;
  for (const TopicPartition& partition : partitions) {
    WEIR_TRY_ASSIGN(const std::uint32_t index, index_of(fetches, partition));
    indices.push_back(index);
  }
  return indices;
}

Status seek_all_later(Fetches& fetches, const std::vector<TopicPartition>& partitions,
                      OffsetReset::Kind kind) {
  WEIR_TRY_ASSIGN(std::vector<std::uint32_t> indices, indices_of(fetches, partitions));
  if (partitions.empty()) {
    for (std::uint32_t i = 0; i < fetches.all().size(); ++i) {
      indices.push_back(i);
    }
  }
  for (const std::uint32_t index : indices) {
    fetches.seek_later(index, OffsetReset{kind, {}});
  }
  return {};
}

Status check_offsets(const ConsumerOffsets& offsets) {
  for (const auto& [partition, committed] : offsets) {
    if (committed.offset < Offset(0)) {
      return Error(Errc::kInvalidArgument,
                   fmt::format("offset {} cannot be committed for {}: offsets count from 0",
                               committed.offset.value(), partition.to_string()));
    }
  }
  return {};
}

}  // namespace

Status Consumer::seek(const TopicPartition& partition, Offset offset) {
  WEIR_TRY(check_open());
  WEIR_TRY_ASSIGN(const std::uint32_t index, index_of(*fetches_, partition));
  return fetches_->seek(index, offset, kNoLeaderEpoch);
}

Status Consumer::seek_to_beginning(const std::vector<TopicPartition>& partitions) {
  WEIR_TRY(check_open());
  return seek_all_later(*fetches_, partitions, OffsetReset::Kind::kEarliest);
}

Status Consumer::seek_to_end(const std::vector<TopicPartition>& partitions) {
  WEIR_TRY(check_open());
  return seek_all_later(*fetches_, partitions, OffsetReset::Kind::kLatest);
}

Status Consumer::seek_to_time(const TopicPartition& partition, Timestamp time) {
  WEIR_TRY(check_open());
  WEIR_TRY_ASSIGN(const std::uint32_t index, index_of(*fetches_, partition));
  WEIR_TRY_ASSIGN(std::optional<Offset> found, backend_.admin().offset_for_time(partition, time));
  if (!found) {
    WEIR_TRY_ASSIGN(const PartitionOffsets at, backend_.admin().offsets(partition));
    found = end_of(at, options_.isolation_level);
  }
  return fetches_->seek(index, *found, kNoLeaderEpoch);
}

Status Consumer::pause(const std::vector<TopicPartition>& partitions) {
  WEIR_TRY(check_open());
  WEIR_TRY_ASSIGN(const std::vector<std::uint32_t> indices, indices_of(*fetches_, partitions));
  for (const std::uint32_t index : indices) {
    fetches_->pause(index);
  }
  return {};
}

Status Consumer::resume(const std::vector<TopicPartition>& partitions) {
  WEIR_TRY(check_open());
  WEIR_TRY_ASSIGN(const std::vector<std::uint32_t> indices, indices_of(*fetches_, partitions));
  for (const std::uint32_t index : indices) {
    fetches_->resume(index);
  }
  return {};
}

std::vector<TopicPartition> Consumer::paused() const {
  std::vector<TopicPartition> partitions;
  for (const Fetches::Assigned& assigned : fetches_->all()) {
    if (assigned.paused) {
      partitions.push_back(*assigned.name);
    }
  }
  return partitions;
}

Result<Offset> Consumer::position(const TopicPartition& partition) {
  WEIR_TRY(check_open());
  WEIR_TRY_ASSIGN(const std::uint32_t index, index_of(*fetches_, partition));
  if (fetches_->at(index).position == kNoOffset) {
    WEIR_TRY(find_positions({&index, 1}));
  }
  const Fetches::Assigned& assigned = fetches_->at(index);
  if (assigned.position == kNoOffset) {
    return assigned.failure.ok()
               ? Error(Errc::kUnknownTopic, fmt::format("topic {} was deleted", partition.topic))
               : assigned.failure.error();
  }
  return assigned.position;
}

Result<std::int64_t> Consumer::current_lag(const TopicPartition& partition) {
  WEIR_TRY_ASSIGN(const Offset at, position(partition));
  WEIR_TRY_ASSIGN(const PartitionOffsets log, backend_.admin().offsets(partition));
  return std::max<std::int64_t>(0, end_of(log, options_.isolation_level).value() - at.value());
}

Result<std::optional<std::int64_t>> Consumer::committed_lag(const TopicPartition& partition) {
  WEIR_TRY_ASSIGN(const std::optional<CommittedOffset> at, committed(partition));
  WEIR_TRY_ASSIGN(const PartitionOffsets log, backend_.admin().offsets(partition));
  if (!at) {
    return std::optional<std::int64_t>();
  }
  return std::optional(std::max<std::int64_t>(
      0, end_of(log, options_.isolation_level).value() - at->offset.value()));
}

Result<std::map<TopicPartition, Offset>> Consumer::beginning_offsets(
    const std::vector<TopicPartition>& partitions) {
  WEIR_TRY(check_open());
  std::map<TopicPartition, Offset> offsets;
  for (const TopicPartition& partition : partitions) {
    WEIR_TRY_ASSIGN(const PartitionOffsets at, backend_.admin().offsets(partition));
    offsets[partition] = at.log_start;
  }
  return offsets;
}

Result<std::map<TopicPartition, Offset>> Consumer::end_offsets(
    const std::vector<TopicPartition>& partitions) {
  WEIR_TRY(check_open());
  std::map<TopicPartition, Offset> offsets;
  for (const TopicPartition& partition : partitions) {
    WEIR_TRY_ASSIGN(const PartitionOffsets at, backend_.admin().offsets(partition));
    offsets[partition] = end_of(at, options_.isolation_level);
  }
  return offsets;
}

Result<std::optional<OffsetAndTimestamp>> Consumer::offset_for_time(RecordSource& reader,
                                                                    const TopicPartition& partition,
                                                                    Timestamp time) {
  WEIR_TRY_ASSIGN(const std::optional<Offset> found,
                  backend_.admin().offset_for_time(partition, time));
  if (!found) {
    return std::optional<OffsetAndTimestamp>();
  }
  WEIR_TRY(reader.assign({partition}));
  WEIR_TRY(reader.seek(0, *found));
  WEIR_TRY_ASSIGN(const std::vector<RecordBlock> blocks, reader.poll(Duration::zero()));
  for (const RecordBlock& block : blocks) {
    WEIR_TRY(block.status);
    if (!block.records.empty()) {
      const RecordView& record = block.records.front();
      return std::optional(OffsetAndTimestamp{record.offset, record.timestamp, block.leader_epoch});
    }
  }
  return std::optional<OffsetAndTimestamp>();  // above the high watermark yet
}

Result<std::map<TopicPartition, std::optional<OffsetAndTimestamp>>> Consumer::offsets_for_times(
    const std::map<TopicPartition, Timestamp>& times) {
  WEIR_TRY(check_open());
  SourceOptions one_batch;
  one_batch.poll_bytes_max = 1;
  one_batch.check_crcs = options_.check_crcs;
  WEIR_TRY_ASSIGN(const std::unique_ptr<RecordSource> reader, backend_.make_source(one_batch));
  std::map<TopicPartition, std::optional<OffsetAndTimestamp>> found;
  for (const auto& [partition, time] : times) {
    if (time < 0) {
      return Error(Errc::kInvalidArgument,
                   fmt::format("time {} asked of {} is negative; it is milliseconds since 1970",
                               time, partition.to_string()));
    }
    WEIR_TRY_ASSIGN(found[partition], offset_for_time(*reader, partition, time));
  }
  return found;
}

// A position in a topic that is gone means nothing in one that has its name now.
Status Consumer::check_topic(const TopicPartition& partition, const Uuid& read_id) {
  if (read_id.is_zero()) {
    return {};
  }
  WEIR_TRY_ASSIGN(const TopicDescription now, backend_.admin().describe_topic(partition.topic));
  if (now.id != read_id) {
    return Error(Errc::kUnknownTopic,
                 fmt::format("topic {} was deleted and made again since {} was read; seek, then "
                             "commit",
                             partition.topic, partition.to_string()));
  }
  return {};
}

Result<ConsumerOffsets> Consumer::positions() {
  ConsumerOffsets offsets;
  for (const Fetches::Assigned& assigned : fetches_->all()) {
    if (assigned.position != kNoOffset) {
      WEIR_TRY(check_topic(*assigned.name, assigned.topic_id));
      offsets[*assigned.name] = CommittedOffset{assigned.position, assigned.leader_epoch, ""};
    }
  }
  return offsets;
}

ConsumerOffsets Consumer::uncommitted() {
  ConsumerOffsets offsets;
  for (const Fetches::Assigned& assigned : fetches_->all()) {
    if (assigned.position != kNoOffset && assigned.committed != assigned.position &&
        check_topic(*assigned.name, assigned.topic_id).ok()) {
      offsets[*assigned.name] = CommittedOffset{assigned.position, assigned.leader_epoch, ""};
    }
  }
  return offsets;
}

void Consumer::note_committed(const ConsumerOffsets& offsets) {
  for (const auto& [partition, committed] : offsets) {
    if (const auto index = fetches_->find(partition)) {
      fetches_->at(*index).committed = committed.offset;
    }
  }
}

bool Consumer::commits_automatically() const {
  return group_ != nullptr && options_.auto_commit;
}

void Consumer::auto_commit_if_due() {
  if (!commits_automatically() || clock_.monotonic() < next_auto_commit_) {
    return;
  }
  next_auto_commit_ = clock_.monotonic() + options_.auto_commit_interval;
  ConsumerOffsets offsets = uncommitted();
  if (offsets.empty()) {
    return;
  }
  commits_->run_callbacks();
  commits_->commit_async(
      std::move(offsets), [this](const ConsumerOffsets& done, const Status& result) {
        if (result.ok()) {
          note_committed(done);
        } else {
          WEIR_WARN("automatic commit failed and is tried again group={} error=\"{}\"",
                    options_.group_id, result.error().to_string());
        }
      });
}

Status Consumer::auto_commit_now() {
  if (!commits_automatically()) {
    return {};
  }
  commits_->drain();
  commits_->run_callbacks();
  const ConsumerOffsets offsets = uncommitted();
  Status result = commits_->commit(offsets);
  if (result.ok()) {
    note_committed(offsets);
  } else {
    WEIR_WARN("automatic commit failed, records may be read again group={} error=\"{}\"",
              options_.group_id, result.error().to_string());
  }
  return result;
}

Status Consumer::commit() {
  WEIR_TRY(check_group("commit"));
  WEIR_TRY_ASSIGN(const ConsumerOffsets offsets, positions());
  return commit(offsets);
}

Status Consumer::commit(const ConsumerOffsets& offsets) {
  WEIR_TRY(check_group("commit"));
  WEIR_TRY(check_offsets(offsets));
  commits_->drain();
  commits_->run_callbacks();
  WEIR_TRY(commits_->commit(offsets));
  note_committed(offsets);
  return {};
}

Status Consumer::commit_async(CommitCallback done) {
  WEIR_TRY(check_group("commit"));
  WEIR_TRY_ASSIGN(ConsumerOffsets offsets, positions());
  return commit_async(std::move(offsets), std::move(done));
}

Status Consumer::commit_async(ConsumerOffsets offsets, CommitCallback done) {
  WEIR_TRY(check_group("commit"));
  WEIR_TRY(check_offsets(offsets));
  commits_->run_callbacks();
  commits_->commit_async(
      std::move(offsets),
      [this, done = std::move(done)](const ConsumerOffsets& offsets_done, const Status& result) {
        if (result.ok()) {
          note_committed(offsets_done);
        }
        if (done) {
          done(offsets_done, result);
        }
      });
  return {};
}

Result<std::optional<CommittedOffset>> Consumer::committed(const TopicPartition& partition) {
  WEIR_TRY_ASSIGN(auto offsets, committed(std::vector<TopicPartition>{partition}));
  return std::move(offsets.begin()->second);
}

Result<std::map<TopicPartition, std::optional<CommittedOffset>>> Consumer::committed(
    const std::vector<TopicPartition>& partitions) {
  WEIR_TRY(check_open());
  std::vector<std::optional<CommittedOffset>> found(partitions.size());
  if (group_) {
    commits_->drain();
    WEIR_TRY_ASSIGN(found, group_->committed(partitions));
  }
  std::map<TopicPartition, std::optional<CommittedOffset>> offsets;
  for (std::size_t i = 0; i < partitions.size(); ++i) {
    offsets[partitions[i]] = std::move(found[i]);
  }
  return offsets;
}

}  // namespace weir::log
