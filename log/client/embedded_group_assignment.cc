#include "log/client/embedded_group.h"

#include <algorithm>
#include <utility>

// EmbeddedGroup: partitions that come and go, and what topics have to do with it.

namespace weir::log {

void EmbeddedGroup::take_assignment(const ConsumerAssignment& assignment) {
  assigned_user_data_ = assignment.user_data.value_or("");
  Owned next;
  for (const TopicPartition& partition : assignment.partitions) {
    const TopicState topic = topic_state(partition.topic);
    if (partition.partition.value() < topic.partitions) {
      next.emplace(partition, topic.id);  // else the topic is gone: its leader sees that, too
    }
  }
  std::vector<TopicPartition> revoked;
  std::vector<TopicPartition> added;
  for (const auto& [partition, id] : owned_) {
    if (!next.contains(partition)) {
      revoked.push_back(partition);
    }
  }
  for (const auto& [partition, id] : next) {
    if (!owned_.contains(partition)) {
      added.push_back(partition);
    }
  }
  if (!revoked.empty()) {
    phase_ = Phase::kMustJoin;  // so that others can have them
  }
  give_up(revoked);
  for (const TopicPartition& partition : added) {
    owned_.emplace(partition, next.at(partition));
  }
  if (!added.empty() || std::exchange(first_assignment_, false)) {
    first_assignment_ = false;
    listener_->on_assigned(added);
  }
}

void EmbeddedGroup::give_up(const std::vector<TopicPartition>& partitions) {
  if (partitions.empty()) {
    return;
  }
  listener_->on_revoked(partitions);
  for (const TopicPartition& partition : partitions) {
    owned_.erase(partition);
  }
}

void EmbeddedGroup::lose_everything() {
  const std::vector<TopicPartition> lost = owned_names();
  owned_.clear();
  generation_ = -1;
  is_leader_ = false;
  assigned_user_data_.clear();
  GroupIdentity nobody;
  nobody.group = group_id_;
  groups().set_local(local_, nobody);
  if (!lost.empty()) {
    listener_->on_lost(lost);
  }
}

// --- Topics

EmbeddedGroup::TopicState EmbeddedGroup::topic_state(const std::string& topic) const {
  const Result<TopicDescription> found = directory_.describe_topic(topic);
  return found.ok() ? TopicState{found->id, found->partitions} : TopicState{};
}

// Partitions whose topic is gone, or has been made anew, are nobody's.
void EmbeddedGroup::lose_gone_topics() {
  const std::uint64_t topics = directory_.topic_generation();
  if (topics == topics_seen_) {
    return;
  }
  topics_seen_ = topics;
  std::vector<TopicPartition> lost;
  for (const auto& [partition, id] : owned_) {
    if (topic_state(partition.topic).id != id) {
      lost.push_back(partition);
    }
  }
  if (lost.empty()) {
    return;
  }
  for (const TopicPartition& partition : lost) {
    owned_.erase(partition);
  }
  if (phase_ == Phase::kMember) {
    phase_ = Phase::kMustJoin;
  }
  listener_->on_lost(lost);
}

bool EmbeddedGroup::topics_changed_for_leader() {
  const std::uint64_t topics = directory_.topic_generation();
  if (topics == watched_at_) {
    return false;
  }
  watched_at_ = topics;
  return std::ranges::any_of(
      watched_, [this](const auto& topic) { return topic_state(topic.first) != topic.second; });
}

std::vector<TopicPartition> EmbeddedGroup::owned_names() const {
  std::vector<TopicPartition> names;
  for (const auto& [partition, id] : owned_) {
    names.push_back(partition);
  }
  return names;
}

}  // namespace weir::log
