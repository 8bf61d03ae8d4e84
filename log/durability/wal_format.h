#pragma once

#include <weir/runtime/bytes.h>
#include <weir/runtime/file_system.h>
#include <weir/runtime/types.h>

#include <cstdint>
#include <optional>
#include <string>

// The bytes of the write-ahead log (docs/formats/wal.md). A file is a block with its header, then
// frames; each frame is one physical write and starts at a block. Big-endian.

namespace weir::log {

inline constexpr std::size_t kWalBlockBytes = kDurableAlignment;
inline constexpr std::size_t kWalFrameHeaderBytes = 64;
inline constexpr std::size_t kWalEntryHeadBytes = 40;

constexpr std::size_t wal_blocks_up(std::size_t bytes) {
  return (bytes + kWalBlockBytes - 1) / kWalBlockBytes * kWalBlockBytes;
}

struct WalFileHeader {
  std::uint64_t generation = 0;  // of the whole log: rises when it starts anew after a clean close
  std::uint64_t wal_id = 0;      // random for each generation
  std::uint64_t first_sequence = 0;  // of the first frame in this file
  std::uint32_t previous_crc = 0;    // header CRC of the frame before first_sequence
  std::uint64_t file_bytes = 0;
};

// Fills one block.
void write_wal_file_header(char* block, const WalFileHeader& header);
// nullopt for anything else.
std::optional<WalFileHeader> read_wal_file_header(ByteView block);

struct WalFrameHeader {
  std::uint64_t wal_id = 0;
  std::uint64_t sequence = 0;      // one more than the frame before
  std::uint32_t previous_crc = 0;  // header CRC of the frame before: the chain
  std::uint32_t payload_bytes = 0;
  std::uint32_t heads_crc = 0;  // over the entries' heads, in order
  std::uint32_t entries = 0;
  bool begins = false;    // the first one since a start: a group that is open before it stays torn
  std::uint32_t crc = 0;  // of this header
};

// Writes kWalFrameHeaderBytes and returns the header's CRC.
std::uint32_t write_wal_frame_header(char* out, const WalFrameHeader& header);
// nullopt unless it is a frame header of `wal_id` (nullopt: of any) with a right CRC.
std::optional<WalFrameHeader> read_wal_frame_header(ByteView bytes,
                                                    std::optional<std::uint64_t> wal_id);

// In front of each entry's bytes.
struct WalEntryHead {
  static constexpr std::uint8_t kBatch = 1;  // kind: a record batch as it stands in the segment
  // Flags.
  static constexpr std::uint8_t kGroupGoesOn = 1;   // the atomic group has more entries
  static constexpr std::uint8_t kBodyGoesOn = 2;    // the next frame starts with the rest
  static constexpr std::uint8_t kBodyPart = 4;      // not the whole body
  static constexpr std::uint8_t kGroupFollows = 8;  // not the first entry of its atomic group

  Uuid topic_id;
  PartitionId partition;
  std::uint8_t kind = kBatch;
  std::uint8_t flags = 0;
  std::uint32_t body_bytes = 0;  // in this frame
  // Of a whole batch the CRC of its bytes that its own does not cover; of a part that of the part.
  std::uint32_t body_check = 0;

  bool has(std::uint8_t flag) const { return (flags & flag) != 0; }
};

void write_wal_entry_head(char* out, const WalEntryHead& head);
// Requires: bytes.size() >= kWalEntryHeadBytes.
WalEntryHead read_wal_entry_head(ByteView bytes);
std::uint32_t wal_body_check(ByteView body, bool part);

}  // namespace weir::log
