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
  // Known as pending from before the append on, so that nobody takes the older ones for stable.
  std::shared_ptr<Partition> log;
  Pending before;
  {
    const MutexLock lock(mutex_);
    WEIR_TRY_ASSIGN(Shard * at, shard(index));
    log = at->partition;
    Pending& pending = at->pending[producer];
    before = pending;
    for (std::size_t i = 0; i < values.size(); ++i) {
      pending[{group, offsets[i].first}] = Entry{std::move(values[i]), kOffsetMax};
    }
  }
  const Result<Partition::Appended> appended =
      log->append(builder.seal(stamp), AppendOrigin::kCoordinator);
  const MutexLock lock(mutex_);
  WEIR_TRY_ASSIGN(Shard * at, shard(index));
  const auto pending = at->pending.find(producer);
  if (pending == at->pending.end()) {
    return appended.status();  // it was aborted meanwhile
  }
  if (!appended.ok()) {
    pending->second = std::move(before);
    if (pending->second.empty()) {
      at->pending.erase(pending);
    }
    return appended.error();
  }
  for (auto& [name, entry] : pending->second) {
    if (entry.written_at == kOffsetMax) {
      entry.written_at = appended->base_offset;
    }
  }
  return {};
}

void GroupOffsets::on_marker(PartitionId index, ProducerId producer, bool commit) {
  const MutexLock lock(mutex_);
  // What was not read yet has the marker when it is.
  if (const auto at = shards_.find(index); at != shards_.end()) {
    decide(at->second, producer, commit);
  }
}

void GroupOffsets::decide(Shard& shard, ProducerId producer, bool commit) {
  const auto found = shard.pending.find(producer);
  if (found == shard.pending.end()) {
    return;
  }
  for (auto& [name, pending] : found->second) {
    if (!commit) {
      break;
    }
    // What was committed outside of the transaction since stands behind it in the log and wins.
    Entry& entry = shard.groups[name.first][name.second];
    if (entry.written_at <= pending.written_at) {
      entry = std::move(pending);
    }
  }
  shard.pending.erase(found);
}

bool GroupOffsets::is_pending(const Shard& shard, const std::string& group,
                              const TopicPartition& partition) {
  return std::ranges::any_of(shard.pending, [&](const auto& producer) {
    return producer.second.contains({group, partition});
  });
}

void GroupOffsets::drop_pending(Shard& shard, const std::string& group,
                                const TopicPartition& partition, Offset before) {
  for (auto& [producer, pending] : shard.pending) {
    const auto entry = pending.find({group, partition});
    if (entry != pending.end() && entry->second.written_at < before) {
      pending.erase(entry);
    }
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
  shard.pending[producer][{key->group, key->partition}] = Entry{std::move(value), record.offset};
  return {};
}

Status GroupOffsets::replay_marker(Shard& shard, ProducerId producer, const RecordView& record) {
  WEIR_TRY_ASSIGN(const ControlRecord control, parse_control_record(record));
  if (control.type == ControlType::kCommit || control.type == ControlType::kAbort) {
    decide(shard, producer, control.type == ControlType::kCommit);
  }
  return {};
}

}  // namespace weir::log
