#pragma once

#include "log/broker/log_directory.h"
#include "log/client/group_members.h"

#include <weir/runtime/backend.h>

#include <map>
#include <set>
#include <string>
#include <vector>

namespace weir::log {

// A group with at most one member in the process, which owns every partition of its topics.
// Threading: confined to one thread at a time. Ownership: `directory` and `members` outlive it.
class EmbeddedGroup : public Group {
 public:
  EmbeddedGroup(LogDirectory& directory, GroupMembers& members, std::string group_id)
      : directory_(directory), members_(members), group_id_(std::move(group_id)) {}
  ~EmbeddedGroup() override;

  // Errors: kLocked when the group has another member.
  Status join(std::vector<std::string> topics, std::string user_data,
              GroupListener& listener) override;
  // Tells the listener about partitions that were made or deleted since, or that the topics of a
  // new join() add or leave out.
  Status poll() override;
  Status leave() override;
  Status commit(std::span<const std::pair<TopicPartition, CommittedOffset>> offsets) override;
  Result<std::vector<std::optional<CommittedOffset>>> committed(
      std::span<const TopicPartition> partitions) override;
  Result<std::vector<std::optional<CommittedOffset>>> committed_stable(
      std::span<const TopicPartition> partitions) override;
  GroupMetadata metadata() const override;

 private:
  using Owned = std::map<TopicPartition, Uuid>;  // with the topic's id: one made anew is another
  Owned partitions_now();

  LogDirectory& directory_;
  GroupMembers& members_;
  const std::string group_id_;
  std::set<std::string> topics_;
  GroupListener* listener_ = nullptr;  // null: not joined
  Owned owned_;
  std::uint64_t topics_seen_ = 0;
  bool first_poll_ = false;
};

}  // namespace weir::log
