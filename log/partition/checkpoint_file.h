#pragma once

#include <weir/runtime/file_system.h>

#include <map>
#include <string>
#include <string_view>

namespace weir::log {

// Kafka's OffsetCheckpointFile, text: "0\n<count>\n<topic> <partition> <offset>\n...". A file of 0
// bytes is normal and has no entries.
using OffsetCheckpoint = std::map<TopicPartition, Offset>;

// An absent file is empty. Errors: kCorrupt (names file and line), kIo.
Result<OffsetCheckpoint> read_offset_checkpoint(FileSystem& files, const std::string& path);
// The same from the file's text; `name` is for messages.
Result<OffsetCheckpoint> parse_offset_checkpoint(std::string_view text, std::string_view name);
// Atomic and durable.
Status write_offset_checkpoint(FileSystem& files, const std::string& path,
                               const OffsetCheckpoint& offsets);

}  // namespace weir::log
