#include "log/client/membership.h"

namespace weir::log {

std::vector<TopicPartition> Consumer::Membership::names() const {
  std::vector<TopicPartition> result;
  for (const Fetches::Assigned& assigned : fetches_.all()) {
    result.push_back(*assigned.name);
  }
  return result;
}

void Consumer::Membership::assign(const std::vector<TopicPartition>& partitions) {
  if (Status assigned = fetches_.assign(partitions); !assigned.ok() && failure_.ok()) {
    failure_ = std::move(assigned);
  }
}

void Consumer::Membership::remove(std::span<const TopicPartition> partitions) {
  std::vector<TopicPartition> left = names();
  std::erase_if(left, [&](const TopicPartition& name) {
    return std::find(partitions.begin(), partitions.end(), name) != partitions.end();
  });
  assign(left);
}

void Consumer::Membership::on_assigned(std::span<const TopicPartition> partitions) {
  std::vector<TopicPartition> all = names();
  all.insert(all.end(), partitions.begin(), partitions.end());
  assign(all);
  if (user_ != nullptr) {
    user_->on_assigned(partitions);
  }
}

void Consumer::Membership::on_revoked(std::span<const TopicPartition> partitions) {
  before_revoke_();
  if (user_ != nullptr) {
    user_->on_revoked(partitions);
  }
  remove(partitions);
}

void Consumer::Membership::on_lost(std::span<const TopicPartition> partitions) {
  if (user_ != nullptr) {
    user_->on_lost(partitions);
  }
  remove(partitions);
}

void Consumer::Membership::revoke_all() {
  const std::vector<TopicPartition> all = names();
  if (!all.empty()) {
    on_revoked(all);
  }
}

}  // namespace weir::log
