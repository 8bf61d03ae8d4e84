#pragma once

#include "log/metadata/metadata_image.h"

#include <weir/runtime/file_system.h>

#include <string>
#include <vector>

namespace weir::log {

struct StoredMetadata {
  MetadataImage image;
  std::vector<std::string> notes;  // what could not be read
};

// What the folder of `__cluster_metadata-0` says at its end: the newest whole snapshot
// (NNN-EEE.checkpoint with its SNAPSHOT_FOOTER), then the log behind it. Records of a type that is
// not known are passed over; those of a metadata transaction that was aborted or is unfinished do
// not count. Errors: kCorrupt (neither log nor snapshot reaches back to the start, or what is there
// contradicts itself), kUnsupported, kIo.
Result<StoredMetadata> read_stored_metadata(FileSystem& files, const std::string& folder);

}  // namespace weir::log
