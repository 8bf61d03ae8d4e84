#pragma once

#include "log/client/fetches.h"

#include <weir/log/consumer.h>

#include <algorithm>
#include <functional>
#include <utility>
#include <vector>

namespace weir::log {

// What the group tells a subscribed consumer, carried out: assignment first, then the user's
// listener. Threading: confined to the consumer's thread. Ownership: all it borrows outlives it.
class Consumer::Membership : public GroupListener {
 public:
  // `before_revoke` commits what is to be committed.
  Membership(Fetches& fetches, GroupListener* user, std::function<void()> before_revoke)
      : fetches_(fetches), user_(user), before_revoke_(std::move(before_revoke)) {}

  void on_assigned(std::span<const TopicPartition> partitions) override;
  void on_revoked(std::span<const TopicPartition> partitions) override;
  void on_lost(std::span<const TopicPartition> partitions) override;
  // Revokes everything.
  void revoke_all();
  // The first failure to change the source's assignment, once.
  Status take_failure() { return std::exchange(failure_, Status()); }

 private:
  std::vector<TopicPartition> names() const;
  void remove(std::span<const TopicPartition> partitions);
  void assign(const std::vector<TopicPartition>& partitions);

  Fetches& fetches_;
  GroupListener* user_;
  std::function<void()> before_revoke_;
  Status failure_;
};

}  // namespace weir::log
