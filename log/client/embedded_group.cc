#include "log/client/embedded_group.h"

#include <utility>

namespace weir::log {

EmbeddedGroup::~EmbeddedGroup() {
  members_.leave(group_id_, this);
}

Status EmbeddedGroup::join(std::vector<std::string> topics, std::string /*user_data*/,
                           GroupListener& listener) {
  WEIR_TRY(members_.join(group_id_, this));
  topics_ = std::set<std::string>(topics.begin(), topics.end());
  first_poll_ = listener_ == nullptr;
  listener_ = &listener;
  topics_seen_ = 0;
  return {};
}

EmbeddedGroup::Owned EmbeddedGroup::partitions_now() {
  Owned partitions;
  for (const std::string& topic : topics_) {
    const Result<TopicDescription> description = directory_.describe_topic(topic);
    const std::int32_t count = description.ok() ? description->partitions : 0;
    for (std::int32_t i = 0; i < count; ++i) {
      partitions.emplace(TopicPartition{topic, PartitionId(i)}, description->id);
    }
  }
  return partitions;
}

Status EmbeddedGroup::poll() {
  if (listener_ == nullptr) {
    return {};
  }
  WEIR_TRY(directory_.refresh());
  const std::uint64_t topics = directory_.topic_generation();
  if (topics == topics_seen_) {
    return {};
  }
  topics_seen_ = topics;
  const Owned before = std::exchange(owned_, partitions_now());
  std::vector<TopicPartition> lost;
  std::vector<TopicPartition> revoked;
  std::vector<TopicPartition> added;
  for (const auto& [partition, id] : before) {
    const auto now = owned_.find(partition);
    if (now != owned_.end() && now->second == id) {
      continue;
    }
    const Result<TopicDescription> topic = directory_.describe_topic(partition.topic);
    (topic.ok() && topic->id == id ? revoked : lost).push_back(partition);
  }
  for (const auto& [partition, id] : owned_) {
    const auto was = before.find(partition);
    if (was == before.end() || was->second != id) {
      added.push_back(partition);
    }
  }
  if (!lost.empty()) {
    listener_->on_lost(lost);
  }
  if (!revoked.empty()) {
    listener_->on_revoked(revoked);
  }
  if (!added.empty() || std::exchange(first_poll_, false)) {
    first_poll_ = false;
    listener_->on_assigned(added);
  }
  return {};
}

Status EmbeddedGroup::leave() {
  members_.leave(group_id_, this);
  owned_.clear();
  listener_ = nullptr;
  return {};
}

Status EmbeddedGroup::commit(std::span<const std::pair<TopicPartition, CommittedOffset>> offsets) {
  if (directory_.read_only()) {
    return Error(Errc::kReadOnly,
                 "offsets cannot be committed through a log that was opened for reading");
  }
  WEIR_TRY(members_.check_commit(group_id_, this));
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

Result<std::vector<std::optional<CommittedOffset>>> EmbeddedGroup::committed_stable(
    std::span<const TopicPartition> partitions) {
  if (directory_.read_only()) {
    WEIR_TRY(directory_.refresh());
    directory_.offsets().invalidate();
  }
  return directory_.offsets().committed(group_id_, partitions, true);
}

GroupMetadata EmbeddedGroup::metadata() const {
  return GroupMetadata{group_id_, 1, group_id_ + "-1"};
}

}  // namespace weir::log
