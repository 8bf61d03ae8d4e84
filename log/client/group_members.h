#pragma once

#include <weir/runtime/result.h>
#include <weir/runtime/thread_annotations.h>

#include <map>
#include <string>

namespace weir::log {

class EmbeddedGroup;

// Who is the one member of each group in this process. Threading: thread-safe.
// Ownership: outlives every group that joined.
class GroupMembers {
 public:
  // Idempotent. Errors: kLocked when another is the member.
  Status join(const std::string& group, const EmbeddedGroup* member);
  void leave(const std::string& group, const EmbeddedGroup* member);
  // kFenced when the group has a member that is not `committer`: only the member commits.
  Status check_commit(const std::string& group, const EmbeddedGroup* committer);

 private:
  Mutex mutex_;
  std::map<std::string, const EmbeddedGroup*> members_ WEIR_GUARDED_BY(mutex_);
};

}  // namespace weir::log
