#include "log/metadata/metadata_records.h"

#include "log/record/wire.h"

#include <fmt/core.h>

namespace weir::log {
namespace {

constexpr std::uint32_t kFrameVersion = 1;
enum Type : std::uint32_t {
  kRegisterBroker = 0,
  kTopic = 2,
  kPartition = 3,
  kConfig = 4,
  kPartitionChange = 5,
  kRemoveTopic = 9,
  kFeatureLevel = 12,
  kProducerIds = 15,
};

void begin(WireWriter& out, std::uint32_t type, std::uint32_t version) {
  out.uvarint(kFrameVersion);
  out.uvarint(type);
  out.uvarint(version);
}

constexpr std::uint32_t kNoTaggedFields = 0;

struct Encoder {
  WireWriter out;

  void operator()(const RegisterBrokerMetadataRecord& record) {
    begin(out, kRegisterBroker, 4);
    out.integer(record.broker_id);
    out.integer(std::int8_t{0});  // isMigratingZkBroker
    out.uuid(record.incarnation_id);
    out.integer(record.broker_epoch);
    out.uvarint(1);  // endPoints, features: empty
    out.uvarint(1);
    out.uvarint(0);  // rack: null
    out.integer(static_cast<std::int8_t>(record.fenced));
    out.integer(std::int8_t{0});  // inControlledShutdown
    if (record.directory.is_zero()) {
      out.uvarint(kNoTaggedFields);
      return;
    }
    constexpr std::uint32_t kOneId = 2;
    out.uvarint(1);
    out.uvarint(0);  // tag of logDirs
    out.uvarint(1 + record.directory.bytes.size());
    out.uvarint(kOneId);
    out.uuid(record.directory);
  }
  void operator()(const TopicMetadataRecord& record) {
    begin(out, kTopic, 0);
    out.compact_string(record.name);
    out.uuid(record.topic_id);
    out.uvarint(kNoTaggedFields);
  }
  void operator()(const PartitionMetadataRecord& record) {
    begin(out, kPartition, 1);
    out.integer(record.partition_id.value());
    out.uuid(record.topic_id);
    for (int list = 0; list < 2; ++list) {  // replicas, isr: the leader alone
      out.uvarint(2);
      out.integer(record.leader);
    }
    out.uvarint(1);  // removingReplicas, addingReplicas: empty
    out.uvarint(1);
    out.integer(record.leader);
    out.integer(record.leader_epoch.value());
    out.integer(record.partition_epoch);
    out.uvarint(2);
    out.uuid(record.directory);
    out.uvarint(kNoTaggedFields);
  }
  void operator()(const ConfigMetadataRecord& record) {
    begin(out, kConfig, 0);
    out.integer(record.resource_type);
    out.compact_string(record.resource_name);
    out.compact_string(record.name);
    out.compact_nullable_string(record.value);
    out.uvarint(kNoTaggedFields);
  }
  void operator()(const PartitionChangeMetadataRecord& record) {
    begin(out, kPartitionChange, 0);
    out.integer(record.partition_id.value());
    out.uuid(record.topic_id);
    if (record.leader) {
      out.uvarint(1);
      out.uvarint(1);  // tag of `leader`
      out.uvarint(sizeof(std::int32_t));
      out.integer(*record.leader);
    } else {
      out.uvarint(kNoTaggedFields);
    }
  }
  void operator()(const RemoveTopicMetadataRecord& record) {
    begin(out, kRemoveTopic, 0);
    out.uuid(record.topic_id);
    out.uvarint(kNoTaggedFields);
  }
  void operator()(const FeatureLevelMetadataRecord& record) {
    begin(out, kFeatureLevel, 0);
    out.compact_string(record.name);
    out.integer(record.level);
    out.uvarint(kNoTaggedFields);
  }
  void operator()(const ProducerIdsMetadataRecord& record) {
    begin(out, kProducerIds, 0);
    out.integer(record.broker_id);
    out.integer(record.broker_epoch);
    out.integer(record.next_producer_id.value());
    out.uvarint(kNoTaggedFields);
  }
  void operator()(const OtherMetadataRecord& /*record*/) { WEIR_ASSERT(false); }
};

void skip_compact_array(WireReader& in, std::size_t element_bytes) {
  const std::uint32_t count = in.uvarint();
  if (count > 1) {
    in.raw((count - 1) * element_bytes);
  }
}

RegisterBrokerMetadataRecord read_register_broker(WireReader& in, std::uint32_t version) {
  RegisterBrokerMetadataRecord record;
  record.broker_id = in.integer<std::int32_t>();
  if (version >= 2) {
    in.integer<std::int8_t>();  // isMigratingZkBroker
  }
  record.incarnation_id = in.uuid();
  record.broker_epoch = in.integer<std::int64_t>();
  for (std::uint32_t left = in.uvarint(); left > 1 && in.ok(); --left) {  // endPoints
    in.compact_string();
    in.compact_string();
    in.integer<std::uint16_t>();
    in.integer<std::int16_t>();
    in.skip_tagged_fields();
  }
  for (std::uint32_t left = in.uvarint(); left > 1 && in.ok(); --left) {  // features
    in.compact_string();
    in.integer<std::int16_t>();
    in.integer<std::int16_t>();
    in.skip_tagged_fields();
  }
  in.compact_nullable_string();  // rack
  record.fenced = in.integer<std::int8_t>() != 0;
  if (version >= 1) {
    in.integer<std::int8_t>();  // inControlledShutdown
  }
  in.tagged_fields([&record](std::uint32_t tag, WireReader& field) {
    if (tag == 0 && field.uvarint() > 1) {
      record.directory = field.uuid();
    }
  });
  return record;
}

PartitionMetadataRecord read_partition(WireReader& in, std::uint32_t version) {
  PartitionMetadataRecord record;
  record.partition_id = PartitionId(in.integer<std::int32_t>());
  record.topic_id = in.uuid();
  for (int list = 0; list < 4; ++list) {
    skip_compact_array(in, sizeof(std::int32_t));
  }
  record.leader = in.integer<std::int32_t>();
  record.leader_epoch = LeaderEpoch(in.integer<std::int32_t>());
  record.partition_epoch = in.integer<std::int32_t>();
  if (version >= 1) {
    const std::uint32_t count = in.uvarint();
    for (std::uint32_t i = 1; i < count && in.ok(); ++i) {
      const Uuid directory = in.uuid();
      if (i == 1) {
        record.directory = directory;
      }
    }
  }
  in.skip_tagged_fields();
  return record;
}

PartitionChangeMetadataRecord read_partition_change(WireReader& in) {
  PartitionChangeMetadataRecord record;
  record.partition_id = PartitionId(in.integer<std::int32_t>());
  record.topic_id = in.uuid();
  in.tagged_fields([&record](std::uint32_t tag, WireReader& field) {
    constexpr std::int32_t kNoChange = -2;
    if (tag == 1) {
      const auto leader = field.integer<std::int32_t>();
      if (leader != kNoChange) {
        record.leader = leader;
      }
    }
  });
  return record;
}

MetadataRecord read_body(WireReader& in, std::uint32_t type, std::uint32_t version) {
  switch (type) {
    case kRegisterBroker:
      return read_register_broker(in, version);
    case kTopic: {
      TopicMetadataRecord record;
      record.name = in.compact_string();
      record.topic_id = in.uuid();
      in.skip_tagged_fields();
      return record;
    }
    case kPartition:
      return read_partition(in, version);
    case kConfig: {
      ConfigMetadataRecord record;
      record.resource_type = in.integer<std::int8_t>();
      record.resource_name = in.compact_string();
      record.name = in.compact_string();
      if (const auto value = in.compact_nullable_string()) {
        record.value = std::string(*value);
      }
      in.skip_tagged_fields();
      return record;
    }
    case kPartitionChange:
      return read_partition_change(in);
    case kRemoveTopic: {
      RemoveTopicMetadataRecord record;
      record.topic_id = in.uuid();
      in.skip_tagged_fields();
      return record;
    }
    case kFeatureLevel: {
      FeatureLevelMetadataRecord record;
      record.name = in.compact_string();
      record.level = in.integer<std::int16_t>();
      in.skip_tagged_fields();
      return record;
    }
    case kProducerIds: {
      ProducerIdsMetadataRecord record;
      record.broker_id = in.integer<std::int32_t>();
      record.broker_epoch = in.integer<std::int64_t>();
      record.next_producer_id = ProducerId(in.integer<std::int64_t>());
      in.skip_tagged_fields();
      return record;
    }
    default:
      return OtherMetadataRecord{type};
  }
}

}  // namespace

std::string encode_metadata_record(const MetadataRecord& record) {
  Encoder encoder;
  std::visit(encoder, record);
  return encoder.out.take();
}

Result<MetadataRecord> decode_metadata_record(ByteView value) {
  WireReader in(value);
  const std::uint32_t frame = in.uvarint();
  const std::uint32_t type = in.uvarint();
  const std::uint32_t version = in.uvarint();
  if (!in.ok()) {
    return Error(Errc::kCorrupt, "metadata record ends inside its frame");
  }
  if (frame != kFrameVersion) {
    return Error(Errc::kUnsupported,
                 fmt::format("metadata record has frame version {}, this program reads {}", frame,
                             kFrameVersion));
  }
  MetadataRecord record = read_body(in, type, version);
  if (!in.ok()) {
    return Error(Errc::kCorrupt,
                 fmt::format("metadata record of type {} version {} is too short", type, version));
  }
  return record;
}

}  // namespace weir::log
