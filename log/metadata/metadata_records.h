#pragma once

#include <weir/runtime/bytes.h>
#include <weir/runtime/result.h>
#include <weir/runtime/types.h>

#include <cstdint>
#include <optional>
#include <string>
#include <variant>
#include <vector>

namespace weir::log {

// The records of `__cluster_metadata-0` that one directory writes and understands. Value of a
// record: uvarint frame version 1, uvarint type, uvarint version, body
// (docs/formats/metadata_log.md). Field names are Kafka's
// (metadata/src/main/resources/common/metadata/*.json).

// Type 0, written as version 4 without end points and features: nobody reaches this node over a
// network. A broker that starts on a copy of the directory registers itself anew; by the epoch here
// and in `.kafka_cleanshutdown` the controller knows that the last owner lost nothing.
struct RegisterBrokerMetadataRecord {
  std::int32_t broker_id = 0;
  Uuid incarnation_id;
  std::int64_t broker_epoch = -1;
  bool fenced = true;
  Uuid directory;  // the first of logDirs; zeros when there is none
};
struct TopicMetadataRecord {  // type 2
  std::string name;
  Uuid topic_id;
};
struct PartitionMetadataRecord {  // type 3, written as version 1
  PartitionId partition_id;
  Uuid topic_id;
  std::int32_t leader = 0;
  LeaderEpoch leader_epoch;
  std::int32_t partition_epoch = 0;
  Uuid directory;  // of the one replica
};
struct ConfigMetadataRecord {  // type 4
  static constexpr std::int8_t kTopicResource = 2;
  std::int8_t resource_type = kTopicResource;
  std::string resource_name;
  std::string name;
  std::optional<std::string> value;  // nullopt deletes
};
struct PartitionChangeMetadataRecord {  // type 5: a new reign of the leader raises its epoch by one
  PartitionId partition_id;
  Uuid topic_id;
  std::optional<std::int32_t> leader;
};
struct RemoveTopicMetadataRecord {  // type 9
  Uuid topic_id;
};
struct FeatureLevelMetadataRecord {  // type 12
  std::string name;
  std::int16_t level = 0;
};
struct ProducerIdsMetadataRecord {  // type 15: ids below the next one were given to a broker
  std::int32_t broker_id = 0;
  std::int64_t broker_epoch = -1;
  ProducerId next_producer_id;
};
struct OtherMetadataRecord {  // understood by nobody here, kept in the log
  std::uint32_t type = 0;
};

using MetadataRecord =
    std::variant<RegisterBrokerMetadataRecord, TopicMetadataRecord, PartitionMetadataRecord,
                 ConfigMetadataRecord, PartitionChangeMetadataRecord, RemoveTopicMetadataRecord,
                 FeatureLevelMetadataRecord, ProducerIdsMetadataRecord, OtherMetadataRecord>;

// The value of a record in the log. Requires: not an OtherMetadataRecord.
std::string encode_metadata_record(const MetadataRecord& record);
// Errors: kCorrupt (too short, wrong frame), kUnsupported (frame version).
Result<MetadataRecord> decode_metadata_record(ByteView value);

}  // namespace weir::log
