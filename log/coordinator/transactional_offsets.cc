#include "log/coordinator/group_offsets.h"
#include "log/record/batch_builder.h"
#include "log/record/control_record.h"

#include <algorithm>
#include <utility>

// Offsets that a transaction commits (KIP-98, KIP-447): a transactional batch of offset records in
// the group's partition of `__consumer_offsets`, then the producer's marker there.

namespace weir::log {
namespace {

constexpr std::size_t kBatchBytesMax = 64U << 20U;

}  // namespace

Result<TopicPartition> GroupOffsets::partition_of(const std::string& group) {
  WEIR_TRY(topic_.ensure_exists());
  const PartitionId index = partition_for_group(group, topic_.partition_count());
  const MutexLock lock(mutex_);
  WEIR_TRY_ASSIGN(const Shard* at, shard(index));
  return at->partition->options().name;
}

Status GroupOffsets::commit_in_transaction(const std::string& group, ProducerId producer,
                                           ProducerEpoch epoch,
                                           std::span<const PartitionOffset> offsets) {
  if (offsets.empty()) {
    return {};
  }
  const Timestamp now = clock_.now();
  WEIR_TRY_ASSIGN(std::vector<OffsetValue> values, values_of(group, offsets, now));
  BatchBuilder builder(kBatchBytesMax);
  for (std::size_t i = 0; i < values.size(); ++i) {
    const std::string key = encode_offset_key(OffsetKey{group, offsets[i].first});
    const std::string value = encode_offset_value(values[i]);
    WEIR_ASSERT(builder.append(RecordRef{ByteView(key), ByteView(value), now, {}}));
  }
  // Coordinators write without sequences of their own; the number is what Kafka's writes.
  const BatchBuilder::Producer stamp{producer, epoch, 0, true};
  WEIR_TRY(topic_.ensure_exists());
  const PartitionId index = partition_for_group(group, topic_.partition_count());
  const Appending appending(*this);
  // Known as pending from before the append on, so that nobody takes the older ones for stable.
  std::shared_ptr<Partition> log;
  std::uint64_t append = 0;
  {
    const MutexLock lock(mutex_);
    WEIR_TRY_ASSIGN(Shard * at, shard(index));
    log = at->partition;
    append = ++last_append_;
    Pending& pending = at->pending[producer];
    for (std::size_t i = 0; i < values.size(); ++i) {
      pending.offsets.push_back(
          {group, offsets[i].first, Entry{std::move(values[i]), kOffsetMax}, append});
    }
  }
  const Result<Partition::Appended> appended =
      log->append(builder.seal(stamp), AppendOrigin::kCoordinator);
  const MutexLock lock(mutex_);
  WEIR_TRY_ASSIGN(Shard * at, shard(index));
  on_append_answered(*at, producer, append,
                     appended.ok() ? std::optional(appended->base_offset) : std::nullopt);
  return appended.status();
}

void GroupOffsets::on_append_answered(Shard& shard, ProducerId producer, std::uint64_t append,
                                      std::optional<Offset> written_at) {
  const auto found = shard.pending.find(producer);
  if (found == shard.pending.end()) {
    return;
  }
  Pending& pending = found->second;
  if (written_at) {
    for (PendingOffset& one : pending.offsets) {
      if (one.append == append) {
        one.entry.written_at = *written_at;
      }
    }
  } else {
    std::erase_if(pending.offsets, [&](const PendingOffset& one) { return one.append == append; });
  }
  settle(shard, producer);
}

void GroupOffsets::note_marker(PartitionId index, ProducerId producer, bool commit, Offset end) {
  const MutexLock lock(mutex_);
  // What was not read yet has the marker when it is.
  const auto at = shards_.find(index);
  if (at == shards_.end()) {
    return;
  }
  if (const auto found = at->second.pending.find(producer); found != at->second.pending.end()) {
    found->second.markers.push_back({end, commit, false});
  }
}

void GroupOffsets::on_marker_durable(PartitionId index, ProducerId producer, Offset end) {
  const MutexLock lock(mutex_);
  const auto at = shards_.find(index);
  if (at == shards_.end()) {
    return;
  }
  if (const auto found = at->second.pending.find(producer); found != at->second.pending.end()) {
    for (Marker& marker : found->second.markers) {
      marker.is_durable = marker.is_durable || marker.end == end;
    }
    settle(at->second, producer);
  }
}

// What durable markers decide is decided. Markers stay as long as an append has no answer: it may
// be theirs.
void GroupOffsets::settle(Shard& shard, ProducerId producer) {
  const auto found = shard.pending.find(producer);
  if (found == shard.pending.end()) {
    return;
  }
  auto& [offsets, markers] = found->second;
  std::vector<PendingOffset> left;
  bool is_open = false;
  for (PendingOffset& one : offsets) {
    const Offset written_at = one.entry.written_at;
    const auto marker = std::ranges::find_if(
        markers, [&](const Marker& candidate) { return candidate.end > written_at; });
    if (marker == markers.end() || !marker->is_durable) {
      is_open = is_open || written_at == kOffsetMax;
      left.push_back(std::move(one));
    } else if (marker->commit) {
      // What was committed outside of the transaction since stands behind it in the log and wins.
      Entry& entry = shard.groups[one.group][one.partition];
      if (entry.written_at <= written_at) {
        entry = std::move(one.entry);
      }
    }
  }
  offsets = std::move(left);
  if (offsets.empty()) {
    shard.pending.erase(found);
  } else if (!is_open) {
    std::erase_if(markers, [](const Marker& marker) { return marker.is_durable; });
  }
}

bool GroupOffsets::is_pending(const Shard& shard, const std::string& group,
                              const TopicPartition& partition) {
  return std::ranges::any_of(shard.pending, [&](const auto& producer) {
    return std::ranges::any_of(producer.second.offsets, [&](const PendingOffset& one) {
      return one.partition == partition && one.group == group;
    });
  });
}

void GroupOffsets::drop_pending(Shard& shard, const std::string& group,
                                const TopicPartition& partition, Offset before) {
  for (auto& [producer, pending] : shard.pending) {
    std::erase_if(pending.offsets, [&](const PendingOffset& one) {
      return one.entry.written_at < before && one.partition == partition && one.group == group;
    });
  }
}

Status GroupOffsets::replay_pending(Shard& shard, ProducerId producer, const RecordView& record) {
  if (record.key.is_null()) {
    return Error(Errc::kCorrupt, "offsets record without a key");
  }
  WEIR_TRY_ASSIGN(const std::optional<OffsetKey> key, decode_offset_key(record.key.view()));
  if (!key || record.value.is_null()) {
    return replay(shard, record);
  }
  WEIR_TRY_ASSIGN(OffsetValue value, decode_offset_value(record.value.view()));
  shard.pending[producer].offsets.push_back(
      {key->group, key->partition, Entry{std::move(value), record.offset}, 0});
  return {};
}

Status GroupOffsets::replay_marker(Shard& shard, ProducerId producer, const RecordView& record) {
  WEIR_TRY_ASSIGN(const ControlRecord control, parse_control_record(record));
  if (control.type == ControlType::kCommit || control.type == ControlType::kAbort) {
    if (const auto found = shard.pending.find(producer); found != shard.pending.end()) {
      found->second.markers.push_back({record.offset, control.type == ControlType::kCommit, true});
      settle(shard, producer);
    }
  }
  return {};
}

}  // namespace weir::log
