#include "log/metadata/metadata_image.h"

#include <fmt/core.h>

namespace weir::log {

Status MetadataImage::apply(const MetadataRecord& record) {
  if (const auto* topic = std::get_if<TopicMetadataRecord>(&record)) {
    TopicImage image;
    image.name = topic->name;
    image.id = topic->topic_id;
    if (auto early = early_configs_.extract(topic->name); !early.empty()) {
      image.config = std::move(early.mapped());
    }
    names_[image.id] = image.name;
    topics_[image.name] = std::move(image);
    return {};
  }
  if (const auto* config = std::get_if<ConfigMetadataRecord>(&record)) {
    if (config->resource_type != ConfigMetadataRecord::kTopicResource) {
      return {};
    }
    const auto found = topics_.find(config->resource_name);
    TopicConfig& target =
        found != topics_.end() ? found->second.config : early_configs_[config->resource_name];
    if (config->value) {
      target[config->name] = *config->value;
    } else {
      target.erase(config->name);
    }
    return {};
  }
  if (const auto* removed = std::get_if<RemoveTopicMetadataRecord>(&record)) {
    removed_.insert(removed->topic_id);
    if (const auto name = names_.extract(removed->topic_id); !name.empty()) {
      topics_.erase(name.mapped());
    }
    return {};
  }
  const auto* partition = std::get_if<PartitionMetadataRecord>(&record);
  const auto* change = std::get_if<PartitionChangeMetadataRecord>(&record);
  if (partition == nullptr && change == nullptr) {
    return {};
  }
  const Uuid& id = partition != nullptr ? partition->topic_id : change->topic_id;
  const PartitionId index = partition != nullptr ? partition->partition_id : change->partition_id;
  const auto name = names_.find(id);
  if (name == names_.end() || index.value() < 0) {
    return Error(Errc::kCorrupt,
                 fmt::format("metadata names partition {} of the unknown topic id {}",
                             index.value(), id.to_string()));
  }
  std::vector<LeaderEpoch>& epochs = topics_[name->second].leader_epochs;
  const auto slot = static_cast<std::size_t>(index.value());
  if (partition != nullptr) {
    if (slot > epochs.size()) {
      return Error(Errc::kCorrupt,
                   fmt::format("metadata skips partitions of topic {}: {} follows {}", name->second,
                               slot, epochs.size()));
    }
    if (slot == epochs.size()) {
      epochs.push_back(partition->leader_epoch);
    } else {
      epochs[slot] = partition->leader_epoch;
    }
    return {};
  }
  if (slot >= epochs.size()) {
    return Error(Errc::kCorrupt,
                 fmt::format("metadata changes partition {} of topic {}, which has {}", slot,
                             name->second, epochs.size()));
  }
  if (change->leader) {
    epochs[slot] = epochs[slot].next();
  }
  return {};
}

const TopicImage* MetadataImage::find(const std::string& name) const {
  const auto found = topics_.find(name);
  return found == topics_.end() ? nullptr : &found->second;
}

const TopicImage* MetadataImage::find(const Uuid& id) const {
  const auto found = names_.find(id);
  return found == names_.end() ? nullptr : find(found->second);
}

}  // namespace weir::log
