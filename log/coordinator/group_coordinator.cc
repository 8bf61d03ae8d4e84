#include "log/coordinator/group_coordinator.h"

#include "log/coordinator/consumer_protocol.h"

#include <algorithm>
#include <chrono>
#include <utility>

// GroupCoordinator: requests that are answered at once, loading, time.

namespace weir::log {

std::string_view group_error_name(GroupError error) {
  switch (error) {
    case GroupError::kNone:
      return "NONE";
    case GroupError::kCoordinatorNotAvailable:
      return "COORDINATOR_NOT_AVAILABLE";
    case GroupError::kNotCoordinator:
      return "NOT_COORDINATOR";
    case GroupError::kIllegalGeneration:
      return "ILLEGAL_GENERATION";
    case GroupError::kInconsistentGroupProtocol:
      return "INCONSISTENT_GROUP_PROTOCOL";
    case GroupError::kInvalidGroupId:
      return "INVALID_GROUP_ID";
    case GroupError::kUnknownMemberId:
      return "UNKNOWN_MEMBER_ID";
    case GroupError::kInvalidSessionTimeout:
      return "INVALID_SESSION_TIMEOUT";
    case GroupError::kRebalanceInProgress:
      return "REBALANCE_IN_PROGRESS";
    case GroupError::kNonEmptyGroup:
      return "NON_EMPTY_GROUP";
    case GroupError::kGroupIdNotFound:
      return "GROUP_ID_NOT_FOUND";
    case GroupError::kMemberIdRequired:
      return "MEMBER_ID_REQUIRED";
    case GroupError::kGroupMaxSizeReached:
      return "GROUP_MAX_SIZE_REACHED";
    case GroupError::kFencedInstanceId:
      return "FENCED_INSTANCE_ID";
    case GroupError::kGroupSubscribedToTopic:
      return "GROUP_SUBSCRIBED_TO_TOPIC";
  }
  return "UNKNOWN_SERVER_ERROR";
}

std::string_view group_state_name(GroupState state) {
  switch (state) {
    case GroupState::kEmpty:
      return "Empty";
    case GroupState::kPreparingRebalance:
      return "PreparingRebalance";
    case GroupState::kCompletingRebalance:
      return "CompletingRebalance";
    case GroupState::kStable:
      return "Stable";
    case GroupState::kDead:
      return "Dead";
  }
  return "Unknown";
}

// --- Heartbeats, leaving, commits

GroupError GroupCoordinator::hear_from(ClassicGroup& group, const GroupIdentity& who,
                                       GroupTime now) {
  if (const GroupError error = group.check_member(who.member_id, who.instance_id);
      error != GroupError::kNone) {
    return error;
  }
  if (who.generation != group.generation) {
    return GroupError::kIllegalGeneration;
  }
  ClassicMember& member = *group.find(who.member_id);
  arm_session(group, member, member.session_timeout_ms, now);
  return GroupError::kNone;
}

GroupError GroupCoordinator::heartbeat(const GroupIdentity& who, GroupTime now) {
  ClassicGroup* group = find(who.group);
  if (group == nullptr) {
    return GroupError::kUnknownMemberId;
  }
  if (const GroupError error = hear_from(*group, who, now); error != GroupError::kNone) {
    return error;
  }
  return group->state == GroupState::kPreparingRebalance ? GroupError::kRebalanceInProgress
                                                         : GroupError::kNone;
}

std::vector<GroupError> GroupCoordinator::leave(const std::string& group_id,
                                                std::span<const LeavingMember> members,
                                                GroupTime now, GroupEffects& out) {
  std::vector<GroupError> answers(members.size(), GroupError::kUnknownMemberId);
  ClassicGroup* group = find(group_id);
  if (group == nullptr) {
    return answers;
  }
  bool left = false;
  for (std::size_t i = 0; i < members.size(); ++i) {
    std::string member_id = members[i].member_id;
    if (member_id.empty()) {
      const std::string* known =
          members[i].instance_id ? group->static_member(*members[i].instance_id) : nullptr;
      if (known == nullptr) {
        continue;
      }
      member_id = *known;
    } else if (group->pending.contains(member_id)) {
      remove_pending(*group, member_id);
      answers[i] = GroupError::kNone;
      left = true;
      continue;
    } else if (const GroupError error = group->check_member(member_id, members[i].instance_id);
               error != GroupError::kNone) {
      answers[i] = error;
      continue;
    }
    drop_member(*group, member_id, "it left", out);
    answers[i] = GroupError::kNone;
    left = true;
  }
  if (left) {
    after_removal(*group, "a member left", now, out);
  }
  return answers;
}

GroupError GroupCoordinator::commit(const GroupIdentity& who, bool transactional, GroupTime now) {
  ClassicGroup* group = find(who.group);
  if (group == nullptr) {
    if (who.group.empty()) {
      return GroupError::kInvalidGroupId;
    }
    if (who.generation >= 0) {
      return GroupError::kIllegalGeneration;
    }
    make(who.group, now.wall);
    return GroupError::kNone;
  }
  if (who.generation < 0 && group->state == GroupState::kEmpty) {
    return GroupError::kNone;
  }
  if (who.generation >= 0 || !who.member_id.empty() || who.instance_id) {
    if (const GroupError error = hear_from(*group, who, now); error != GroupError::kNone) {
      return error;
    }
  } else if (!transactional) {
    return GroupError::kUnknownMemberId;
  }
  return !transactional && group->state == GroupState::kCompletingRebalance
             ? GroupError::kRebalanceInProgress
             : GroupError::kNone;
}

GroupError GroupCoordinator::may_delete_offsets(const std::string& group_id,
                                                const std::string& topic) const {
  const ClassicGroup* group = find(group_id);
  if (group == nullptr) {
    return GroupError::kGroupIdNotFound;
  }
  if (group->members.empty()) {
    return GroupError::kNone;
  }
  if (group->protocol_type != kConsumerProtocolType) {
    return GroupError::kNonEmptyGroup;
  }
  const auto topics = group->subscribed_topics();
  return !topics || topics->contains(topic) ? GroupError::kGroupSubscribedToTopic
                                            : GroupError::kNone;
}

GroupError GroupCoordinator::remove(const std::string& group_id, GroupEffects& out) {
  const ClassicGroup* group = find(group_id);
  if (group == nullptr) {
    return GroupError::kGroupIdNotFound;
  }
  if (group->state != GroupState::kEmpty || !group->pending.empty()) {
    return GroupError::kNonEmptyGroup;
  }
  const AppendId id = next_append_++;
  appends_[id] = {group_id, 0, {}};
  out.emplace_back(AppendGroup{id, group_id, std::nullopt});
  forget(group_id);
  return GroupError::kNone;
}

// --- Loading

void GroupCoordinator::load(const std::string& group_id, const GroupValue& value, GroupTime now,
                            GroupEffects& out) {
  unload(group_id, out);
  ClassicGroup& group = make(group_id, now.wall);
  group.generation = value.generation;
  group.protocol_type = value.protocol_type;
  group.protocol = value.protocol.value_or("");
  for (const GroupMemberValue& from : value.members) {
    ClassicMember member;
    member.id = from.member_id;
    member.instance_id = from.instance_id;
    member.client_id = from.client_id;
    member.client_host = from.client_host;
    member.session_timeout_ms = std::max(1, from.session_timeout_ms);
    member.rebalance_timeout_ms = std::max(1, from.rebalance_timeout_ms);
    member.protocols = {{group.protocol, from.subscription}};
    member.assignment = from.assignment;
    if (group.find(member.id) == nullptr) {
      ClassicMember& added = group.add(std::move(member));
      arm_session(group, added, added.session_timeout_ms, now);
    }
  }
  if (value.leader && group.find(*value.leader) != nullptr) {
    group.leader = value.leader;
  }
  group.state = group.members.empty() ? GroupState::kEmpty : GroupState::kStable;
  group.state_timestamp = value.state_timestamp;
  if (group.members.size() > static_cast<std::size_t>(config_.members_max)) {
    prepare(group, "it has more members than group.max.size", now, out);
  }
}

void GroupCoordinator::unload(const std::string& group_id, GroupEffects& out) {
  ClassicGroup* group = find(group_id);
  if (group == nullptr) {
    return;
  }
  for (auto& [member_id, member] : group->members) {
    if (member.join) {
      JoinGroupAnswer answer;
      answer.error = GroupError::kNotCoordinator;
      answer.member_id = member_id;
      out.emplace_back(AnswerJoin{*member.join, std::move(answer)});
    }
    if (member.sync) {
      out.emplace_back(AnswerSync{*member.sync, {GroupError::kNotCoordinator, {}, {}, {}}});
    }
  }
  forget(group_id);
}

// --- Time

GroupTimer GroupCoordinator::arm(Timer timer, std::int32_t delay_ms, GroupTime now) {
  const GroupTimer at{now.monotonic + std::chrono::milliseconds(std::max(0, delay_ms)),
                      next_timer_++};
  timers_.emplace(at, std::move(timer));
  return at;
}

void GroupCoordinator::disarm(std::optional<GroupTimer>& timer) {
  if (timer) {
    timers_.erase(*timer);
    timer.reset();
  }
}

void GroupCoordinator::arm_session(ClassicGroup& group, ClassicMember& member,
                                   std::int32_t delay_ms, GroupTime now) {
  disarm(member.session);
  Timer timer;
  timer.kind = TimerKind::kSession;
  timer.group = group.id;
  timer.member_id = member.id;
  member.session = arm(std::move(timer), delay_ms, now);
}

std::optional<MonotonicTime> GroupCoordinator::next_deadline() const {
  return timers_.empty() ? std::nullopt : std::optional(timers_.begin()->first.first);
}

void GroupCoordinator::tick(GroupTime now, GroupEffects& out) {
  while (!timers_.empty() && timers_.begin()->first.first <= now.monotonic) {
    const Timer timer = std::move(timers_.begin()->second);
    timers_.erase(timers_.begin());
    fire(timer, now, out);
  }
}

void GroupCoordinator::fire(const Timer& timer, GroupTime now, GroupEffects& out) {
  ClassicGroup* group = find(timer.group);
  if (group == nullptr) {
    return;
  }
  switch (timer.kind) {
    case TimerKind::kPending:
      group->pending.erase(timer.member_id);
      complete_join_if_all(*group, now, out);
      return;
    case TimerKind::kSession: {
      ClassicMember* member = group->find(timer.member_id);
      if (member == nullptr) {
        return;
      }
      member->session.reset();
      if (member->may_expire()) {
        drop_member(*group, timer.member_id, "its session timed out", out);
        after_removal(*group, "a member's session timed out", now, out);
      }
      return;
    }
    case TimerKind::kInitialDelay:
      group->join_timer.reset();
      after_initial_delay(*group, timer, now, out);
      return;
    case TimerKind::kJoin:
      group->join_timer.reset();
      complete_join(*group, now, out);
      return;
    case TimerKind::kSync:
      group->sync_timer.reset();
      expire_syncs(*group, timer.generation, now, out);
      return;
  }
}

// --- Groups

ClassicGroup* GroupCoordinator::find(const std::string& group) {
  const auto found = groups_.find(group);
  return found == groups_.end() ? nullptr : found->second.group.get();
}

const ClassicGroup* GroupCoordinator::find(const std::string& group) const {
  const auto found = groups_.find(group);
  return found == groups_.end() ? nullptr : found->second.group.get();
}

ClassicGroup& GroupCoordinator::make(const std::string& group, Timestamp now) {
  Known& known = groups_[group];
  known.group = std::make_unique<ClassicGroup>(group, now);
  known.incarnation = next_incarnation_++;
  return *known.group;
}

void GroupCoordinator::forget(const std::string& group_id) {
  ClassicGroup* group = find(group_id);
  for (auto& [member_id, member] : group->members) {
    disarm(member.session);
  }
  for (const auto& [member_id, timer] : group->pending) {
    timers_.erase(timer);
  }
  disarm(group->join_timer);
  disarm(group->sync_timer);
  groups_.erase(group_id);
}

GroupSnapshot GroupCoordinator::snapshot(const std::string& group_id) const {
  GroupSnapshot snapshot;
  const ClassicGroup* group = find(group_id);
  if (group == nullptr) {
    return snapshot;
  }
  std::map<std::string, std::string> assignments;
  if (group->state == GroupState::kStable) {
    for (const auto& [member_id, member] : group->members) {
      assignments[member_id] = member.assignment;
    }
  }
  const GroupValue value = group->to_value(assignments);
  snapshot.state = group->state;
  snapshot.protocol_type = value.protocol_type;
  snapshot.protocol = value.protocol.value_or("");
  snapshot.leader = value.leader.value_or("");
  snapshot.generation = value.generation;
  snapshot.state_timestamp = value.state_timestamp;
  snapshot.members = value.members;
  snapshot.subscribed_topics = group->subscribed_topics();
  return snapshot;
}

std::vector<std::string> GroupCoordinator::groups() const {
  std::vector<std::string> ids;
  for (const auto& [group, known] : groups_) {
    ids.push_back(group);
  }
  return ids;
}

}  // namespace weir::log
