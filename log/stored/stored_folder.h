#pragma once

#include "log/partition/checkpoint_file.h"

#include <weir/runtime/backend.h>
#include <weir/runtime/file_system.h>

#include <map>
#include <set>
#include <string>
#include <vector>

namespace weir::log {

struct StoredTopic {
  Uuid id;
  std::int32_t partitions = 0;
  TopicConfig config;
  std::vector<LeaderEpoch> leader_epochs;      // by partition; empty when they are not known
  std::map<PartitionId, std::string> folders;  // paths of those that are there
};

// What a folder holds (StoredLog says which folders there are).
struct StoredFolder {
  std::string path;
  std::map<std::string, StoredTopic> topics;
  OffsetCheckpoint log_starts;
  OffsetCheckpoint cleaned;  // partitions that were compacted
  std::vector<std::string> notes;
  bool may_be_in_use = false;  // no clean end
};

// Bounds: partition numbers up to 99,999; a folder with a higher one is noted and left out.
// Errors: kNotFound, kInvalidArgument, kIo. Damaged metadata is no error: topics then come from the
// names of the folders, and a note says so.
Result<StoredFolder> read_stored_folder(FileSystem& files, const std::string& path);

}  // namespace weir::log
