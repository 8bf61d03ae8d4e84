#include "log/durability/wal_format.h"

#include "log/record/batch_header.h"

#include <weir/runtime/crc32c.h>
#include <weir/runtime/endian.h>

#include <algorithm>
#include <cstring>

namespace weir::log {
namespace {

constexpr ByteView kFileMagic = "WEIRWAL1";
constexpr std::uint32_t kFrameMagic = 0x57414C46;  // "WALF"
constexpr std::size_t kFileHeaderBytes = 56;
constexpr std::size_t kFileCrcEnd = 12;
constexpr std::size_t kFrameCrcEnd = 8;

}  // namespace

void write_wal_file_header(char* block, const WalFileHeader& header) {
  std::memset(block, 0, kWalBlockBytes);
  std::memcpy(block, kFileMagic.data(), kFileMagic.size());
  store_be(block + 12, header.previous_crc);
  store_be(block + 16, header.generation);
  store_be(block + 24, header.wal_id);
  store_be(block + 32, header.first_sequence);
  store_be(block + 48, header.file_bytes);
  store_be(block + 8, crc32c({block + kFileCrcEnd, kFileHeaderBytes - kFileCrcEnd}));
}

std::optional<WalFileHeader> read_wal_file_header(ByteView block) {
  if (block.size() < kFileHeaderBytes || !block.starts_with(kFileMagic) ||
      load_be<std::uint32_t>(block.data() + 8) !=
          crc32c(block.substr(kFileCrcEnd, kFileHeaderBytes - kFileCrcEnd))) {
    return std::nullopt;
  }
  WalFileHeader header;
  header.previous_crc = load_be<std::uint32_t>(block.data() + 12);
  header.generation = load_be<std::uint64_t>(block.data() + 16);
  header.wal_id = load_be<std::uint64_t>(block.data() + 24);
  header.first_sequence = load_be<std::uint64_t>(block.data() + 32);
  header.file_bytes = load_be<std::uint64_t>(block.data() + 48);
  return header;
}

std::uint32_t write_wal_frame_header(char* out, const WalFrameHeader& header) {
  std::memset(out, 0, kWalFrameHeaderBytes);
  store_be(out, kFrameMagic);
  store_be(out + 8, header.wal_id);
  store_be(out + 16, header.sequence);
  store_be(out + 24, header.previous_crc);
  store_be(out + 28, header.payload_bytes);
  store_be(out + 32, header.heads_crc);
  store_be(out + 36, header.entries);
  store_be(out + 40, std::uint32_t{header.begins});
  const std::uint32_t crc = crc32c({out + kFrameCrcEnd, kWalFrameHeaderBytes - kFrameCrcEnd});
  store_be(out + 4, crc);
  return crc;
}

std::optional<WalFrameHeader> read_wal_frame_header(ByteView bytes,
                                                    std::optional<std::uint64_t> wal_id) {
  if (bytes.size() < kWalFrameHeaderBytes || load_be<std::uint32_t>(bytes.data()) != kFrameMagic) {
    return std::nullopt;
  }
  const auto found_id = load_be<std::uint64_t>(bytes.data() + 8);
  if (wal_id.value_or(found_id) != found_id) {
    return std::nullopt;
  }
  WalFrameHeader header;
  header.crc = load_be<std::uint32_t>(bytes.data() + 4);
  if (header.crc != crc32c(bytes.substr(kFrameCrcEnd, kWalFrameHeaderBytes - kFrameCrcEnd))) {
    return std::nullopt;
  }
  header.wal_id = found_id;
  header.sequence = load_be<std::uint64_t>(bytes.data() + 16);
  header.previous_crc = load_be<std::uint32_t>(bytes.data() + 24);
  header.payload_bytes = load_be<std::uint32_t>(bytes.data() + 28);
  header.heads_crc = load_be<std::uint32_t>(bytes.data() + 32);
  header.entries = load_be<std::uint32_t>(bytes.data() + 36);
  header.begins = load_be<std::uint32_t>(bytes.data() + 40) != 0;
  return header;
}

void write_wal_entry_head(char* out, const WalEntryHead& head) {
  std::memcpy(out, head.topic_id.bytes.data(), head.topic_id.bytes.size());
  store_be(out + 16, head.partition.value());
  out[20] = static_cast<char>(head.kind);
  out[21] = static_cast<char>(head.flags);
  out[22] = 0;
  out[23] = 0;
  store_be(out + 24, head.body_bytes);
  store_be(out + 28, head.body_check);
  store_be(out + 32, std::uint64_t{0});
}

WalEntryHead read_wal_entry_head(ByteView bytes) {
  WalEntryHead head;
  std::memcpy(head.topic_id.bytes.data(), bytes.data(), head.topic_id.bytes.size());
  head.partition = PartitionId(load_be<std::int32_t>(bytes.data() + 16));
  head.kind = static_cast<std::uint8_t>(bytes[20]);
  head.flags = static_cast<std::uint8_t>(bytes[21]);
  head.body_bytes = load_be<std::uint32_t>(bytes.data() + 24);
  head.body_check = load_be<std::uint32_t>(bytes.data() + 28);
  return head;
}

std::uint32_t wal_body_check(ByteView body, bool part) {
  return crc32c(part ? body : body.substr(0, std::min(body.size(), kBatchCrcStart)));
}

}  // namespace weir::log
