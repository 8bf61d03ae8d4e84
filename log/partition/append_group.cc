#include "log/partition/append_group.h"

#include "log/partition/local_partition.h"

#include <set>

namespace weir::log {

// Holds the locks of several partitions at once; in the order of their addresses, so that two
// groups never wait for each other.
class GroupAppender {
 public:
  static GroupAppended run(std::vector<GroupedAppend>& group) WEIR_NO_THREAD_SAFETY_ANALYSIS {
    GroupAppended result;
    std::set<LocalPartition*> partitions;
    for (const GroupedAppend& one : group) {
      auto* const partition = dynamic_cast<LocalPartition*>(one.partition.get());
      WEIR_ASSERT(partition != nullptr);
      partitions.insert(partition);
      if (Status admitted = partition->admit(); !admitted.ok()) {
        result.failure = std::move(admitted);
        return result;
      }
    }
    std::vector<Durability::Entry> entries;
    std::set<LocalPartition*> moved;
    Durability* durability = nullptr;
    for (LocalPartition* const partition : partitions) {
      partition->append_mutex_.lock();
    }
    for (GroupedAppend& one : group) {
      auto& partition = static_cast<LocalPartition&>(*one.partition);
      LocalPartition::Pending pending;
      pending.group = &entries;
      Result<Partition::Appended> appended =
          partition.append_or_use_reserve(one.batch, one.options, pending);
      if (!appended.ok()) {
        result.failure = appended.status();
        moved.insert(&partition);  // its waiters are told of a failed log
        break;
      }
      if (pending.moved) {
        moved.insert(&partition);
      }
      durability = partition.environment_.durability;
      result.appended.push_back(*appended);
    }
    const bool added = !entries.empty();
    if (added) {
      durability->add_group(std::move(entries));
    }
    for (LocalPartition* const partition : partitions) {
      partition->append_mutex_.unlock();
    }
    for (LocalPartition* const partition : moved) {
      partition->notify_waiters();
    }
    if (added) {
      durability->start();
    }
    return result;
  }
};

GroupAppended append_group(std::vector<GroupedAppend> group) {
  return GroupAppender::run(group);
}

}  // namespace weir::log
