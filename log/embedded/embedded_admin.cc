#include "log/embedded/embedded_admin.h"

#include "log/coordinator/consumer_protocol.h"

#include <fmt/core.h>

#include <algorithm>

namespace weir::log {

Result<TopicDescription> EmbeddedAdmin::create_topic(const TopicSpec& spec) {
  if (is_internal_topic(spec.name)) {
    return Error(Errc::kInvalidTopic,
                 fmt::format("topic {} is the log's own; choose another name", spec.name));
  }
  return directory_.create_topic(spec);
}

Result<std::vector<TopicDescription>> EmbeddedAdmin::list_topics() {
  WEIR_TRY(directory_.refresh());
  return directory_.list_topics();
}

Result<TopicDescription> EmbeddedAdmin::describe_topic(const std::string& name) {
  WEIR_TRY(directory_.refresh());
  return directory_.describe_topic(name);
}

Status EmbeddedAdmin::delete_topic(const std::string& name) {
  return directory_.delete_topic(name);
}

Result<std::shared_ptr<Partition>> EmbeddedAdmin::open(const TopicPartition& partition) {
  WEIR_TRY(directory_.refresh());
  WEIR_TRY_ASSIGN(std::shared_ptr<Partition> log, directory_.partition(partition));
  WEIR_TRY(directory_.refresh_partition(*log));
  return log;
}

Result<PartitionOffsets> EmbeddedAdmin::offsets(const TopicPartition& partition) {
  WEIR_TRY_ASSIGN(const std::shared_ptr<Partition> log, open(partition));
  return log->offsets();
}

Result<std::optional<Offset>> EmbeddedAdmin::offset_for_time(const TopicPartition& partition,
                                                             Timestamp time) {
  WEIR_TRY_ASSIGN(const std::shared_ptr<Partition> log, open(partition));
  return log->offset_for_time(time);
}

Result<std::optional<Offset>> EmbeddedAdmin::epoch_end_offset(const TopicPartition& partition,
                                                              LeaderEpoch epoch) {
  WEIR_TRY_ASSIGN(const std::shared_ptr<Partition> log, open(partition));
  return log->epoch_end_offset(epoch);
}

Result<std::optional<Offset>> EmbeddedAdmin::tombstone_horizon(const TopicPartition& partition) {
  WEIR_TRY_ASSIGN(const std::shared_ptr<Partition> log, open(partition));
  return directory_.tombstone_horizon(*log);
}

Status EmbeddedAdmin::delete_records(const TopicPartition& partition, Offset before) {
  return directory_.delete_records(partition, before);
}

Status EmbeddedAdmin::grow_topic(const std::string& name, std::int32_t partitions,
                                 OrderedGrowth ordered) {
  return directory_.grow_topic(name, partitions, ordered);
}

Status EmbeddedAdmin::alter_topic(const std::string& name, const TopicConfig& set,
                                  const std::vector<std::string>& remove) {
  return directory_.alter_topic(name, set, remove);
}

Result<std::vector<TopicSetting>> EmbeddedAdmin::topic_settings(const std::string& name) {
  WEIR_TRY(directory_.refresh());
  return directory_.topic_settings(name);
}

// A read-only process sees what the holder committed since.
Status EmbeddedAdmin::refresh_offsets() {
  if (directory_.read_only()) {
    WEIR_TRY(directory_.refresh());
    directory_.offsets().invalidate();
    directory_.groups().invalidate();
  }
  return {};
}

Result<std::vector<std::string>> EmbeddedAdmin::list_groups() {
  WEIR_TRY(refresh_offsets());
  WEIR_TRY_ASSIGN(std::vector<std::string> found, directory_.offsets().groups());
  WEIR_TRY_ASSIGN(const std::vector<std::string> known, directory_.groups().groups());
  for (const std::string& group : known) {
    WEIR_TRY_ASSIGN(const GroupSnapshot at, directory_.groups().describe(group));
    if (!at.members.empty()) {
      found.push_back(group);
    }
  }
  std::ranges::sort(found);
  found.erase(std::ranges::unique(found).begin(), found.end());
  return found;
}

Result<GroupDescription> EmbeddedAdmin::describe_group(const std::string& group) {
  WEIR_TRY(refresh_offsets());
  WEIR_TRY_ASSIGN(const GroupSnapshot at, directory_.groups().describe(group));
  GroupDescription description;
  description.group_id = group;
  description.state = group_state_name(at.state);
  if (at.state == GroupState::kDead) {
    // Offsets that were committed by a version which wrote no record of the group.
    WEIR_TRY_ASSIGN(const auto offsets, directory_.offsets().all_committed(group));
    if (offsets.empty()) {
      return Error(Errc::kNotFound, fmt::format("there is no group {}", group));
    }
    description.state = group_state_name(GroupState::kEmpty);
    return description;
  }
  description.protocol_type = at.protocol_type;
  description.assignor = at.protocol;
  description.generation = at.generation;
  for (const GroupMemberValue& member : at.members) {
    GroupMemberDescription one{member.member_id,
                               member.instance_id.value_or(""),
                               member.client_id,
                               member.client_host,
                               {}};
    if (at.protocol_type == kConsumerProtocolType) {
      if (Result<ConsumerAssignment> assigned = decode_assignment(member.assignment);
          assigned.ok()) {
        one.partitions = std::move(assigned->partitions);
      }
    }
    description.members.push_back(std::move(one));
  }
  return description;
}

Status EmbeddedAdmin::delete_group(const std::string& group) {
  if (directory_.read_only()) {
    return Error(
        Errc::kReadOnly,
        fmt::format("group {} cannot be deleted through a log that was opened for reading", group));
  }
  return directory_.groups().delete_group(group);
}

Result<std::vector<PartitionOffset>> EmbeddedAdmin::group_offsets(const std::string& group) {
  WEIR_TRY(refresh_offsets());
  return directory_.offsets().all_committed(group);
}

Status EmbeddedAdmin::delete_group_offsets(const std::string& group,
                                           std::span<const TopicPartition> partitions) {
  if (directory_.read_only()) {
    return Error(Errc::kReadOnly,
                 fmt::format("offsets of group {} cannot be deleted through a log that was opened "
                             "for reading",
                             group));
  }
  return directory_.groups().delete_offsets(group, partitions);
}

}  // namespace weir::log
