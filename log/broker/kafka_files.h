#pragma once

#include "log/metadata/metadata_records.h"

#include <weir/runtime/file_system.h>
#include <weir/runtime/types.h>

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace weir::log {

// The files of a Kafka log directory that are neither partitions nor checkpoints of offsets. With
// them `log/` of a directory that was closed is what a broker of the same node id would have left.

// The directory.id of `meta.properties`, whose path is for messages. Errors: kCorrupt.
Result<Uuid> parse_meta_properties(std::string_view text, const std::string& path);

// First records of a metadata log, behind its LEADER_CHANGE: levels of features and the cluster's
// min.insync.replicas, as Kafka 4.3 writes them, and this node. `first` is the offset of the first
// one; the node's epoch is the offset of its own, as a controller gives it.
std::vector<MetadataRecord> first_metadata_records(RegisterBrokerMetadataRecord node, Offset first);

// `.kafka_cleanshutdown`.
std::string clean_shutdown_marker(std::int64_t broker_epoch);

// `bootstrap.checkpoint`: the levels of features of a new directory, framed as a snapshot.
std::string bootstrap_checkpoint(Timestamp now);

// `__cluster_metadata-0/quorum-state`: the last election, in version 0 (a static quorum: node
// `leader` is its one voter).
std::string quorum_state(std::int32_t leader, LeaderEpoch epoch);

// Writes both below the folder `log` where they are missing or say something else. Requires: the
// metadata log was closed. Errors: kIo, kNoSpace, kCorrupt (the metadata log's leader epochs).
Status write_kafka_files(FileSystem& files, const std::string& log, std::int32_t node,
                         Timestamp now);

}  // namespace weir::log
