#include "log/client/group_members.h"

#include <fmt/core.h>

namespace weir::log {

Status GroupMembers::join(const std::string& group, const EmbeddedGroup* member) {
  const MutexLock lock(mutex_);
  if (members_.emplace(group, member).first->second == member) {
    return {};
  }
  return Error(Errc::kLocked,
               fmt::format("group {} has a member already, and sharing a group is not possible "
                           "yet; close that consumer, or use another group.id",
                           group));
}

void GroupMembers::leave(const std::string& group, const EmbeddedGroup* member) {
  const MutexLock lock(mutex_);
  const auto found = members_.find(group);
  if (found != members_.end() && found->second == member) {
    members_.erase(found);
  }
}

Status GroupMembers::check_commit(const std::string& group, const EmbeddedGroup* committer) {
  const MutexLock lock(mutex_);
  const auto found = members_.find(group);
  if (found == members_.end() || found->second == committer) {
    return {};
  }
  return Error(Errc::kFenced,
               fmt::format("group {} has a member that subscribed, and only that commits; close it "
                           "or use another group.id",
                           group));
}

}  // namespace weir::log
