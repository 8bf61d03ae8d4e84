#include "log/coordinator/group_coordinator.h"

#include <algorithm>
#include <utility>

// GroupCoordinator: the phases of a rebalance.

namespace weir::log {

void GroupCoordinator::prepare_or_complete(ClassicGroup& group, std::string_view why, GroupTime now,
                                           GroupEffects& out) {
  if (group.state == GroupState::kPreparingRebalance) {
    complete_join_if_all(group, now, out);
  } else {
    prepare(group, why, now, out);
  }
}

void GroupCoordinator::prepare(ClassicGroup& group, std::string_view why, GroupTime now,
                               GroupEffects& out) {
  if (group.state == GroupState::kCompletingRebalance) {
    for (auto& [member_id, member] : group.members) {
      member.assignment.clear();
    }
    answer_syncs(group, GroupError::kRebalanceInProgress, now, out);
  }
  disarm(group.sync_timer);
  disarm(group.join_timer);
  const bool initial = group.state == GroupState::kEmpty;
  group.member_added = false;
  group.move_to(GroupState::kPreparingRebalance, now.wall);
  out.emplace_back(GroupNote{GroupNote::Kind::kRebalance, group.id, group.generation, "", why,
                             group.members.size()});
  Timer timer;
  timer.group = group.id;
  if (initial) {
    // Others are likely to come: a rebalance for each would cost more.
    timer.kind = TimerKind::kInitialDelay;
    timer.delay_ms = config_.initial_delay_ms;
    timer.remaining_ms = std::max(group.rebalance_timeout_ms() - config_.initial_delay_ms, 0);
    const std::int32_t delay = timer.delay_ms;
    group.join_timer = arm(std::move(timer), delay, now);
  } else if (group.all_joined()) {
    complete_join(group, now, out);
  } else {
    timer.kind = TimerKind::kJoin;
    group.join_timer = arm(std::move(timer), group.rebalance_timeout_ms(), now);
  }
}

void GroupCoordinator::after_initial_delay(ClassicGroup& group, const Timer& timer, GroupTime now,
                                           GroupEffects& out) {
  if (!group.member_added || timer.remaining_ms == 0) {
    complete_join(group, now, out);
    return;
  }
  group.member_added = false;
  Timer next = timer;
  next.delay_ms = std::min(config_.initial_delay_ms, timer.remaining_ms);
  next.remaining_ms = std::max(timer.remaining_ms - timer.delay_ms, 0);
  const std::int32_t delay = next.delay_ms;
  group.join_timer = arm(std::move(next), delay, now);
}

void GroupCoordinator::complete_join_if_all(ClassicGroup& group, GroupTime now, GroupEffects& out) {
  if (group.state == GroupState::kPreparingRebalance &&
      group.previous_state != GroupState::kEmpty && group.all_joined()) {
    complete_join(group, now, out);
  }
}

void GroupCoordinator::complete_join(ClassicGroup& group, GroupTime now, GroupEffects& out) {
  disarm(group.join_timer);
  std::vector<std::string> gone;
  for (const auto& [member_id, member] : group.members) {
    if (!member.join && !member.instance_id) {
      gone.push_back(member_id);
    }
  }
  for (const std::string& member_id : gone) {
    drop_member(group, member_id, "it did not rejoin within the rebalance timeout", out);
  }
  if (!group.members.empty() && !group.elect_joined_leader()) {
    out.emplace_back(GroupNote{GroupNote::Kind::kNobodyRejoined, group.id, group.generation, "", "",
                               group.members.size()});
    Timer timer;
    timer.kind = TimerKind::kJoin;
    timer.group = group.id;
    group.join_timer = arm(std::move(timer), group.rebalance_timeout_ms(), now);
    return;
  }
  group.begin_generation(now.wall);
  if (group.members.empty()) {
    out.emplace_back(GroupNote{GroupNote::Kind::kEmpty, group.id, group.generation, "", "", 0});
    append(group, group.to_value({}), {}, out);
    return;
  }
  for (auto& [member_id, member] : group.members) {
    member.assignment.clear();
    member.is_new = false;
    group.missing_syncs.insert(member_id);
    arm_session(group, member, member.session_timeout_ms, now);
    if (!member.join) {
      continue;  // a static member that is away
    }
    JoinGroupAnswer answer = current_generation(group, member_id);
    out.emplace_back(AnswerJoin{*std::exchange(member.join, std::nullopt), std::move(answer)});
  }
  Timer timer;
  timer.kind = TimerKind::kSync;
  timer.group = group.id;
  timer.generation = group.generation;
  group.sync_timer = arm(std::move(timer), group.rebalance_timeout_ms(), now);
}

void GroupCoordinator::expire_syncs(ClassicGroup& group, std::int32_t generation, GroupTime now,
                                    GroupEffects& out) {
  if (generation != group.generation || group.missing_syncs.empty() ||
      (group.state != GroupState::kCompletingRebalance && group.state != GroupState::kStable)) {
    return;
  }
  const std::set<std::string> missing = group.missing_syncs;
  for (const std::string& member_id : missing) {
    drop_member(group, member_id, "it did not sync within the rebalance timeout", out);
  }
  prepare(group, "members did not sync", now, out);
}

void GroupCoordinator::sync(const SyncGroupRequest& request, RequestToken token, GroupTime now,
                            GroupEffects& out) {
  const auto refuse = [&](GroupError error) {
    out.emplace_back(AnswerSync{token, {error, {}, {}, {}}});
  };
  ClassicGroup* group = find(request.group);
  if (group == nullptr) {
    refuse(GroupError::kUnknownMemberId);
    return;
  }
  if (const GroupError error = group->check_member(request.member_id, request.instance_id);
      error != GroupError::kNone) {
    refuse(error);
    return;
  }
  if (request.generation != group->generation) {
    refuse(GroupError::kIllegalGeneration);
    return;
  }
  if ((request.protocol_type && *request.protocol_type != group->protocol_type) ||
      (request.protocol && *request.protocol != group->protocol)) {
    refuse(GroupError::kInconsistentGroupProtocol);
    return;
  }
  ClassicMember& member = *group->find(request.member_id);
  if (group->state == GroupState::kStable) {
    group->missing_syncs.erase(request.member_id);
    arm_session(*group, member, member.session_timeout_ms, now);
    out.emplace_back(AnswerSync{
        token, {GroupError::kNone, group->protocol_type, group->protocol, member.assignment}});
    return;
  }
  if (group->state != GroupState::kCompletingRebalance) {
    refuse(GroupError::kRebalanceInProgress);
    return;
  }
  if (member.sync) {
    out.emplace_back(AnswerSync{*member.sync, {GroupError::kRebalanceInProgress, {}, {}, {}}});
  }
  member.sync = token;
  group->missing_syncs.erase(request.member_id);
  // The first assignment of a generation is the only one.
  if (!group->is_leader(request.member_id) || group->assignment_append) {
    return;
  }
  AssignmentAppend assigned;
  assigned.generation = group->generation;
  for (const auto& [member_id, bytes] : request.assignments) {
    if (group->find(member_id) != nullptr) {
      assigned.assignments[member_id] = bytes;
    }
  }
  GroupValue value = group->to_value(assigned.assignments);
  group->assignment_append = append(*group, std::move(value), std::move(assigned), out);
}

AppendId GroupCoordinator::append(ClassicGroup& group, GroupValue value,
                                  std::variant<std::monostate, AssignmentAppend, StaticAppend> then,
                                  GroupEffects& out) {
  const AppendId id = next_append_++;
  appends_[id] = {group.id, groups_.at(group.id).incarnation, std::move(then)};
  out.emplace_back(AppendGroup{id, group.id, std::move(value)});
  return id;
}

void GroupCoordinator::appended(AppendId id, bool durable, GroupTime now, GroupEffects& out) {
  auto node = appends_.extract(id);
  if (node.empty()) {
    return;
  }
  PendingAppend& done = node.mapped();
  const auto known = groups_.find(done.group);
  if (known == groups_.end() || known->second.incarnation != done.incarnation) {
    return;
  }
  ClassicGroup& group = *known->second.group;
  if (auto* assignment = std::get_if<AssignmentAppend>(&done.then)) {
    if (group.assignment_append == id) {
      group.assignment_append.reset();
      finish_assignment(group, *assignment, durable, now, out);
    }
  } else if (auto* rejoin = std::get_if<StaticAppend>(&done.then)) {
    finish_static(group, *rejoin, durable, now, out);
  }
}

void GroupCoordinator::finish_assignment(ClassicGroup& group, AssignmentAppend& done, bool durable,
                                         GroupTime now, GroupEffects& out) {
  if (group.state != GroupState::kCompletingRebalance || group.generation != done.generation) {
    return;  // another rebalance began meanwhile
  }
  if (!durable) {
    answer_syncs(group, GroupError::kCoordinatorNotAvailable, now, out);
    prepare(group, "the group's record could not be written", now, out);
    return;
  }
  for (auto& [member_id, member] : group.members) {
    const auto assigned = done.assignments.find(member_id);
    member.assignment =
        assigned == done.assignments.end() ? std::string() : std::move(assigned->second);
  }
  group.move_to(GroupState::kStable, now.wall);
  out.emplace_back(GroupNote{GroupNote::Kind::kStable, group.id, group.generation, "", "",
                             group.members.size()});
  answer_syncs(group, GroupError::kNone, now, out);
}

void GroupCoordinator::finish_static(ClassicGroup& group, StaticAppend& done, bool durable,
                                     GroupTime now, GroupEffects& out) {
  ClassicMember* member = group.find(done.member_id);
  if (member == nullptr || member->join != done.token || group.state != GroupState::kStable) {
    return;  // answered, or joined for the rebalance that began meanwhile
  }
  member->join.reset();
  JoinGroupAnswer answer;
  if (!durable) {
    disarm(member->session);
    ClassicMember& old = group.rename(done.member_id, done.before.id);
    const std::string assignment = old.assignment;
    old = done.before;
    old.assignment = assignment;
    arm_session(group, old, old.session_timeout_ms, now);
    answer.error = GroupError::kCoordinatorNotAvailable;
    out.emplace_back(AnswerJoin{done.token, std::move(answer)});
    return;
  }
  arm_session(group, *member, member->session_timeout_ms, now);
  answer = current_generation(group, done.member_id);
  if (!done.can_skip_assignment) {
    answer.leader = done.old_leader;  // so that it does not take itself for the leader
  } else if (group.is_leader(done.member_id)) {
    answer.members = group.joined_members();
    answer.skip_assignment = true;
  }
  out.emplace_back(AnswerJoin{done.token, std::move(answer)});
}

void GroupCoordinator::answer_syncs(ClassicGroup& group, GroupError error, GroupTime now,
                                    GroupEffects& out) {
  for (auto& [member_id, member] : group.members) {
    if (!member.sync) {
      continue;
    }
    SyncGroupAnswer answer{error, {}, {}, {}};
    if (error == GroupError::kNone) {
      answer = {error, group.protocol_type, group.protocol, member.assignment};
    }
    out.emplace_back(AnswerSync{*std::exchange(member.sync, std::nullopt), std::move(answer)});
    arm_session(group, member, member.session_timeout_ms, now);
  }
}

void GroupCoordinator::drop_member(ClassicGroup& group, const std::string& member_id,
                                   std::string_view why, GroupEffects& out) {
  ClassicMember& member = *group.find(member_id);
  if (member.join) {
    JoinGroupAnswer answer;
    answer.error = GroupError::kUnknownMemberId;
    out.emplace_back(AnswerJoin{*member.join, std::move(answer)});
  }
  if (member.sync) {
    out.emplace_back(AnswerSync{*member.sync, {GroupError::kUnknownMemberId, {}, {}, {}}});
  }
  disarm(member.session);
  group.remove(member_id);
  out.emplace_back(GroupNote{GroupNote::Kind::kMemberRemoved, group.id, group.generation, member_id,
                             why, group.members.size()});
}

void GroupCoordinator::after_removal(ClassicGroup& group, std::string_view why, GroupTime now,
                                     GroupEffects& out) {
  if (group.state == GroupState::kStable || group.state == GroupState::kCompletingRebalance) {
    prepare(group, why, now, out);
  } else {
    complete_join_if_all(group, now, out);
  }
}

void GroupCoordinator::remove_pending(ClassicGroup& group, const std::string& member_id) {
  const auto found = group.pending.find(member_id);
  if (found != group.pending.end()) {
    timers_.erase(found->second);
    group.pending.erase(found);
  }
}

}  // namespace weir::log
