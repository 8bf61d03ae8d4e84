#include "log/stored/stored_source.h"

#include "log/client/record_block.h"

#include <fmt/core.h>

#include <algorithm>

namespace weir::log {

StoredSource::StoredSource(StoredTopics& topics, const SourceOptions& options)
    : topics_(topics),
      options_(options),
      committed_only_(options.read_committed ||
                      topics.isolation() == IsolationLevel::kReadCommitted) {}

Status StoredSource::assign(std::vector<TopicPartition> partitions) {
  assigned_.clear();
  for (TopicPartition& name : partitions) {
    Assigned assigned;
    assigned.name = std::move(name);
    assigned_.push_back(std::move(assigned));
  }
  next_ = 0;
  return {};
}

Status StoredSource::seek(std::uint32_t assignment, Offset offset) {
  if (assignment >= assigned_.size() || offset < Offset(0)) {
    return Error(Errc::kInvalidArgument, fmt::format("cannot seek assignment {} of {} to offset {}",
                                                     assignment, assigned_.size(), offset.value()));
  }
  assigned_[assignment].position = offset;
  assigned_[assignment].failed = false;
  return {};
}

Offset StoredSource::position(std::uint32_t assignment) const {
  return assignment < assigned_.size() ? assigned_[assignment].position : kNoOffset;
}

void StoredSource::pause(std::uint32_t assignment) {
  if (assignment < assigned_.size()) {
    assigned_[assignment].paused = true;
  }
}

void StoredSource::resume(std::uint32_t assignment) {
  if (assignment < assigned_.size()) {
    assigned_[assignment].paused = false;
  }
}

void StoredSource::wakeup() {
  woken_.store(true, std::memory_order_release);
  notifier_.notify();
}

Offset StoredSource::end_of(const Assigned& assigned) const {
  const PartitionOffsets& offsets = assigned.log->offsets();
  return committed_only_ ? offsets.last_stable : offsets.log_end;
}

Result<RecordBlock> StoredSource::block_of(const Assigned& assigned, FetchedBatch& batch) const {
  if (options_.check_crcs) {
    WEIR_TRY(verify_batch(batch.bytes.bytes).status());
  }
  if (!committed_only_ || !assigned.log->transactions().is_aborted(batch.header)) {
    return decode_block(batch, assigned.position);
  }
  RecordBlock block;
  block.leader_epoch = batch.header.leader_epoch;
  block.next_offset = batch.header.next_offset();
  return block;
}

Status StoredSource::read(std::uint32_t index, std::size_t bytes_max,
                          std::vector<RecordBlock>& blocks, std::size_t* bytes) {
  Assigned& assigned = assigned_[index];
  if (assigned.log == nullptr) {
    WEIR_TRY_ASSIGN(assigned.log, topics_.partition(assigned.name));
    WEIR_TRY_ASSIGN(const StoredTopic* topic, topics_.find(assigned.name.topic));
    assigned.topic_id = topic->id;
  }
  const Offset end = end_of(assigned);
  const PartitionOffsets visible = topics_.visible_offsets(*assigned.log);
  const auto add = [&](RecordBlock block) {
    block.assignment = index;
    block.topic_id = assigned.topic_id;
    block.high_watermark = visible.high_watermark;
    block.last_stable_offset = visible.last_stable;
    assigned.position = block.next_offset;
    blocks.push_back(std::move(block));
  };
  if (assigned.position == end) {
    return {};
  }
  WEIR_TRY_ASSIGN(StoredPartition::Fetched fetched,
                  assigned.log->read(assigned.position, bytes_max));
  for (FetchedBatch& batch : fetched.batches) {
    if (batch.header.base_offset >= end) {
      break;
    }
    *bytes += batch.bytes.bytes.size();
    Result<RecordBlock> block = block_of(assigned, batch);
    if (!block.ok()) {
      return std::move(block).error().with_context(
          fmt::format("{} offset {}", assigned.name.to_string(), batch.header.base_offset.value()));
    }
    add(*std::move(block));
  }
  // Lost offsets at the end of what was fetched.
  const Offset behind = std::min(fetched.next_offset, end);
  if (behind > assigned.position) {
    RecordBlock skipped;
    skipped.next_offset = behind;
    add(std::move(skipped));
  }
  return {};
}

void StoredSource::collect(std::vector<RecordBlock>& blocks) {
  std::size_t bytes = 0;
  for (std::size_t tried = 0; tried < assigned_.size() && bytes < options_.poll_bytes_max;
       ++tried) {
    const auto index = static_cast<std::uint32_t>(next_);
    next_ = (next_ + 1) % assigned_.size();
    Assigned& assigned = assigned_[index];
    if (assigned.paused || assigned.failed || assigned.position < Offset(0)) {
      continue;
    }
    const std::size_t bytes_max =
        std::min(options_.partition_bytes_max, options_.poll_bytes_max - bytes);
    if (Status done = read(index, bytes_max, blocks, &bytes); !done.ok()) {
      assigned.failed = true;
      RecordBlock block;
      block.assignment = index;
      block.topic_id = assigned.topic_id;
      block.next_offset = assigned.position;
      block.status = std::move(done);
      blocks.push_back(std::move(block));
    }
  }
}

Result<std::vector<RecordBlock>> StoredSource::poll(Duration timeout) {
  const std::uint64_t seen = notifier_.generation();
  std::vector<RecordBlock> blocks;
  collect(blocks);
  if (blocks.empty() && !woken_.exchange(false, std::memory_order_acq_rel) &&
      timeout > Duration::zero()) {
    notifier_.wait(seen, timeout);
    woken_.store(false, std::memory_order_release);
  }
  return blocks;
}

}  // namespace weir::log
