#pragma once

#include "log/metadata/metadata_records.h"

#include <weir/runtime/backend.h>

#include <map>
#include <optional>
#include <string>
#include <unordered_map>
#include <vector>

namespace weir::log {

struct TopicImage {
  std::string name;
  Uuid id;
  TopicConfig config;
  std::vector<LeaderEpoch> leader_epochs;  // one a partition, in order
};

// What the metadata log says so far. Pure: records in, state out.
// Threading: confined to its owner.
class MetadataImage {
 public:
  // Errors: kCorrupt when the record contradicts what came before (a partition of no topic).
  Status apply(const MetadataRecord& record);

  const TopicImage* find(const std::string& name) const;
  const TopicImage* find(const Uuid& id) const;
  const std::map<std::string, TopicImage>& topics() const { return topics_; }
  // Of its last registration; -1 when there is none.
  std::int64_t broker_epoch(std::int32_t broker) const;
  // No id from here on was given to anybody.
  ProducerId next_producer_id() const { return next_producer_id_; }
  // Whether a topic with this id existed and was removed: its folders are garbage.
  bool was_removed(const Uuid& id) const { return removed_.contains(id); }
  // The id of a removed topic of this name, when there is no topic of it now.
  std::optional<Uuid> removed_id(const std::string& name) const;

 private:
  Status take(const RegisterBrokerMetadataRecord& broker);
  Status take(const TopicMetadataRecord& topic);
  Status take(const PartitionMetadataRecord& partition);
  Status take(const ConfigMetadataRecord& config);
  Status take(const PartitionChangeMetadataRecord& change);
  Status take(const RemoveTopicMetadataRecord& removed);
  Status take(const ProducerIdsMetadataRecord& block);
  // What is of no concern here.
  Status take(const FeatureLevelMetadataRecord& /*level*/) { return {}; }
  Status take(const OtherMetadataRecord& /*other*/) { return {}; }
  Result<TopicImage*> topic_of(const Uuid& id, PartitionId partition);

  std::map<std::string, TopicImage> topics_;
  std::unordered_map<Uuid, std::string> names_;
  std::map<std::string, TopicConfig> early_configs_;  // settings that came before their topic
  std::map<Uuid, std::string> removed_;
  std::map<std::int32_t, std::int64_t> broker_epochs_;
  ProducerId next_producer_id_{0};
};

}  // namespace weir::log
