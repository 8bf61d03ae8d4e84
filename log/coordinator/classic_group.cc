#include "log/coordinator/classic_group.h"

#include "log/coordinator/consumer_protocol.h"

#include <weir/runtime/assert.h>

#include <algorithm>

namespace weir::log {

const std::string* ClassicMember::metadata(const std::string& protocol) const {
  const auto found = std::find_if(protocols.begin(), protocols.end(),
                                  [&](const GroupProtocol& p) { return p.name == protocol; });
  return found == protocols.end() ? nullptr : &found->metadata;
}

ClassicMember* ClassicGroup::find(const std::string& member_id) {
  const auto found = members.find(member_id);
  return found == members.end() ? nullptr : &found->second;
}

const ClassicMember* ClassicGroup::find(const std::string& member_id) const {
  const auto found = members.find(member_id);
  return found == members.end() ? nullptr : &found->second;
}

ClassicMember& ClassicGroup::add(ClassicMember member) {
  const std::string member_id = member.id;
  if (member.instance_id) {
    instances[*member.instance_id] = member_id;
  }
  if (!leader) {
    leader = member_id;
  }
  const auto [added, inserted] = members.emplace(member_id, std::move(member));
  WEIR_ASSERT(inserted);
  return added->second;
}

void ClassicGroup::remove(const std::string& member_id) {
  const auto found = members.find(member_id);
  WEIR_ASSERT(found != members.end());
  if (found->second.instance_id) {
    instances.erase(*found->second.instance_id);
  }
  members.erase(found);
  missing_syncs.erase(member_id);
  if (is_leader(member_id)) {
    leader = members.empty() ? std::nullopt : std::optional(members.begin()->first);
  }
}

ClassicMember& ClassicGroup::rename(const std::string& old_id, const std::string& new_id) {
  auto node = members.extract(old_id);
  WEIR_ASSERT(!node.empty());
  node.key() = new_id;
  ClassicMember& member = members.insert(std::move(node)).position->second;
  member.id = new_id;
  instances[*member.instance_id] = new_id;
  if (is_leader(old_id)) {
    leader = new_id;
  }
  if (missing_syncs.erase(old_id) > 0) {
    missing_syncs.insert(new_id);
  }
  return member;
}

const std::string* ClassicGroup::static_member(const std::string& instance_id) const {
  const auto found = instances.find(instance_id);
  return found == instances.end() ? nullptr : &found->second;
}

GroupError ClassicGroup::check_member(const std::string& member_id,
                                      const std::optional<std::string>& instance_id) const {
  if (instance_id) {
    const std::string* known = static_member(*instance_id);
    if (known == nullptr) {
      return GroupError::kUnknownMemberId;
    }
    if (*known != member_id) {
      return GroupError::kFencedInstanceId;
    }
  }
  return members.contains(member_id) ? GroupError::kNone : GroupError::kUnknownMemberId;
}

bool ClassicGroup::supports(const std::string& type,
                            const std::vector<GroupProtocol>& protocols) const {
  if (type.empty() || protocols.empty()) {
    return false;
  }
  if (members.empty()) {
    return true;
  }
  return type == protocol_type &&
         std::any_of(protocols.begin(), protocols.end(), [&](const GroupProtocol& p) {
           return std::all_of(members.begin(), members.end(), [&](const auto& member) {
             return member.second.metadata(p.name) != nullptr;
           });
         });
}

std::string ClassicGroup::select_protocol() const {
  std::map<std::string, std::size_t> votes;
  for (const auto& [member_id, member] : members) {
    for (const GroupProtocol& wanted : member.protocols) {
      const bool shared = std::all_of(members.begin(), members.end(), [&](const auto& other) {
        return other.second.metadata(wanted.name) != nullptr;
      });
      if (shared) {
        ++votes[wanted.name];
        break;
      }
    }
  }
  WEIR_ASSERT(!votes.empty());
  const std::size_t most =
      std::max_element(votes.begin(), votes.end(), [](const auto& a, const auto& b) {
        return a.second < b.second;
      })->second;
  const ClassicMember* judge = leader ? find(*leader) : nullptr;
  for (const GroupProtocol& liked :
       (judge != nullptr ? *judge : members.begin()->second).protocols) {
    const auto found = votes.find(liked.name);
    if (found != votes.end() && found->second == most) {
      return liked.name;
    }
  }
  return std::find_if(votes.begin(), votes.end(), [&](const auto& v) { return v.second == most; })
      ->first;
}

std::size_t ClassicGroup::parked_joins() const {
  return static_cast<std::size_t>(
      std::count_if(members.begin(), members.end(),
                    [](const auto& member) { return member.second.join.has_value(); }));
}

std::int32_t ClassicGroup::rebalance_timeout_ms() const {
  std::int32_t longest = 1;
  for (const auto& [member_id, member] : members) {
    longest = std::max(longest, member.rebalance_timeout_ms);
  }
  return longest;
}

bool ClassicGroup::elect_joined_leader() {
  if (leader && members.at(*leader).join) {
    return true;
  }
  const auto joined = std::find_if(members.begin(), members.end(), [](const auto& member) {
    return member.second.join.has_value();
  });
  if (joined == members.end()) {
    return false;
  }
  leader = joined->first;
  return true;
}

void ClassicGroup::move_to(GroupState next, Timestamp now) {
  previous_state = state;
  state = next;
  state_timestamp = now;
}

void ClassicGroup::begin_generation(Timestamp now) {
  ++generation;
  missing_syncs.clear();
  assignment_append.reset();
  if (members.empty()) {
    protocol.clear();
    leader.reset();
    move_to(GroupState::kEmpty, now);
  } else {
    protocol = select_protocol();
    move_to(GroupState::kCompletingRebalance, now);
  }
}

std::optional<std::set<std::string>> ClassicGroup::subscribed_topics() const {
  std::set<std::string> topics;
  if (members.empty()) {
    return topics;
  }
  if (protocol_type != kConsumerProtocolType) {
    return std::nullopt;
  }
  for (const auto& [member_id, member] : members) {
    const std::string* metadata = member.metadata(protocol);
    // Before the first generation there is no chosen protocol yet: all of them say the topics.
    const auto subscription =
        decode_subscription(metadata != nullptr ? *metadata : member.protocols.front().metadata);
    if (!subscription.ok()) {
      return std::nullopt;
    }
    topics.insert(subscription->topics.begin(), subscription->topics.end());
  }
  return topics;
}

std::vector<JoinedMember> ClassicGroup::joined_members() const {
  std::vector<JoinedMember> joined;
  for (const auto& [member_id, member] : members) {
    const std::string* metadata = member.metadata(protocol);
    joined.push_back(
        {member_id, member.instance_id, metadata != nullptr ? *metadata : std::string()});
  }
  return joined;
}

GroupValue ClassicGroup::to_value(const std::map<std::string, std::string>& assignments) const {
  GroupValue value;
  value.protocol_type = protocol_type;
  value.generation = generation;
  value.state_timestamp = state_timestamp;
  if (members.empty()) {
    return value;
  }
  value.protocol = protocol;
  value.leader = leader;
  for (const auto& [member_id, member] : members) {
    GroupMemberValue entry;
    entry.member_id = member_id;
    entry.instance_id = member.instance_id;
    entry.client_id = member.client_id;
    entry.client_host = member.client_host;
    entry.rebalance_timeout_ms = member.rebalance_timeout_ms;
    entry.session_timeout_ms = member.session_timeout_ms;
    if (const std::string* metadata = member.metadata(protocol)) {
      entry.subscription = *metadata;
    }
    if (const auto assignment = assignments.find(member_id); assignment != assignments.end()) {
      entry.assignment = assignment->second;
    }
    value.members.push_back(std::move(entry));
  }
  return value;
}

}  // namespace weir::log
