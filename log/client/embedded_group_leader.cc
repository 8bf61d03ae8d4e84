#include "log/client/embedded_group.h"
#include "log/coordinator/consumer_protocol.h"

#include <weir/runtime/logger.h>

#include <fmt/core.h>

#include <algorithm>
#include <utility>

// EmbeddedGroup: what the leader does for the others, and reading without a group.

namespace weir::log {

std::vector<std::string> EmbeddedGroup::protocol_names() const {
  std::vector<std::string> names;
  if (options_.assignor != nullptr) {
    names.push_back(options_.assignor->name());
  }
  for (const AssignmentStrategy strategy : strategies_) {
    names.emplace_back(assignment_strategy_name(strategy));
  }
  return names;
}

void EmbeddedGroup::watch_topics(const std::vector<GroupSubscriber>& members) {
  watched_at_ = directory_.topic_generation();
  watched_.clear();
  for (const GroupSubscriber& member : members) {
    for (const std::string& topic : member.topics) {
      if (!watched_.contains(topic)) {
        watched_[topic] = topic_state(topic);
      }
    }
  }
}

Result<std::vector<std::pair<std::string, std::string>>> EmbeddedGroup::assign(
    const JoinGroupAnswer& answer) {
  std::vector<GroupSubscriber> members;
  std::map<std::string, std::string> user_data;
  for (const JoinedMember& joined : answer.members) {
    Result<ConsumerSubscription> said = decode_subscription(joined.metadata);
    if (!said.ok()) {
      WEIR_WARN(
          "member gets no partitions, its subscription cannot be read group={} member={} "
          "error=\"{}\"",
          group_id_, joined.member_id, said.error().to_string());
      said = ConsumerSubscription();
    }
    GroupSubscriber member;
    member.member_id = joined.member_id;
    member.instance_id = joined.instance_id;
    member.topics.insert(said->topics.begin(), said->topics.end());
    member.owned = std::move(said->owned);
    member.generation = said->generation;
    user_data[member.member_id] = said->user_data.value_or("");
    members.push_back(std::move(member));
  }
  watch_topics(members);
  std::vector<std::pair<std::string, std::string>> encoded;
  if (answer.skip_assignment || members.empty()) {
    return encoded;  // the group has its assignment
  }
  std::map<std::string, ConsumerAssignment> assignments;
  if (options_.assignor != nullptr) {
    WEIR_TRY_ASSIGN(assignments, assign_by_own(members, user_data));
  } else {
    PartitionCounts counts;
    for (const auto& [topic, state] : watched_) {
      if (state.partitions > 0) {
        counts[topic] = state.partitions;
      }
    }
    const auto strategy = parse_assignment_strategy(answer.protocol);
    if (!strategy) {
      return Error(Errc::kInvalidConfig,
                   fmt::format("group {} chose the assignor {}, which this member does not have",
                               group_id_, answer.protocol));
    }
    for (auto& [member, partitions] : assign_partitions(*strategy, counts, members)) {
      assignments[member].partitions = std::move(partitions);
    }
  }
  for (const auto& [member, assignment] : assignments) {
    encoded.emplace_back(member, encode_assignment(assignment));
  }
  return encoded;
}

Result<std::map<std::string, ConsumerAssignment>> EmbeddedGroup::assign_by_own(
    const std::vector<GroupSubscriber>& members,
    const std::map<std::string, std::string>& user_data) {
  std::vector<GroupAssignor::Member> asked;
  std::set<std::string> ids;
  for (const GroupSubscriber& member : members) {
    asked.push_back({member.member_id,
                     member.instance_id.value_or(""),
                     {member.topics.begin(), member.topics.end()},
                     user_data.at(member.member_id),
                     member.owned});
    ids.insert(member.member_id);
  }
  std::map<std::string, std::int32_t> counts;
  for (const auto& [topic, state] : watched_) {
    if (state.partitions > 0) {
      counts[topic] = state.partitions;
    }
  }
  const auto wrong = [&](const std::string& what) {
    return Error(Errc::kInvalidArgument, fmt::format("assignor {} of group {}: {}",
                                                     options_.assignor->name(), group_id_, what));
  };
  std::map<std::string, ConsumerAssignment> result;
  std::set<TopicPartition> given;
  for (auto& [member, assigned] : options_.assignor->assign(counts, asked)) {
    if (!ids.contains(member)) {
      return wrong(fmt::format("{} is no member", member));
    }
    for (const TopicPartition& partition : assigned.partitions) {
      const auto topic = counts.find(partition.topic);
      if (topic == counts.end() || partition.partition.value() < 0 ||
          partition.partition.value() >= topic->second) {
        return wrong(fmt::format("there is no {}", partition.to_string()));
      }
      if (!given.insert(partition).second) {
        return wrong(fmt::format("{} is given to two members", partition.to_string()));
      }
    }
    result[member] = {std::move(assigned.partitions), std::move(assigned.user_data)};
  }
  return result;
}

Status EmbeddedGroup::poll_alone() {
  const std::uint64_t topics = directory_.topic_generation();
  if (topics == topics_seen_) {
    return {};
  }
  topics_seen_ = topics;
  Owned next;
  for (const std::string& topic : topics_) {
    const TopicState state = topic_state(topic);
    for (std::int32_t i = 0; i < state.partitions; ++i) {
      next.emplace(TopicPartition{topic, PartitionId(i)}, state.id);
    }
  }
  std::vector<TopicPartition> lost;
  std::vector<TopicPartition> revoked;
  std::vector<TopicPartition> added;
  for (const auto& [partition, id] : owned_) {
    const auto now = next.find(partition);
    if (now == next.end() || now->second != id) {
      (topic_state(partition.topic).id == id ? revoked : lost).push_back(partition);
    }
  }
  for (const auto& [partition, id] : next) {
    const auto was = owned_.find(partition);
    if (was == owned_.end() || was->second != id) {
      added.push_back(partition);
    }
  }
  owned_ = std::move(next);
  if (!lost.empty()) {
    listener_->on_lost(lost);
  }
  if (!revoked.empty()) {
    listener_->on_revoked(revoked);
  }
  if (!added.empty() || std::exchange(first_assignment_, false)) {
    first_assignment_ = false;
    listener_->on_assigned(added);
  }
  return {};
}

}  // namespace weir::log
