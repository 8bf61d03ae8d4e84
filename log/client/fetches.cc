#include "log/client/fetches.h"

#include <fmt/core.h>

#include <algorithm>
#include <utility>

namespace weir::log {

Status Fetches::assign(const std::vector<TopicPartition>& partitions) {
  std::vector<Assigned> before = std::exchange(assigned_, {});
  for (const TopicPartition& partition : partitions) {
    if (find(partition)) {
      continue;
    }
    const auto kept = std::find_if(before.begin(), before.end(), [&](const Assigned& assigned) {
      return *assigned.name == partition;
    });
    Assigned& added = assigned_.emplace_back();
    if (kept != before.end()) {
      added = std::move(*kept);
      before.erase(kept);
      added.fetched.clear();
    }
    added.name = &*names_.insert(partition).first;
  }
  next_ = 0;

  std::vector<TopicPartition> names;
  names.reserve(assigned_.size());
  for (const Assigned& assigned : assigned_) {
    names.push_back(*assigned.name);
  }
  WEIR_TRY(source_.assign(std::move(names)));
  for (std::uint32_t i = 0; i < assigned_.size(); ++i) {
    const Assigned& assigned = assigned_[i];
    if (assigned.position != kNoOffset && assigned.failure.ok()) {
      WEIR_TRY(source_.seek(i, assigned.position));
    }
    if (assigned.paused) {
      source_.pause(i);
    }
  }
  return {};
}

std::optional<std::uint32_t> Fetches::find(const TopicPartition& partition) const {
  for (std::uint32_t i = 0; i < assigned_.size(); ++i) {
    if (*assigned_[i].name == partition) {
      return i;
    }
  }
  return std::nullopt;
}

Status Fetches::seek(std::uint32_t index, Offset offset, LeaderEpoch epoch) {
  WEIR_TRY(source_.seek(index, offset));
  Assigned& assigned = assigned_[index];
  assigned.fetched.clear();
  assigned.failure = Status();
  assigned.start.reset();
  assigned.position = offset;
  assigned.leader_epoch = epoch;
  assigned.topic_id = Uuid{};
  return {};
}

void Fetches::seek_later(std::uint32_t index, const OffsetReset& start) {
  Assigned& assigned = assigned_[index];
  assigned.fetched.clear();
  assigned.failure = Status();
  assigned.start = start;
  assigned.position = kNoOffset;
  assigned.leader_epoch = kNoLeaderEpoch;
  assigned.topic_id = Uuid{};
}

void Fetches::pause(std::uint32_t index) {
  assigned_[index].paused = true;
  source_.pause(index);
}

void Fetches::resume(std::uint32_t index) {
  assigned_[index].paused = false;
  source_.resume(index);
}

Status Fetches::add(RecordBlock block) {
  Assigned& to = assigned_[block.assignment];
  if (to.position == kNoOffset || !to.failure.ok()) {
    return {};  // of before a seek that is yet to be carried out, or behind a failure
  }
  if (!to.topic_id.is_zero() && to.topic_id != block.topic_id) {
    return Error(Errc::kUnknownTopic,
                 fmt::format("topic {} was deleted and made again while {} was being read; seek to "
                             "read the new one",
                             to.name->topic, to.name->to_string()));
  }
  to.topic_id = block.topic_id;
  to.fetched.push_back({std::make_shared<const RecordBlock>(std::move(block)), 0});
  return {};
}

std::size_t Fetches::take_from(Assigned& from, std::size_t records_max,
                               std::vector<ConsumerBatch>& batches) {
  std::size_t taken = 0;
  while (!from.fetched.empty() && taken < records_max) {
    Assigned::Fetched& fetched = from.fetched.front();
    const RecordBlock& block = *fetched.block;
    const std::size_t left = block.records.size() - fetched.given;
    const std::size_t count = std::min(left, records_max - taken);
    const bool whole = count == left;
    // A block without records (markers, holes) moves the position only.
    from.position =
        whole ? block.next_offset : block.records[fetched.given + count - 1].offset.next();
    from.leader_epoch = block.leader_epoch;
    if (count > 0) {
      batches.push_back({from.name, std::span(block.records).subspan(fetched.given, count),
                         from.position, block.leader_epoch, block.high_watermark, fetched.block});
    }
    taken += count;
    fetched.given += count;
    if (whole) {
      from.fetched.pop_front();
    }
  }
  return taken;
}

std::vector<ConsumerBatch> Fetches::take(std::size_t records_max) {
  std::vector<ConsumerBatch> batches;
  const std::size_t first = next_;
  std::size_t taken = 0;
  for (std::size_t i = 0; i < assigned_.size() && taken < records_max; ++i) {
    const std::size_t index = (first + i) % assigned_.size();
    Assigned& from = assigned_[index];
    if (from.paused || from.fetched.empty()) {
      continue;
    }
    taken += take_from(from, records_max - taken, batches);
    next_ = from.fetched.empty() ? (index + 1) % assigned_.size() : index;
  }
  return batches;
}

Status Fetches::failure() const {
  for (const Assigned& assigned : assigned_) {
    if (!assigned.paused && !assigned.failure.ok()) {
      return assigned.failure;
    }
  }
  return {};
}

}  // namespace weir::log
