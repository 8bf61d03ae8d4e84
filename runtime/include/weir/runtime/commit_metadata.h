#pragma once

#include <weir/runtime/result.h>
#include <weir/runtime/types.h>

#include <cstddef>
#include <cstdint>
#include <map>
#include <string>
#include <string_view>

namespace weir {

// What travels in the metadata string of a committed offset: the time of the partition, so that
// time goes on after a restart (streams-features TIME-5; Kafka's TopicPartitionMetadata), and which
// records above the offset are finished already.
//
// Text: standard Base64 with padding. Without a lane map the bytes are Kafka Streams' version 2:
//   +---------+----------------+-----------------------------------------------------------+
//   | version | partition time | map, absent when empty: int32 entries, each               |
//   | 1 byte  | int64          |   int32 name length | name | int64 value                   |
//   +---------+----------------+-----------------------------------------------------------+
// big-endian; version 1 has no map and is read too. With a lane map they are Weir's own, which
// Kafka Streams takes for an unknown version and passes over (docs/formats/offsets_topic.md):
//   +------+---------+-----------------------------------------------+--------+
//   | 0xC5 | version | sections: id 1 byte | uvarint length | bytes  | crc32c |
//   |      | 1       | 1 times, as version 2 above | 2 lane map      | int32  |
//   +------+---------+-----------------------------------------------+--------+
// An unknown section is passed over, so that a later version may add one.
struct CommitMetadata {
  Timestamp partition_time = kNoTimestamp;
  std::map<std::string, std::int64_t> processors;
  // Bytes of encode_lane_map(); empty: none.
  std::string lane_map = {};

  friend bool operator==(const CommitMetadata&, const CommitMetadata&) = default;
};

// Kafka's offset.metadata.max.bytes: a log refuses longer ones.
inline constexpr std::size_t kCommitMetadataBytesMax = 4096;

// Bounds: longer than kCommitMetadataBytesMax when the caller did not keep to lane_map_room().
std::string encode_commit_metadata(const CommitMetadata& metadata);
// The empty string is a commit without metadata. Errors: kCorrupt (no Base64, cut short, wrong
// CRC), kUnsupported (another version).
Result<CommitMetadata> decode_commit_metadata(std::string_view text);

// How many bytes of lane map fit beside the rest of `metadata`; the map shrinks first. 0 when there
// is no room at all.
std::size_t lane_map_room(const CommitMetadata& metadata);

}  // namespace weir
