#include "log/coordinator/offset_expiry.h"

#include "log/coordinator/consumer_protocol.h"

#include <algorithm>

namespace weir::log {

std::vector<TopicPartition> expired_offsets(const GroupSnapshot& group,
                                            const std::vector<GroupOffsets::Stored>& offsets,
                                            Timestamp used_at, std::int64_t retention_ms,
                                            Timestamp now) {
  std::vector<TopicPartition> expired;
  const auto expire = [&](const GroupOffsets::Stored& offset, Timestamp since) {
    if (now - since >= retention_ms) {
      expired.push_back(offset.partition);
    }
  };
  Timestamp last_commit = kNoTimestamp;
  for (const GroupOffsets::Stored& offset : offsets) {
    last_commit = std::max(last_commit, offset.commit_timestamp);
  }
  for (const GroupOffsets::Stored& offset : offsets) {
    if (offset.is_pending) {
      continue;
    }
    if (group.protocol_type.empty()) {
      if (group.state == GroupState::kEmpty || group.state == GroupState::kDead) {
        expire(offset, std::max(last_commit, used_at));
      }
    } else if (group.state == GroupState::kEmpty) {
      expire(offset, group.state_timestamp == kNoTimestamp ? offset.commit_timestamp
                                                           : group.state_timestamp);
    } else if (group.state == GroupState::kStable && group.protocol_type == kConsumerProtocolType &&
               group.subscribed_topics &&
               !group.subscribed_topics->contains(offset.partition.topic)) {
      expire(offset, offset.commit_timestamp);
    }
  }
  return expired;
}

}  // namespace weir::log
