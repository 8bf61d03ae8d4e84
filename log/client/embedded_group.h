#pragma once

#include "log/broker/log_directory.h"

#include <weir/runtime/backend.h>

#include <string>
#include <vector>

namespace weir::log {

// A group with one member, which owns every partition of its topics. Threading: confined to one
// thread at a time.
class EmbeddedGroup : public Group {
 public:
  EmbeddedGroup(LogDirectory& directory, std::string group_id)
      : directory_(directory), group_id_(std::move(group_id)) {}

  Status join(std::vector<std::string> topics, std::string user_data,
              GroupListener& listener) override;
  // Tells the listener about partitions of topics that were made or deleted since.
  Status poll() override;
  Status leave() override;
  Status commit(std::span<const std::pair<TopicPartition, CommittedOffset>> offsets) override;
  Result<std::vector<std::optional<CommittedOffset>>> committed(
      std::span<const TopicPartition> partitions) override;
  GroupMetadata metadata() const override;

 private:
  std::vector<TopicPartition> partitions_now();

  LogDirectory& directory_;
  const std::string group_id_;
  std::vector<std::string> topics_;
  GroupListener* listener_ = nullptr;
  std::vector<TopicPartition> owned_;
  std::uint64_t topics_seen_ = 0;
};

}  // namespace weir::log
