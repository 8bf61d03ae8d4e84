#pragma once

#include "log/durability/wal_format.h"
#include "log/record/batch_header.h"

#include <weir/runtime/file_system.h>
#include <weir/runtime/types.h>

#include <map>
#include <string>
#include <utility>
#include <vector>

namespace weir::log {

// A batch as the write-ahead log has it; the bytes were checked.
struct WalBatch {
  SharedSlice bytes;
  BatchHeader header;
};

// What the write-ahead log holds of one partition, in the order of its appends.
struct WalTail {
  std::vector<WalBatch> batches;
  // False when durable frames of the write-ahead log are damaged: batches may be missing, so that
  // the files' own bytes are not to be judged by it.
  bool intact = true;
};

// One file of the write-ahead log that belongs to its present generation.
struct WalFile {
  std::string path;
  WalFileHeader header;
};

struct WalContents {
  std::map<std::pair<Uuid, PartitionId>, WalTail> tails;
  bool intact = true;
  std::vector<std::string> damaged;  // durable frames that cannot be read, one text each
  // Files whose headers cannot be read, one text each: a power cut tore the header of a file that
  // was taken for new frames, or it decayed. Nothing is missing.
  std::vector<std::string> headless;
  std::uint64_t bytes = 0;  // of sound frames
  std::uint64_t batches = 0;

  // Where the next frame goes.
  std::uint64_t generation = 0;
  std::uint64_t wal_id = 0;
  std::uint64_t next_sequence = 0;
  std::uint32_t previous_crc = 0;
  std::vector<WalFile> files;      // rising first_sequence; the last one is active
  std::uint64_t end_position = 0;  // in the last file, behind its last frame
  std::vector<WalFile> spare;      // of other generations, or with no header: free to use

  WalTail tail(const Uuid& topic_id, PartitionId partition);
};

inline constexpr std::string_view kWalSuffix = ".wal";

// Reads the write-ahead log in `folder` (absent: empty). A bad frame is the torn end of the log,
// unless a sound frame with a later sequence stands behind it: then durable bytes were damaged, and
// reading goes on there (reference R 2.11). A group of which a part is missing is left out whole.
// Bounds: holds the files' bytes in memory, at most the bound of the write-ahead log.
// Errors: kIo.
Result<WalContents> read_wal(FileSystem& files, const std::string& folder);
// Only which files there are and the highest generation; for a start that needs no frame.
Result<WalContents> read_wal_files(FileSystem& files, const std::string& folder);

}  // namespace weir::log
