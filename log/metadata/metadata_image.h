#pragma once

#include "log/metadata/metadata_records.h"

#include <weir/runtime/backend.h>

#include <map>
#include <optional>
#include <set>
#include <string>
#include <tuple>
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
  // Records that say the same to an empty image, in the order of Kafka's snapshots
  // (org.apache.kafka.image.MetadataImage.write): what a snapshot holds. Removed topics are not in
  // them. Requires: every partition is led by `leader` and has its folder in `directory`, as in a
  // log that this node wrote; its partition epoch is then its leader epoch.
  std::vector<MetadataRecord> records(std::int32_t leader, const Uuid& directory) const;

  // Of its last registration; -1 when there is none.
  std::int64_t broker_epoch(std::int32_t broker) const;
  // No id from here on was given to anybody.
  ProducerId next_producer_id() const { return next_producer_id_; }
  // Whether a topic with this id existed and was removed: its folders are garbage.
  bool was_removed(const Uuid& id) const { return removed_.contains(id); }
  // Whether a topic of this name existed and was removed.
  bool was_removed(const std::string& name) const { return removed_names_.contains(name); }
  // The id of the topic of this name that was removed last, when there is no topic of it now.
  std::optional<Uuid> removed_id(const std::string& name) const;
  bool has_removed() const { return !removed_.empty(); }
  // Requires: nothing is left of these topics that could be taken for a topic of their name.
  void forget_removed();

 private:
  Status take(const RegisterBrokerMetadataRecord& broker);
  Status take(const TopicMetadataRecord& topic);
  Status take(const PartitionMetadataRecord& partition);
  Status take(const ConfigMetadataRecord& config);
  Status take(const PartitionChangeMetadataRecord& change);
  Status take(const RemoveTopicMetadataRecord& removed);
  Status take(const ProducerIdsMetadataRecord& block);
  Status take(const FeatureLevelMetadataRecord& level);
  // What is of no concern here.
  Status take(const OtherMetadataRecord& /*other*/) { return {}; }
  Result<TopicImage*> topic_of(const Uuid& id, PartitionId partition);

  std::map<std::string, TopicImage> topics_;
  std::unordered_map<Uuid, std::string> names_;
  std::map<std::string, TopicConfig> early_configs_;  // settings that came before their topic
  std::set<Uuid> removed_;
  std::map<std::string, Uuid> removed_names_;
  std::map<std::int32_t, RegisterBrokerMetadataRecord> brokers_;
  std::map<std::string, std::int16_t> feature_levels_;
  // Of brokers and the cluster, by type, resource and name.
  std::map<std::tuple<std::int8_t, std::string, std::string>, std::string> other_configs_;
  std::optional<ProducerIdsMetadataRecord> producer_ids_;
  ProducerId next_producer_id_{0};
};

}  // namespace weir::log
