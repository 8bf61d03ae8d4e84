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
  brokers_[broker.broker_id] = broker;
  return {};
}

Status MetadataImage::take(const FeatureLevelMetadataRecord& level) {
  if (level.level > 0) {
    feature_levels_[level.name] = level.level;
  } else {
    feature_levels_.erase(level.name);
  }
  return {};
}

Status MetadataImage::take(const ProducerIdsMetadataRecord& block) {
  next_producer_id_ = std::max(next_producer_id_, block.next_producer_id);
  producer_ids_ = block;
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
    const auto name = std::tuple(config.resource_type, config.resource_name, config.name);
    if (config.value) {
      other_configs_[name] = *config.value;
    } else {
      other_configs_.erase(name);
    }
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
  removed_.insert(removed.topic_id);
  if (const auto name = names_.extract(removed.topic_id); !name.empty()) {
    topics_.erase(name.mapped());
    removed_names_[name.mapped()] = removed.topic_id;
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
  const auto found = brokers_.find(broker);
  return found == brokers_.end() ? -1 : found->second.broker_epoch;
}

const TopicImage* MetadataImage::find(const std::string& name) const {
  const auto found = topics_.find(name);
  return found == topics_.end() ? nullptr : &found->second;
}

std::optional<Uuid> MetadataImage::removed_id(const std::string& name) const {
  if (find(name) != nullptr) {
    return std::nullopt;
  }
  const auto found = removed_names_.find(name);
  return found == removed_names_.end() ? std::nullopt : std::optional(found->second);
}

void MetadataImage::forget_removed() {
  removed_.clear();
  removed_names_.clear();
}

std::vector<MetadataRecord> MetadataImage::records(std::int32_t leader,
                                                   const Uuid& directory) const {
  std::vector<MetadataRecord> all;
  constexpr const char* kMetadataVersion = "metadata.version";  // what decides how to read on
  if (const auto version = feature_levels_.find(kMetadataVersion);
      version != feature_levels_.end()) {
    all.emplace_back(FeatureLevelMetadataRecord{version->first, version->second});
  }
  for (const auto& [name, level] : feature_levels_) {
    if (name != kMetadataVersion) {
      all.emplace_back(FeatureLevelMetadataRecord{name, level});
    }
  }
  for (const auto& [id, broker] : brokers_) {
    all.emplace_back(broker);
  }
  for (const auto& [name, topic] : topics_) {
    all.emplace_back(TopicMetadataRecord{name, topic.id});
    for (std::size_t i = 0; i < topic.leader_epochs.size(); ++i) {
      const LeaderEpoch epoch = topic.leader_epochs[i];
      all.emplace_back(PartitionMetadataRecord{PartitionId(static_cast<std::int32_t>(i)), topic.id,
                                               leader, epoch, epoch.value(), directory});
    }
  }
  for (const auto& [name, value] : other_configs_) {
    all.emplace_back(
        ConfigMetadataRecord{std::get<0>(name), std::get<1>(name), std::get<2>(name), value});
  }
  const auto add_configs = [&all](const std::string& topic, const TopicConfig& settings) {
    for (const auto& [key, value] : settings) {
      const auto records = config_records(topic, {}, key, value);
      all.insert(all.end(), records.begin(), records.end());
    }
  };
  for (const auto& [name, topic] : topics_) {
    add_configs(name, topic.config);
  }
  for (const auto& [name, settings] : early_configs_) {
    add_configs(name, settings);
  }
  if (producer_ids_) {
    all.emplace_back(*producer_ids_);
  }
  return all;
}

const TopicImage* MetadataImage::find(const Uuid& id) const {
  const auto found = names_.find(id);
  return found == names_.end() ? nullptr : find(found->second);
}

}  // namespace weir::log
