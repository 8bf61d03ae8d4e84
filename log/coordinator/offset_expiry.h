#pragma once

#include "log/coordinator/group_coordinator.h"
#include "log/coordinator/group_offsets.h"

#include <vector>

namespace weir::log {

// Which committed offsets of a group are too old at `now` (Kafka's
// ClassicGroup.offsetExpirationCondition). Pure.
//
//   group state         an offset expires `retention_ms` after
//   Empty               the group became empty (without a time of that: the offset's commit)
//   Stable, consumers   its commit, unless a member subscribes to the topic
//   never had members   the group's last commit of any partition, and not before `used_at`, when
//                       the group was last known to be used. Kafka counts from each partition's own
//                       commit, so a partition that is idle loses its place under a running reader.
//   anything else       never
//
// An offset that an open transaction sets never does.
std::vector<TopicPartition> expired_offsets(const GroupSnapshot& group,
                                            const std::vector<GroupOffsets::Stored>& offsets,
                                            Timestamp used_at, std::int64_t retention_ms,
                                            Timestamp now);

}  // namespace weir::log
