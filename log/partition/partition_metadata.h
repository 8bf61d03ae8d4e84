#pragma once

#include <weir/runtime/result.h>
#include <weir/runtime/types.h>

#include <string>
#include <string_view>

// The file `partition.metadata` of a partition folder (Kafka's PartitionMetadataFile): two lines,
// "version: 0" and "topic_id: " with 22 characters of Base64, no line end behind the last.

namespace weir::log {

inline constexpr std::string_view kPartitionMetadataName = "partition.metadata";

std::string encode_partition_metadata(const Uuid& topic_id);
// Errors: kCorrupt.
Result<Uuid> parse_partition_metadata(std::string_view text);

}  // namespace weir::log
