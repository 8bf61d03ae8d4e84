#include "log/coordinator/group_service.h"

#include <weir/runtime/logger.h>

#include <algorithm>
#include <chrono>
#include <utility>

// GroupService: groups that are open in this process.

namespace weir::log {
namespace {

constexpr Duration kKeepAliveInterval = std::chrono::seconds(1);

}  // namespace

GroupService::LocalId GroupService::add_local(const std::string& group, Duration max_poll_interval,
                                              std::function<void()> wake) {
  const MutexLock lock(mutex_);
  const LocalId id = next_local_++;
  Local& local = locals_[id];
  local.who.group = group;
  local.polled = clock_.monotonic();
  local.max_poll_interval = max_poll_interval;
  local.wake = std::move(wake);
  return id;
}

void GroupService::remove_local(LocalId local) {
  const MutexLock lock(mutex_);
  const auto found = locals_.find(local);
  if (found != locals_.end()) {
    used_at_[found->second.who.group] = clock_.now();
    locals_.erase(found);
  }
}

void GroupService::set_local(LocalId local, const GroupIdentity& who) {
  const MutexLock lock(mutex_);
  Local& of = locals_.at(local);
  of.who = who;
  of.polled = clock_.monotonic();
  of.overdue = false;
}

Result<GroupError> GroupService::poll_local(LocalId local) {
  GroupError error = GroupError::kNone;
  {
    const MutexLock lock(mutex_);
    Local& of = locals_.at(local);
    if (!of.who.member_id.empty()) {
      WEIR_TRY(load_for(of.who.group, false));
    }
    const GroupTime at = now();
    advance(at);
    of.polled = at.monotonic;
    if (!of.who.member_id.empty()) {
      error = core_.heartbeat(of.who, at);
      of.overdue = false;
    }
  }
  pump();
  return error;
}

bool GroupService::is_used(const std::string& group) const {
  return std::any_of(locals_.begin(), locals_.end(),
                     [&](const auto& local) { return local.second.who.group == group; });
}

// Only what was not polled for too long is silent: the others live in this process, as we do.
void GroupService::keep_alive(GroupTime at) {
  next_keep_alive_ = at.monotonic + kKeepAliveInterval;
  for (auto& [id, local] : locals_) {
    if (local.who.member_id.empty() || local.overdue) {
      continue;
    }
    if (at.monotonic - local.polled <= local.max_poll_interval) {
      core_.heartbeat(local.who, at);
      continue;
    }
    local.overdue = true;
    WEIR_WARN(
        "consumer did not poll within max.poll.interval.ms and loses its partitions group={} "
        "member={} max.poll.interval.ms={}",
        local.who.group, local.who.member_id,
        std::chrono::duration_cast<std::chrono::milliseconds>(local.max_poll_interval).count());
    if (!local.who.instance_id) {
      const LeavingMember one{local.who.member_id, std::nullopt};
      core_.leave(local.who.group, {&one, 1}, at, effects_);
    }
  }
}

}  // namespace weir::log
