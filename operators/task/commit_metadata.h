#pragma once

#include <weir/runtime/result.h>
#include <weir/runtime/types.h>

#include <cstdint>
#include <map>
#include <string>
#include <string_view>

namespace weir::internal {

// What travels in the metadata string of a committed offset, so that time goes on after a restart
// (streams-features TIME-5; Kafka's TopicPartitionMetadata).
//
// Text: standard Base64 with padding of
//   +---------+----------------+-----------------------------------------------------------+
//   | version | partition time | map, absent when empty: int32 entries, each               |
//   | 1 byte  | int64          |   int32 name length | name | int64 value                   |
//   +---------+----------------+-----------------------------------------------------------+
// big-endian; version 2; version 1 has no map and is read too.
struct CommitMetadata {
  Timestamp partition_time = kNoTimestamp;
  std::map<std::string, std::int64_t> processors;

  friend bool operator==(const CommitMetadata&, const CommitMetadata&) = default;
};

// Kafka's offset.metadata.max.bytes: a log refuses longer ones.
inline constexpr std::size_t kCommitMetadataBytesMax = 4096;

std::string encode_commit_metadata(const CommitMetadata& metadata);
// The empty string is a commit without metadata. Errors: kCorrupt (no Base64, cut short),
// kUnsupported (another version).
Result<CommitMetadata> decode_commit_metadata(std::string_view text);

}  // namespace weir::internal
