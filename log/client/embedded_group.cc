#include "log/client/embedded_group.h"

#include <algorithm>
#include <iterator>

namespace weir::log {

Status EmbeddedGroup::join(std::vector<std::string> topics, std::string /*user_data*/,
                           GroupListener& listener) {
  topics_ = std::move(topics);
  listener_ = &listener;
  topics_seen_ = 0;
  return poll();
}

std::vector<TopicPartition> EmbeddedGroup::partitions_now() {
  std::vector<TopicPartition> partitions;
  for (const std::string& topic : topics_) {
    const Result<TopicDescription> description = directory_.describe_topic(topic);
    const std::int32_t count = description.ok() ? description->partitions : 0;
    for (std::int32_t i = 0; i < count; ++i) {
      partitions.push_back({topic, PartitionId(i)});
    }
  }
  std::sort(partitions.begin(), partitions.end());
  return partitions;
}

Status EmbeddedGroup::poll() {
  const std::uint64_t topics = directory_.topic_generation();
  if (listener_ == nullptr || topics == topics_seen_) {
    return {};
  }
  topics_seen_ = topics;
  std::vector<TopicPartition> now = partitions_now();
  std::vector<TopicPartition> gone;
  std::vector<TopicPartition> added;
  std::set_difference(owned_.begin(), owned_.end(), now.begin(), now.end(),
                      std::back_inserter(gone));
  std::set_difference(now.begin(), now.end(), owned_.begin(), owned_.end(),
                      std::back_inserter(added));
  owned_ = std::move(now);
  if (!gone.empty()) {
    listener_->on_lost(gone);
  }
  if (!added.empty()) {
    listener_->on_assigned(added);
  }
  return {};
}

Status EmbeddedGroup::leave() {
  if (listener_ != nullptr && !owned_.empty()) {
    listener_->on_revoked(owned_);
  }
  owned_.clear();
  listener_ = nullptr;
  return {};
}

Status EmbeddedGroup::commit(std::span<const std::pair<TopicPartition, CommittedOffset>> offsets) {
  if (directory_.read_only()) {
    return Error(Errc::kReadOnly,
                 "offsets cannot be committed through a log that was opened for reading");
  }
  return directory_.offsets().commit(group_id_, offsets);
}

Result<std::vector<std::optional<CommittedOffset>>> EmbeddedGroup::committed(
    std::span<const TopicPartition> partitions) {
  if (directory_.read_only()) {
    WEIR_TRY(directory_.refresh());
    directory_.offsets().invalidate();
  }
  return directory_.offsets().committed(group_id_, partitions);
}

GroupMetadata EmbeddedGroup::metadata() const {
  return GroupMetadata{group_id_, 1, group_id_ + "-1"};
}

}  // namespace weir::log
