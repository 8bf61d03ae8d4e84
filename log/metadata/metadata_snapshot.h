#pragma once

#include "log/metadata/metadata_image.h"

#include <weir/runtime/file_system.h>

#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace weir::log {

// Which part of the metadata log a snapshot stands for: what is below `end`, whose last record has
// this epoch (org.apache.kafka.server.common.OffsetAndEpoch).
struct SnapshotId {
  Offset end;
  LeaderEpoch epoch;
  friend auto operator<=>(const SnapshotId&, const SnapshotId&) = default;
};

// "00000000000000000141-0000000002.checkpoint", as Kafka's Snapshots.filenameFromSnapshotId.
std::string snapshot_name(const SnapshotId& id);
std::optional<SnapshotId> parse_snapshot_name(std::string_view name);

// The bytes of a snapshot: a SNAPSHOT_HEADER, the records in batches from offset 0 on, a
// SNAPSHOT_FOOTER. `last_contained`: timestamp of the last record that it stands for.
std::string encode_snapshot(std::span<const MetadataRecord> records, Timestamp last_contained,
                            Timestamp now);

// The image that a snapshot holds. Errors: kCorrupt when it is damaged, cut off or contradicts
// itself (names the file), kUnsupported, kNotFound, kIo.
Result<MetadataImage> read_snapshot(FileSystem& files, const std::string& path);

struct LoadedSnapshot {
  SnapshotId id;
  MetadataImage image;
};

// Snapshots in the folder of a metadata log, rising. Errors: kIo.
Result<std::vector<SnapshotId>> list_snapshots(FileSystem& files, const std::string& folder);
// The newest one that is whole; nullopt: none. What is passed over adds a line to `notes`.
// Errors: kIo.
Result<std::optional<LoadedSnapshot>> load_newest_snapshot(FileSystem& files,
                                                           const std::string& folder,
                                                           std::vector<std::string>& notes);

}  // namespace weir::log
