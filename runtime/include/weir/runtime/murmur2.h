#pragma once

#include <weir/runtime/bytes.h>
#include <weir/runtime/types.h>

#include <cstdint>

namespace weir {

// Java's murmur2 (org.apache.kafka.common.utils.Utils.murmur2, seed 0x9747b28c).
std::int32_t murmur2(ByteView bytes);

// Partition of a key: (murmur2 & 0x7fffffff) mod partitions, Kafka's default for records with a
// key. Requires: partitions > 0.
PartitionId partition_for_key(ByteView key, std::int32_t partitions);

}  // namespace weir
