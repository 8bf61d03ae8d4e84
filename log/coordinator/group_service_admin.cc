#include "log/coordinator/group_service.h"
#include "log/coordinator/offset_expiry.h"

#include <weir/runtime/logger.h>

#include <fmt/core.h>

#include <algorithm>
#include <utility>

// GroupService: what tools ask, and expiry.

namespace weir::log {
namespace {

Error has_members(const std::string& group, const GroupSnapshot& at, std::string_view action) {
  return {Errc::kLocked,
          fmt::format("group {} has {} member(s) and is {}: {}; close its consumers first", group,
                      at.members.size(), group_state_name(at.state), action)};
}

}  // namespace

Result<std::vector<std::string>> GroupService::groups() {
  std::vector<std::string> found;
  {
    const MutexLock lock(mutex_);
    for (std::int32_t i = 0; i < topic_.partition_count(); ++i) {
      WEIR_TRY(load(PartitionId(i)));
    }
    advance(now());
    found = core_.groups();
  }
  pump();
  return found;
}

Result<GroupSnapshot> GroupService::describe(const std::string& group) {
  GroupSnapshot snapshot;
  {
    const MutexLock lock(mutex_);
    WEIR_TRY(load_for(group, false));
    advance(now());
    snapshot = core_.snapshot(group);
  }
  pump();
  return snapshot;
}

// Kafka does all this in one event: a commit comes before or behind it.
Status GroupService::delete_group(const std::string& group) {
  const auto erase = [&, this]() -> Status {
    WEIR_TRY_ASSIGN(const GroupSnapshot at, describe(group));
    WEIR_TRY_ASSIGN(const std::vector<GroupOffsets::Stored> stored, offsets_.stored(group));
    if (at.state == GroupState::kDead && stored.empty()) {
      return Error(Errc::kNotFound, fmt::format("there is no group {}", group));
    }
    AppendId record = 0;
    {
      const MutexLock lock(mutex_);
      if (core_.remove(group, effects_) == GroupError::kNonEmptyGroup) {
        return has_members(group, at, "it cannot be deleted");
      }
      for (const GroupEffect& effect : effects_) {
        const auto* append = std::get_if<AppendGroup>(&effect);
        record = append != nullptr && append->group == group ? append->id : record;
      }
      used_at_.erase(group);
    }
    if (record != 0) {  // it has a record
      WEIR_TRY(await_append(group, record));
    }
    std::vector<TopicPartition> partitions;
    for (const GroupOffsets::Stored& offset : stored) {
      partitions.push_back(offset.partition);
    }
    return offsets_.forget(group, partitions);
  };
  return without_commits(group, erase);
}

Status GroupService::delete_offsets(const std::string& group,
                                    std::span<const TopicPartition> partitions) {
  const auto erase = [&, this]() -> Status {
    WEIR_TRY_ASSIGN(const GroupSnapshot at, describe(group));
    for (const TopicPartition& partition : partitions) {
      GroupError allowed{};
      {
        const MutexLock lock(mutex_);
        allowed = core_.may_delete_offsets(group, partition.topic);
      }
      if (allowed != GroupError::kNone && allowed != GroupError::kGroupIdNotFound) {
        return has_members(
            group, at,
            fmt::format("a member subscribes to topic {}, so the offset of {} cannot be deleted",
                        partition.topic, partition.to_string()));
      }
    }
    return offsets_.forget(group, partitions);
  };
  return without_commits(group, erase);
}

Result<std::size_t> GroupService::expire_offsets() {
  std::size_t deleted = 0;
  WEIR_TRY_ASSIGN(const std::vector<std::string> groups, offsets_.stored_groups());
  for (const std::string& group : groups) {
    const auto expire = [&, this]() -> Status {
      GroupSnapshot at;
      Timestamp used_at = opened_at_;
      {
        const MutexLock lock(mutex_);
        WEIR_TRY(load_for(group, false));
        advance(now());
        if (is_used(group)) {
          return {};
        }
        at = core_.snapshot(group);
        if (const auto used = used_at_.find(group); used != used_at_.end()) {
          used_at = std::max(used_at, used->second);
        }
      }
      WEIR_TRY_ASSIGN(const std::vector<GroupOffsets::Stored> stored, offsets_.stored(group));
      const std::vector<TopicPartition> expired =
          expired_offsets(at, stored, used_at, options_.offsets_retention_ms, clock_.now());
      if (expired.empty()) {
        return {};
      }
      WEIR_TRY(offsets_.forget(group, expired));
      deleted += expired.size();
      WEIR_WARN(
          "committed offsets expired and were deleted group={} state={} offsets={} left={} "
          "first={} "
          "retention_ms={}: a reader of this group starts where auto.offset.reset says; raise "
          "offsets.retention.minutes to keep them longer",
          group, group_state_name(at.state), expired.size(), stored.size() - expired.size(),
          expired.front().to_string(), options_.offsets_retention_ms);
      if (expired.size() == stored.size() && at.state == GroupState::kEmpty) {
        const MutexLock lock(mutex_);
        core_.remove(group, effects_);  // unless somebody joined meanwhile
        used_at_.erase(group);
      }
      return {};
    };
    WEIR_TRY(without_commits(group, expire));
    pump();
  }
  return deleted;
}

}  // namespace weir::log
