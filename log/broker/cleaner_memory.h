#pragma once

#include "log/broker/partition_key.h"

#include <weir/runtime/file_system.h>
#include <weir/runtime/types.h>

#include <map>
#include <string>

namespace weir::log {

// Of each partition the offset below which tombstones may be gone
// (docs/formats/data_directory.md, `wal/tombstone-horizons`). Text: "0", count, and a line
// "<topic id> <partition> <offset>" each.
using TombstoneHorizons = std::map<PartitionKey, Offset>;

// An absent file has none. Errors: kCorrupt, kIo.
Result<TombstoneHorizons> read_tombstone_horizons(FileSystem& files, const std::string& path);
// Atomic and durable. Errors: kIo, kNoSpace.
Status write_tombstone_horizons(FileSystem& files, const std::string& path,
                                const TombstoneHorizons& horizons);

}  // namespace weir::log
