#pragma once

#include <weir/log/log_dump.h>
#include <weir/runtime/file_system.h>
#include <weir/runtime/types.h>

#include <string>
#include <string_view>
#include <vector>

namespace weir::log {

enum class DumpFileKind {
  kLog,
  kOffsetIndex,
  kTimeIndex,
  kTransactionIndex,
  kSnapshot,
  kLeaderEpochs,
  kPartitionMetadata,
  kMetadataSnapshot,
  kOffsetCheckpoint,
  kOther,
};

struct DumpFile {
  std::string name;
  DumpFileKind kind = DumpFileKind::kOther;
  Offset base;             // from the name; 0 for files that have none in it
  LeaderEpoch epoch;       // of a metadata snapshot; none for bootstrap.checkpoint
  std::uint64_t size = 0;  // when the dump began
};

bool is_index(DumpFileKind kind);

// What a dump looks at: a partition folder with all its files by name, or one file.
struct DumpTarget {
  std::string path;         // as the caller gave it
  std::string folder_name;  // last part of the folder's path
  bool is_folder = false;
  std::vector<DumpFile> files;

  std::string path_of(const DumpFile& file) const {
    return is_folder ? join_path(path, file.name) : path;
  }
  const DumpFile* find(std::string_view name) const;
  // Not the folder above: a partition, or one of its files.
  bool is_partition() const;
  // What RecordDecoder::kByTopic means here.
  RecordDecoder decoder(RecordDecoder wanted) const;
  // Where the files are.
  std::string folder() const { return is_folder ? path : parent_path(path); }
};

// Errors: kNotFound, kInvalidArgument (see dump_log()), kIo.
Result<DumpTarget> find_dump_target(FileSystem& files, const std::string& path);

}  // namespace weir::log
