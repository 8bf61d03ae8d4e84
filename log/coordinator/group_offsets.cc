#include "log/coordinator/group_offsets.h"

#include "log/partition/await.h"
#include "log/partition/replay.h"
#include "log/record/batch_builder.h"

#include <fmt/core.h>

#include <algorithm>
#include <chrono>

namespace weir::log {
namespace {

constexpr std::size_t kMetadataBytesMax = 4096;  // offset.metadata.max.bytes
constexpr auto kCommitTimeout = std::chrono::seconds(30);

}  // namespace

Status GroupOffsets::replay(Shard& shard, const RecordView& record) {
  if (record.key.is_null()) {
    return Error(Errc::kCorrupt, "offsets record without a key");
  }
  WEIR_TRY_ASSIGN(const std::optional<OffsetKey> key, decode_offset_key(record.key.view()));
  if (!key) {
    WEIR_TRY_ASSIGN(const std::optional<std::string> group, decode_group_key(record.key.view()));
    if (group && record.value.is_null()) {
      shard.known_groups.erase(*group);
    } else if (group) {
      shard.known_groups.insert(*group);
    }
    return {};
  }
  Group& group = shard.groups[key->group];
  shard.known_groups.insert(key->group);
  if (record.value.is_null()) {
    group.erase(key->partition);
    if (group.empty()) {
      shard.groups.erase(key->group);
    }
    drop_pending(shard, key->group, key->partition, record.offset);
    return {};
  }
  WEIR_TRY_ASSIGN(OffsetValue value, decode_offset_value(record.value.view()));
  Entry& entry = group[key->partition];
  if (entry.written_at <= record.offset) {
    entry = Entry{std::move(value), record.offset};
  }
  return {};
}

Status GroupOffsets::replay_to_end(Shard& shard) {
  WEIR_TRY_ASSIGN(shard.next_offset,
                  replay_batches(*shard.partition, shard.next_offset,
                                 [&shard](const BatchHeader& batch, const RecordView& record) {
                                   return batch.is_control()
                                              ? replay_marker(shard, batch.producer_id, record)
                                          : batch.is_transactional()
                                              ? replay_pending(shard, batch.producer_id, record)
                                              : replay(shard, record);
                                 }));
  return {};
}

Result<GroupOffsets::Shard*> GroupOffsets::shard(PartitionId index) {
  const auto found = shards_.find(index);
  if (found != shards_.end()) {
    // Only commits of this object move the end, and they are applied by it; a read-only process
    // catches up after invalidate().
    return &found->second;
  }
  Shard fresh;
  WEIR_TRY_ASSIGN(fresh.partition, topic_.open(index));
  fresh.next_offset = fresh.partition->offsets().log_start;
  if (Status replayed = replay_to_end(fresh); !replayed.ok()) {
    return std::move(replayed).error().with_context(
        fmt::format("read committed offsets from {}", fresh.partition->options().name.to_string()));
  }
  return &shards_.emplace(index, std::move(fresh)).first->second;
}

Result<std::vector<OffsetValue>> GroupOffsets::values_of(const std::string& group,
                                                         std::span<const PartitionOffset> offsets,
                                                         Timestamp now) {
  std::vector<OffsetValue> values;
  for (const auto& [partition, committed] : offsets) {
    OffsetValue value{committed, now, topic_.topic_id(partition.topic)};
    if (value.topic_id.is_zero()) {
      return Error(Errc::kUnknownTopic,
                   fmt::format("group {} cannot commit for {}: the topic does not exist", group,
                               partition.to_string()));
    }
    if (committed.metadata.size() > kMetadataBytesMax) {
      return Error(
          Errc::kInvalidArgument,
          fmt::format("group {} commits {} bytes of metadata for {}, at most {} are allowed", group,
                      committed.metadata.size(), partition.to_string(), kMetadataBytesMax));
    }
    values.push_back(std::move(value));
  }
  return values;
}

Status GroupOffsets::commit(const std::string& group,
                            std::span<const std::pair<TopicPartition, CommittedOffset>> offsets) {
  if (offsets.empty()) {
    return {};
  }
  const Timestamp now = clock_.now();
  BatchBuilder builder(64U << 20U);
  WEIR_TRY_ASSIGN(std::vector<OffsetValue> values, values_of(group, offsets, now));

  std::shared_ptr<Partition> log;
  bool first_of_group = false;
  WEIR_TRY(topic_.ensure_exists());
  const Appending appending(*this);
  const PartitionId index = partition_for_group(group, topic_.partition_count());
  {
    const MutexLock lock(mutex_);
    WEIR_TRY_ASSIGN(Shard * target, shard(index));
    log = target->partition;
    first_of_group = target->known_groups.insert(group).second;
  }
  if (first_of_group) {
    const std::string key = encode_group_key(group);
    const std::string value = encode_empty_group_value(now);
    WEIR_ASSERT(builder.append(RecordRef{ByteView(key), ByteView(value), now, {}}));
  }
  for (std::size_t i = 0; i < values.size(); ++i) {
    const std::string key = encode_offset_key(OffsetKey{group, offsets[i].first});
    const std::string value = encode_offset_value(values[i]);
    WEIR_ASSERT(builder.append(RecordRef{ByteView(key), ByteView(value), now, {}}));
  }
  const Result<Partition::Appended> appended = log->append(builder.seal(), AppendOrigin::kBuilder);
  if (!appended.ok()) {
    if (first_of_group) {
      forget_group(group);
    }
    return appended.error();
  }
  WEIR_TRY(await_high_watermark(log, appended->next_offset, kCommitTimeout));

  const MutexLock lock(mutex_);
  WEIR_TRY_ASSIGN(Shard * target, shard(index));
  Group& entries = target->groups[group];
  for (std::size_t i = 0; i < values.size(); ++i) {
    Entry& entry = entries[offsets[i].first];
    if (entry.written_at <= appended->base_offset) {
      entry = Entry{std::move(values[i]), appended->base_offset};
    }
  }
  return {};
}

Result<std::vector<std::optional<CommittedOffset>>> GroupOffsets::committed(
    const std::string& group, std::span<const TopicPartition> partitions, bool require_stable) {
  std::vector<std::optional<CommittedOffset>> result(partitions.size());
  const MutexLock lock(mutex_);
  WEIR_TRY_ASSIGN(const Shard* from, shard_of(group));
  if (from == nullptr) {
    return result;
  }
  if (require_stable) {
    for (const TopicPartition& partition : partitions) {
      if (is_pending(*from, group, partition)) {
        return Error(Errc::kUnstableOffset,
                     fmt::format("the offset of group {} for {} may be changed by a transaction "
                                 "that is open; try again",
                                 group, partition.to_string()));
      }
    }
  }
  const auto entries = from->groups.find(group);
  if (entries == from->groups.end()) {
    return result;
  }
  for (std::size_t i = 0; i < partitions.size(); ++i) {
    const auto entry = entries->second.find(partitions[i]);
    if (entry == entries->second.end()) {
      continue;
    }
    if (counts(partitions[i], entry->second)) {
      result[i] = entry->second.value.committed;
    }
  }
  return result;
}

bool GroupOffsets::counts(const TopicPartition& partition, const Entry& entry) const {
  const Uuid& committed_under = entry.value.topic_id;
  return committed_under.is_zero() || committed_under == topic_.topic_id(partition.topic);
}

Result<std::vector<std::string>> GroupOffsets::groups() {
  std::vector<std::string> found;
  const std::int32_t count = topic_.partition_count();
  const MutexLock lock(mutex_);
  for (std::int32_t i = 0; i < count; ++i) {
    WEIR_TRY_ASSIGN(const Shard* from, shard(PartitionId(i)));
    for (const auto& [group, entries] : from->groups) {
      if (std::ranges::any_of(
              entries, [this](const auto& entry) { return counts(entry.first, entry.second); })) {
        found.push_back(group);
      }
    }
  }
  std::ranges::sort(found);
  return found;
}

Result<GroupOffsets::Shard*> GroupOffsets::shard_of(const std::string& group) {
  const std::int32_t count = topic_.partition_count();
  if (count == 0) {
    return nullptr;
  }
  return shard(partition_for_group(group, count));
}

Result<std::vector<PartitionOffset>> GroupOffsets::all_committed(const std::string& group) {
  std::vector<PartitionOffset> found;
  const MutexLock lock(mutex_);
  WEIR_TRY_ASSIGN(const Shard* from, shard_of(group));
  if (from == nullptr) {
    return found;
  }
  if (const auto entries = from->groups.find(group); entries != from->groups.end()) {
    for (const auto& [partition, entry] : entries->second) {
      if (counts(partition, entry)) {
        found.emplace_back(partition, entry.value.committed);
      }
    }
  }
  return found;
}

Status GroupOffsets::forget(const std::string& group, std::span<const TopicPartition> partitions) {
  const std::int32_t count = topic_.partition_count();
  if (count == 0) {
    return {};
  }
  const PartitionId index = partition_for_group(group, count);
  BatchBuilder builder(64U << 20U);
  std::shared_ptr<Partition> log;
  {
    const MutexLock lock(mutex_);
    WEIR_TRY_ASSIGN(Shard * from, shard(index));
    log = from->partition;
    const auto entries = from->groups.find(group);
    for (const TopicPartition& partition : partitions) {
      if ((entries != from->groups.end() && entries->second.contains(partition)) ||
          is_pending(*from, group, partition)) {
        const std::string key = encode_offset_key(OffsetKey{group, partition});
        WEIR_ASSERT(builder.append(RecordRef{ByteView(key), {}, clock_.now(), {}}));
      }
    }
  }
  if (builder.empty()) {
    return {};
  }
  WEIR_TRY_ASSIGN(const Partition::Appended appended,
                  log->append(builder.seal(), AppendOrigin::kBuilder));
  WEIR_TRY(await_high_watermark(log, appended.next_offset, kCommitTimeout));

  const MutexLock lock(mutex_);
  WEIR_TRY_ASSIGN(Shard * from, shard(index));
  Group& entries = from->groups[group];
  for (const TopicPartition& partition : partitions) {
    const auto entry = entries.find(partition);
    if (entry != entries.end() && entry->second.written_at < appended.base_offset) {
      entries.erase(entry);
    }
    drop_pending(*from, group, partition, appended.base_offset);
  }
  if (entries.empty()) {
    from->groups.erase(group);
  }
  return {};
}

Result<std::vector<GroupOffsets::Stored>> GroupOffsets::stored(const std::string& group) {
  std::vector<Stored> found;
  const MutexLock lock(mutex_);
  WEIR_TRY_ASSIGN(const Shard* from, shard_of(group));
  if (from == nullptr) {
    return found;
  }
  if (const auto entries = from->groups.find(group); entries != from->groups.end()) {
    for (const auto& [partition, entry] : entries->second) {
      found.push_back({partition, entry.value.committed.offset, entry.value.commit_timestamp,
                       is_pending(*from, group, partition)});
    }
  }
  for (const auto& [producer, pending] : from->pending) {
    for (const PendingOffset& one : pending.offsets) {
      if (one.group == group &&
          std::ranges::find(found, one.partition, &Stored::partition) == found.end()) {
        const OffsetValue& value = one.entry.value;
        found.push_back({one.partition, value.committed.offset, value.commit_timestamp, true});
      }
    }
  }
  return found;
}

Result<std::vector<std::string>> GroupOffsets::stored_groups() {
  std::vector<std::string> found;
  const std::int32_t count = topic_.partition_count();
  const MutexLock lock(mutex_);
  for (std::int32_t i = 0; i < count; ++i) {
    WEIR_TRY_ASSIGN(const Shard* from, shard(PartitionId(i)));
    for (const auto& [group, entries] : from->groups) {
      if (!entries.empty()) {
        found.push_back(group);
      }
    }
  }
  std::ranges::sort(found);
  return found;
}

Result<bool> GroupOffsets::note_group(const std::string& group) {
  const MutexLock lock(mutex_);
  WEIR_TRY_ASSIGN(Shard * at, shard(partition_for_group(group, topic_.partition_count())));
  return at->known_groups.insert(group).second;
}

void GroupOffsets::forget_group(const std::string& group) {
  const MutexLock lock(mutex_);
  const std::int32_t count = topic_.partition_count();
  const auto at = count == 0 ? shards_.end() : shards_.find(partition_for_group(group, count));
  if (at != shards_.end()) {
    at->second.known_groups.erase(group);
  }
}

void GroupOffsets::begin_append() {
  const MutexLock lock(mutex_);
  while (forgetting_) {
    changed_.wait(mutex_);
  }
  ++appending_;
}

void GroupOffsets::end_append() {
  const MutexLock lock(mutex_);
  --appending_;
  changed_.notify_all();
}

Status GroupOffsets::forget_topic(const std::string& topic, const Uuid& id) {
  {
    const MutexLock lock(mutex_);
    while (forgetting_) {
      changed_.wait(mutex_);
    }
    forgetting_ = true;
    while (appending_ > 0) {
      changed_.wait(mutex_);
    }
  }
  Status done;
  const std::int32_t count = topic_.partition_count();
  for (std::int32_t i = 0; i < count && done.ok(); ++i) {
    done = forget_topic_in(PartitionId(i), topic, id);
  }
  const MutexLock lock(mutex_);
  forgetting_ = false;
  changed_.notify_all();
  return done;
}

Status GroupOffsets::forget_topic_in(PartitionId index, const std::string& topic, const Uuid& id) {
  std::shared_ptr<Partition> log;
  BatchBuilder builder(64U << 20U);
  {
    const MutexLock lock(mutex_);
    WEIR_TRY_ASSIGN(Shard * from, shard(index));
    log = from->partition;
    for (auto& [group, entries] : from->groups) {
      for (auto entry = entries.begin(); entry != entries.end();) {
        const Uuid& committed_under = entry->second.value.topic_id;
        if (entry->first.topic != topic || (!committed_under.is_zero() && committed_under != id)) {
          ++entry;
          continue;
        }
        const std::string key = encode_offset_key(OffsetKey{group, entry->first});
        WEIR_ASSERT(builder.append(RecordRef{ByteView(key), {}, clock_.now(), {}}));
        entry = entries.erase(entry);
      }
    }
  }
  if (builder.empty()) {
    return {};
  }
  WEIR_TRY_ASSIGN(const Partition::Appended appended,
                  log->append(builder.seal(), AppendOrigin::kBuilder));
  return await_high_watermark(log, appended.next_offset, kCommitTimeout);
}

void GroupOffsets::invalidate() {
  const MutexLock lock(mutex_);
  shards_.clear();
}

}  // namespace weir::log
