#pragma once

#include "log/dump/dump_target.h"
#include "log/dump/json_stream.h"

#include <functional>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace weir::log {

// The fields of a dump that come from other files than the .log files. A file that cannot be read,
// or not all of it, is remembered and the dump goes on.
//
// Threading: confined to its owner. Ownership: borrows everything.
// Bounds:    one small file (at most 64 MiB); indexes are read in pieces.
class JsonFiles {
 public:
  JsonFiles(FileSystem& files, const DumpTarget& target, JsonStream& json)
      : files_(files), target_(target), json_(json) {}

  // files
  void write_sizes();
  // leaderEpochs, partitionMetadata, producerSnapshots, metadataSnapshots, checkpoints; those that
  // there are
  void write_small_files();
  // An element of segments; in a folder with its indexes.
  void write_segment(const DumpFile& log, std::uint64_t valid_bytes);
  // segments of a dump of one index. Does nothing for other files.
  void write_single_index(const DumpFile& file);
  // Remembers the index files that the log contradicts, for damagedFiles.
  void check_indexes_of(Offset base);
  // damagedFiles, if there are any
  void write_damaged_files();

 private:
  using Json = JsonStream::Json;

  void write_leader_epochs(const DumpFile& file);
  void write_partition_metadata(const DumpFile& file);
  void write_snapshot(const DumpFile& file);
  void write_metadata_snapshot(const DumpFile& file);
  void write_checkpoint(const DumpFile& file);
  // A field that holds what `write` makes of each file of `kind`; none when there is no such file.
  void write_each(DumpFileKind kind, std::string_view name, std::string_view brackets,
                  const std::function<void(const DumpFile&)>& write);
  void open_row(const DumpFile& file);
  void write_index(std::string_view name, Offset base, std::string_view suffix);
  void write_entries(const DumpFile& file);
  void write_entries(const DumpFile& file, std::string_view name, std::size_t entry_bytes,
                     const std::function<Json(const char*)>& entry_json);
  std::optional<std::string> read_small(const DumpFile& file);
  void note_damaged_file(const DumpFile& file, const Error& error);

  FileSystem& files_;
  const DumpTarget& target_;
  JsonStream& json_;
  std::vector<std::pair<std::string, std::string>> damaged_files_;  // name, reason
};

}  // namespace weir::log
