#include "log/metadata/metadata_image.h"

#include "log/metadata/config_records.h"

#include <fmt/core.h>

#include <algorithm>
#include <utility>
#include <variant>

namespace weir::log {

Status MetadataImage::apply(const MetadataRecord& record) {
  return std::visit([this](const auto& kind) { return take(kind); }, record);
}

Status MetadataImage::take(const RegisterBrokerMetadataRecord& broker) {
  broker_epochs_[broker.broker_id] = broker.broker_epoch;
  return {};
}

Status MetadataImage::take(const ProducerIdsMetadataRecord& block) {
  next_producer_id_ = std::max(next_producer_id_, block.next_producer_id);
  return {};
}

Status MetadataImage::take(const TopicMetadataRecord& topic) {
  TopicImage image;
  image.name = topic.name;
  image.id = topic.topic_id;
  if (auto early = early_configs_.extract(topic.name); !early.empty()) {
    image.config = std::move(early.mapped());
  }
  names_[image.id] = image.name;
  topics_[image.name] = std::move(image);
  return {};
}

Status MetadataImage::take(const ConfigMetadataRecord& config) {
  if (config.resource_type != ConfigMetadataRecord::kTopicResource) {
    return {};
  }
  const auto found = topics_.find(config.resource_name);
  TopicConfig& target =
      found != topics_.end() ? found->second.config : early_configs_[config.resource_name];
  const std::string& setting = setting_of_config(config.name);
  if (config.value) {
    target[setting] = *config.value;
  } else {
    target.erase(setting);
  }
  return {};
}

Status MetadataImage::take(const RemoveTopicMetadataRecord& removed) {
  std::string& removed_name = removed_[removed.topic_id];
  if (const auto name = names_.extract(removed.topic_id); !name.empty()) {
    topics_.erase(name.mapped());
    removed_name = name.mapped();
  }
  return {};
}

Result<TopicImage*> MetadataImage::topic_of(const Uuid& id, PartitionId partition) {
  const auto name = names_.find(id);
  if (name == names_.end() || partition.value() < 0) {
    return Error(Errc::kCorrupt,
                 fmt::format("metadata names partition {} of the unknown topic id {}",
                             partition.value(), id.to_string()));
  }
  return &topics_[name->second];
}

Status MetadataImage::take(const PartitionMetadataRecord& partition) {
  WEIR_TRY_ASSIGN(TopicImage * topic, topic_of(partition.topic_id, partition.partition_id));
  std::vector<LeaderEpoch>& epochs = topic->leader_epochs;
  const auto slot = static_cast<std::size_t>(partition.partition_id.value());
  if (slot > epochs.size()) {
    return Error(Errc::kCorrupt, fmt::format("metadata skips partitions of topic {}: {} follows {}",
                                             topic->name, slot, epochs.size()));
  }
  if (slot == epochs.size()) {
    epochs.push_back(partition.leader_epoch);
  } else {
    epochs[slot] = partition.leader_epoch;
  }
  return {};
}

Status MetadataImage::take(const PartitionChangeMetadataRecord& change) {
  WEIR_TRY_ASSIGN(TopicImage * topic, topic_of(change.topic_id, change.partition_id));
  std::vector<LeaderEpoch>& epochs = topic->leader_epochs;
  const auto slot = static_cast<std::size_t>(change.partition_id.value());
  if (slot >= epochs.size()) {
    return Error(Errc::kCorrupt,
                 fmt::format("metadata changes partition {} of topic {}, which has {}", slot,
                             topic->name, epochs.size()));
  }
  if (change.leader) {
    epochs[slot] = epochs[slot].next();
  }
  return {};
}

std::int64_t MetadataImage::broker_epoch(std::int32_t broker) const {
  const auto found = broker_epochs_.find(broker);
  return found == broker_epochs_.end() ? -1 : found->second;
}

const TopicImage* MetadataImage::find(const std::string& name) const {
  const auto found = topics_.find(name);
  return found == topics_.end() ? nullptr : &found->second;
}

std::optional<Uuid> MetadataImage::removed_id(const std::string& name) const {
  if (find(name) != nullptr) {
    return std::nullopt;
  }
  const auto found = std::find_if(removed_.begin(), removed_.end(),
                                  [&name](const auto& entry) { return entry.second == name; });
  return found == removed_.end() ? std::nullopt : std::optional(found->first);
}

const TopicImage* MetadataImage::find(const Uuid& id) const {
  const auto found = names_.find(id);
  return found == names_.end() ? nullptr : find(found->second);
}

}  // namespace weir::log
