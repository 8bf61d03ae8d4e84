#pragma once

#include "log/coordinator/group_codec.h"

#include <weir/runtime/backend.h>
#include <weir/runtime/bytes.h>
#include <weir/runtime/result.h>

#include <cstdint>
#include <optional>
#include <string>

namespace weir::log {

// Records of `__consumer_offsets` as Apache Kafka 4.3.1 writes them
// (docs/formats/offsets_topic.md): key = int16 record type, then fields; value = int16 version,
// then fields. Those of the groups themselves are in group_codec.h.

struct OffsetKey {
  std::string group;
  TopicPartition partition;
};
struct OffsetValue {
  CommittedOffset committed;
  Timestamp commit_timestamp = 0;
  Uuid topic_id;  // zero: written by a version that had none
};

std::string encode_offset_key(const OffsetKey& key);        // type 1
std::string encode_offset_value(const OffsetValue& value);  // version 4

// nullopt: a record of another type, to be skipped. Errors: kCorrupt.
Result<std::optional<OffsetKey>> decode_offset_key(ByteView key);
// Versions 0 to 4. Errors: kCorrupt, kUnsupported.
Result<OffsetValue> decode_offset_value(ByteView value);

// Partition of `__consumer_offsets` that holds a group: abs(Java String.hashCode) mod partitions.
PartitionId partition_for_group(std::string_view group_utf8, std::int32_t partitions);

}  // namespace weir::log
