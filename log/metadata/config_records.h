#pragma once

#include "log/metadata/metadata_records.h"

#include <weir/runtime/backend.h>

#include <optional>
#include <string>
#include <vector>

namespace weir::log {

// How settings of topics stand in the metadata log. Each is a CONFIG record under its own name,
// save one: a Kafka 4 broker does not start on metadata that hold a `segment.bytes` below 1 MiB, so
// a smaller size is stored as `internal.segment.bytes`, which goes before the other one in a
// broker.

// The records that give `topic`, whose settings are `present`, the setting `key` with `value`
// (nullopt: its default). None when it has that value already.
std::vector<MetadataRecord> config_records(const std::string& topic, const TopicConfig& present,
                                           const std::string& key,
                                           const std::optional<std::string>& value);

// The setting that a CONFIG record of a topic is about.
const std::string& setting_of_config(const std::string& record_name);

}  // namespace weir::log
