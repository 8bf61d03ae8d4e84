#include "log/coordinator/consumer_protocol.h"
#include "log/coordinator/group_coordinator.h"

#include <fmt/core.h>

#include <algorithm>
#include <utility>

// GroupCoordinator: who joins.

namespace weir::log {
namespace {

AnswerJoin refusal(RequestToken token, GroupError error, std::string member_id) {
  JoinGroupAnswer answer;
  answer.error = error;
  answer.member_id = std::move(member_id);
  return {token, std::move(answer)};
}

std::int32_t rebalance_timeout_of(const JoinGroupRequest& request) {
  return std::max(1, request.rebalance_timeout_ms < 0 ? request.session_timeout_ms
                                                      : request.rebalance_timeout_ms);
}

}  // namespace

void GroupCoordinator::join(const JoinGroupRequest& request, RequestToken token, GroupTime now,
                            GroupEffects& out) {
  if (request.group.empty()) {
    out.emplace_back(refusal(token, GroupError::kInvalidGroupId, request.member_id));
    return;
  }
  if (request.session_timeout_ms < config_.session_timeout_min_ms ||
      request.session_timeout_ms > config_.session_timeout_max_ms) {
    out.emplace_back(refusal(token, GroupError::kInvalidSessionTimeout, request.member_id));
    return;
  }
  const bool is_new_member = request.member_id.empty();
  ClassicGroup* group = find(request.group);
  if (group == nullptr && !is_new_member) {
    out.emplace_back(refusal(token, GroupError::kUnknownMemberId, request.member_id));
    return;
  }
  const bool is_new_group = group == nullptr;
  if (is_new_group) {
    if (request.protocol_type.empty() || request.protocols.empty()) {
      out.emplace_back(refusal(token, GroupError::kInconsistentGroupProtocol, ""));
      return;
    }
    group = &make(request.group, now.wall);
    append(*group, group->to_value({}), {}, out);
  }
  if (!accepts(*group, request.member_id)) {
    if (group->pending.contains(request.member_id)) {
      remove_pending(*group, request.member_id);
      complete_join_if_all(*group, now, out);
    } else if (group->check_member(request.member_id, request.instance_id) == GroupError::kNone) {
      drop_member(*group, request.member_id, "the group is over group.max.size", out);
      after_removal(*group, "a member was one too many", now, out);
    }
    out.emplace_back(refusal(token, GroupError::kGroupMaxSizeReached, ""));
    return;
  }
  if (!group->supports(request.protocol_type, request.protocols)) {
    out.emplace_back(refusal(token, GroupError::kInconsistentGroupProtocol, request.member_id));
    return;
  }
  if (is_new_member) {
    join_new(*group, request, token, now, out);
  } else {
    join_existing(*group, request, token, now, out);
  }
}

bool GroupCoordinator::accepts(const ClassicGroup& group, const std::string& member_id) const {
  const auto limit = static_cast<std::size_t>(config_.members_max);
  if (member_id.empty() && group.pending.size() >= limit) {
    return false;
  }
  const ClassicMember* member = group.find(member_id);
  switch (group.state) {
    case GroupState::kEmpty:
    case GroupState::kDead:
      return true;
    case GroupState::kPreparingRebalance:
      // Those that joined count: when the limit was lowered, the last to rejoin have to go.
      return (member != nullptr && member->join) || group.parked_joins() < limit;
    case GroupState::kCompletingRebalance:
    case GroupState::kStable:
      return member != nullptr || group.pending.contains(member_id) ||
             group.members.size() + group.pending.size() < limit;
  }
  return false;
}

std::string GroupCoordinator::make_member_id(const ClassicGroup& group,
                                             const JoinGroupRequest& request) {
  const std::string& name = request.instance_id ? *request.instance_id : request.client_id;
  constexpr std::size_t kNameMax = 1'000;
  for (;;) {
    std::string id = fmt::format("{}-{:016x}-{}", name.substr(0, kNameMax), config_.member_id_seed,
                                 next_member_++);
    if (group.find(id) == nullptr && !group.pending.contains(id)) {
      return id;  // a life with the same seed may have given it to one that is still there
    }
  }
}

void GroupCoordinator::join_new(ClassicGroup& group, const JoinGroupRequest& request,
                                RequestToken token, GroupTime now, GroupEffects& out) {
  const std::string member_id = make_member_id(group, request);
  if (request.instance_id) {
    if (const std::string* known = group.static_member(*request.instance_id)) {
      replace_static(group, std::string(*known), member_id, request, token, now, out);
    } else {
      add_member(group, member_id, request, token, now, out);
    }
    return;
  }
  if (!request.requires_known_id) {
    add_member(group, member_id, request, token, now, out);
    return;
  }
  Timer timer;
  timer.kind = TimerKind::kPending;
  timer.group = group.id;
  timer.member_id = member_id;
  group.pending[member_id] = arm(std::move(timer), request.session_timeout_ms, now);
  out.emplace_back(refusal(token, GroupError::kMemberIdRequired, member_id));
}

void GroupCoordinator::join_existing(ClassicGroup& group, const JoinGroupRequest& request,
                                     RequestToken token, GroupTime now, GroupEffects& out) {
  const std::string& member_id = request.member_id;
  if (group.pending.contains(member_id)) {
    remove_pending(group, member_id);
    if (request.instance_id && group.static_member(*request.instance_id) != nullptr) {
      out.emplace_back(refusal(token, GroupError::kFencedInstanceId, member_id));
      complete_join_if_all(group, now, out);
      return;
    }
    add_member(group, member_id, request, token, now, out);
    return;
  }
  if (const GroupError error = group.check_member(member_id, request.instance_id);
      error != GroupError::kNone) {
    out.emplace_back(refusal(token, error, member_id));
    return;
  }
  ClassicMember& member = *group.find(member_id);
  const bool changed = member.protocols != request.protocols;
  const bool forces = group.state == GroupState::kPreparingRebalance || changed ||
                      (group.state == GroupState::kStable && group.is_leader(member_id));
  if (forces) {
    update_member(member, request, token, out);
    prepare_or_complete(
        group, changed ? "a member changed what it supports" : "the leader joins again", now, out);
    return;
  }
  arm_session(group, member, member.session_timeout_ms, now);
  out.emplace_back(AnswerJoin{token, current_generation(group, member_id)});
}

// What a member hears that has only missed an answer.
JoinGroupAnswer GroupCoordinator::current_generation(const ClassicGroup& group,
                                                     const std::string& member_id) {
  JoinGroupAnswer answer;
  answer.generation = group.generation;
  answer.protocol_type = group.protocol_type;
  answer.protocol = group.protocol;
  answer.leader = group.leader.value_or("");
  answer.member_id = member_id;
  if (group.state == GroupState::kCompletingRebalance && group.is_leader(member_id)) {
    answer.members = group.joined_members();
  }
  return answer;
}

void GroupCoordinator::add_member(ClassicGroup& group, const std::string& member_id,
                                  const JoinGroupRequest& request, RequestToken token,
                                  GroupTime now, GroupEffects& out) {
  ClassicMember member;
  member.id = member_id;
  member.instance_id = request.instance_id;
  member.is_new = true;
  update_member(member, request, token, out);
  if (group.state == GroupState::kPreparingRebalance &&
      group.previous_state == GroupState::kEmpty) {
    group.member_added = true;
  }
  if (group.members.empty()) {
    group.protocol_type = request.protocol_type;
  }
  ClassicMember& added = group.add(std::move(member));
  // It has no id to heartbeat with before the answer; a join that nobody waits for must not stay.
  arm_session(group, added, config_.new_member_timeout_ms, now);
  prepare_or_complete(group, "a member joins", now, out);
}

void GroupCoordinator::update_member(ClassicMember& member, const JoinGroupRequest& request,
                                     RequestToken token, GroupEffects& out) {
  member.client_id = request.client_id;
  member.client_host = request.client_host;
  member.session_timeout_ms = request.session_timeout_ms;
  member.rebalance_timeout_ms = rebalance_timeout_of(request);
  member.protocols = request.protocols;
  if (member.join) {
    out.emplace_back(refusal(*member.join, GroupError::kRebalanceInProgress, member.id));
  }
  if (member.sync) {
    out.emplace_back(AnswerSync{*member.sync, {GroupError::kRebalanceInProgress, {}, {}, {}}});
    member.sync.reset();
  }
  member.join = token;
}

// A restarted static member asks for the same: so its partitions can stay where they are.
bool GroupCoordinator::same_demand(const ClassicGroup& group, const ClassicMember& before,
                                   const ClassicMember& now) {
  if (group.select_protocol() != group.protocol) {
    return false;
  }
  const std::string* old_metadata = before.metadata(group.protocol);
  const std::string* new_metadata = now.metadata(group.protocol);
  if (old_metadata == nullptr || new_metadata == nullptr ||
      group.protocol_type != kConsumerProtocolType) {
    return true;
  }
  // Kafka looks at the protocol alone and leaves a changed list of topics unheard.
  auto old_topics = decode_subscription(*old_metadata);
  auto new_topics = decode_subscription(*new_metadata);
  if (!old_topics.ok() || !new_topics.ok()) {
    return true;
  }
  std::ranges::sort(old_topics->topics);
  std::ranges::sort(new_topics->topics);
  return old_topics->topics == new_topics->topics;
}

void GroupCoordinator::replace_static(ClassicGroup& group, const std::string& old_id,
                                      const std::string& new_id, const JoinGroupRequest& request,
                                      RequestToken token, GroupTime now, GroupEffects& out) {
  const std::string old_leader = group.leader.value_or("");
  ClassicMember& member = *group.find(old_id);
  if (member.join) {
    out.emplace_back(refusal(*member.join, GroupError::kFencedInstanceId, old_id));
    member.join.reset();
  }
  if (member.sync) {
    out.emplace_back(AnswerSync{*member.sync, {GroupError::kFencedInstanceId, {}, {}, {}}});
    member.sync.reset();
  }
  disarm(member.session);
  const ClassicMember before = member;
  out.emplace_back(GroupNote{GroupNote::Kind::kMemberFenced, group.id, group.generation, old_id,
                             "its group.instance.id joined again", group.members.size()});
  ClassicMember& renamed = group.rename(old_id, new_id);
  update_member(renamed, request, token, out);
  arm_session(group, renamed, renamed.session_timeout_ms, now);
  switch (group.state) {
    case GroupState::kStable:
      if (same_demand(group, before, renamed)) {
        std::map<std::string, std::string> assignments;
        for (const auto& [member_id, one] : group.members) {
          assignments[member_id] = one.assignment;
        }
        append(group, group.to_value(assignments),
               StaticAppend{token, old_leader, request.can_skip_assignment, before, new_id}, out);
        return;
      }
      prepare(group, "a static member came back with another demand", now, out);
      return;
    case GroupState::kCompletingRebalance:
      prepare(group, "a static member came back", now, out);
      return;
    case GroupState::kPreparingRebalance:
      complete_join_if_all(group, now, out);
      return;
    case GroupState::kEmpty:
    case GroupState::kDead:
      return;  // no members: not reached
  }
}

}  // namespace weir::log
