#include "operators/task/partition_group.h"

#include <weir/runtime/assert.h>

#include <fmt/core.h>

#include <algorithm>
#include <utility>

namespace weir::internal {

std::size_t PartitionGroup::add_partition(Timestamp partition_time, InvalidTimestamp policy) {
  Fifo fifo;
  fifo.time = partition_time;
  fifo.newest = partition_time;
  fifo.policy = policy;
  fifos_.push_back(std::move(fifo));
  stream_time_ = std::max(stream_time_, partition_time);
  return fifos_.size() - 1;
}

void PartitionGroup::set_position(std::size_t partition, Offset offset, LeaderEpoch epoch) {
  fifos_[partition].position = offset;
  fifos_[partition].epoch = epoch;
}

void PartitionGroup::raise_time(Fifo& fifo) {
  if (!fifo.blocks.empty()) {
    fifo.time = std::max(fifo.time, head_of(fifo).timestamp);
  }
}

void PartitionGroup::mend_timestamps(Fifo& fifo, RecordViews& records) {
  if (fifo.policy == InvalidTimestamp::kSkip) {
    std::erase_if(records, [](const RecordView& record) { return record.timestamp < 0; });
    return;
  }
  for (RecordView& record : records) {
    if (record.timestamp < 0) {
      record.timestamp = fifo.newest;
    }
    fifo.newest = std::max(fifo.newest, record.timestamp);
  }
}

std::size_t PartitionGroup::add(std::size_t partition, RecordBlock block) {
  Fifo& fifo = fifos_[partition];
  const std::size_t read = block.records.size();
  if (fifo.policy != InvalidTimestamp::kFail) {
    mend_timestamps(fifo, block.records);
  }
  const std::size_t left_out = read - block.records.size();
  fifo.position = block.next_offset;
  fifo.epoch = block.leader_epoch;
  if (block.records.empty()) {
    return left_out;
  }
  fifo.buffered += block.records.size();
  fifo.blocks.push_back(std::move(block));
  if (fifo.blocks.size() == 1) {
    raise_time(fifo);
  }
  return left_out;
}

void PartitionGroup::reset(std::size_t partition) {
  const InvalidTimestamp policy = fifos_[partition].policy;
  fifos_[partition] = Fifo();
  fifos_[partition].policy = policy;
}

Result<std::optional<PartitionGroup::Run>> PartitionGroup::next(std::size_t records_max) const {
  WEIR_ASSERT(records_max > 0);
  // The chosen head, and the smallest of the others: the run ends where that one comes first.
  const Fifo* chosen = nullptr;
  std::size_t index = 0;
  Timestamp before = INT64_MAX;
  bool before_wins_ties = false;
  for (std::size_t i = 0; i < fifos_.size(); ++i) {
    const Fifo& fifo = fifos_[i];
    if (fifo.blocks.empty()) {
      continue;
    }
    const Timestamp time = head_of(fifo).timestamp;
    if (chosen == nullptr || time < head_of(*chosen).timestamp) {
      if (chosen != nullptr) {
        before = head_of(*chosen).timestamp;
        before_wins_ties = true;
      }
      chosen = &fifo;
      index = i;
    } else if (time < before) {
      before = time;
      before_wins_ties = false;
    }
  }
  if (chosen == nullptr) {
    return std::optional<Run>();
  }
  const std::span<const RecordView> rest =
      std::span(chosen->blocks.front().records).subspan(chosen->head);
  const std::size_t limit = std::min(rest.size(), records_max);
  std::size_t count = 0;
  while (count < limit) {
    const Timestamp time = rest[count].timestamp;
    const bool comes_first = time < before || (time == before && !before_wins_ties);
    if (time < 0 || (!comes_first && count != 0)) {
      break;
    }
    ++count;
  }
  if (count == 0) {
    return Error(Errc::kInvalidTimestamp,
                 fmt::format("record at offset {} has timestamp {}: negative timestamps have no "
                             "place in stream time",
                             rest.front().offset.value(), rest.front().timestamp));
  }
  return std::optional<Run>(Run{index, rest.first(count)});
}

void PartitionGroup::take(std::size_t partition, std::size_t count) {
  Fifo& fifo = fifos_[partition];
  while (count > 0) {
    WEIR_ASSERT(!fifo.blocks.empty());
    const RecordBlock& block = fifo.blocks.front();
    const std::size_t here = std::min(count, block.records.size() - fifo.head);
    for (std::size_t i = 0; i < here; ++i) {
      fifo.time = std::max(fifo.time, block.records[fifo.head + i].timestamp);
    }
    fifo.head += here;
    fifo.buffered -= here;
    count -= here;
    if (fifo.head == block.records.size()) {
      fifo.blocks.pop_front();
      fifo.head = 0;
    }
  }
  stream_time_ = std::max(stream_time_, fifo.time);
  raise_time(fifo);
}

bool PartitionGroup::empty() const {
  return std::all_of(fifos_.begin(), fifos_.end(),
                     [](const Fifo& fifo) { return fifo.blocks.empty(); });
}

Offset PartitionGroup::position(std::size_t partition) const {
  const Fifo& fifo = fifos_[partition];
  return fifo.blocks.empty() ? fifo.position : head_of(fifo).offset;
}

LeaderEpoch PartitionGroup::leader_epoch(std::size_t partition) const {
  const Fifo& fifo = fifos_[partition];
  return fifo.blocks.empty() ? fifo.epoch : fifo.blocks.front().leader_epoch;
}

}  // namespace weir::internal
