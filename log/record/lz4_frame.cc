#include "log/record/lz4_frame.h"

#include <weir/runtime/assert.h>

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <cstdint>
#include <cstring>
#include <lz4.h>
#include <lz4hc.h>
#include <memory>

namespace weir::log {

namespace {

static_assert(std::endian::native == std::endian::little, "LZ4 frames are little-endian");

constexpr std::uint32_t kMagic = 0x184D2204U;
constexpr std::uint32_t kStoredBit = 0x80000000U;
constexpr std::size_t kChecksumBytes = 4;
// A byte of an LZ4 block stands for at most 255.
constexpr std::size_t kExpansionMax = 255;

constexpr std::uint32_t kPrime1 = 2654435761U;
constexpr std::uint32_t kPrime2 = 2246822519U;
constexpr std::uint32_t kPrime3 = 3266489917U;
constexpr std::uint32_t kPrime4 = 668265263U;
constexpr std::uint32_t kPrime5 = 374761393U;

std::uint32_t load_le32(const char* in) {
  std::uint32_t value = 0;
  std::memcpy(&value, in, sizeof(value));
  return value;
}

Error bad_frame(std::string_view what) {
  return Error(Errc::kCorrupt, fmt::format("lz4 frame: {}", what));
}

// FLG 60: version 1, independent blocks, no checksums. BD 40: blocks of 64 KiB. Their checksum.
constexpr ByteView kFrameStart("\x04\x22\x4d\x18\x60\x40\x82", 7);
constexpr std::size_t kBlockBytes = std::size_t{64} << 10U;
constexpr std::size_t kBlockHeaderBytes = 4;
constexpr int kFastLevel = 9;

struct FrameHeader {
  std::size_t size = 0;
  std::size_t block_bytes_max = 0;
  bool block_checksums = false;
  bool content_checksum = false;
};

// magic u32 | FLG u8 | BD u8 | content size u64 if FLG bit 3 | header checksum u8
Result<FrameHeader> read_frame_header(ByteView frame) {
  if (frame.size() < 7) {
    return bad_frame("it ends inside its header");
  }
  if (load_le32(frame.data()) != kMagic) {
    return bad_frame("the magic bytes are not 04224d18");
  }
  const auto flags = static_cast<unsigned char>(frame[4]);
  const auto descriptor = static_cast<unsigned char>(frame[5]);
  if (flags >> 6U != 1) {
    return bad_frame(fmt::format("version {} is not 1", flags >> 6U));
  }
  if ((flags & 0x20U) == 0) {
    return bad_frame("its blocks depend on each other, which Kafka's readers refuse");
  }
  const unsigned size_id = (descriptor >> 4U) & 7U;
  if ((flags & 0x03U) != 0 || (descriptor & 0x8fU) != 0 || size_id < 4) {
    return bad_frame(fmt::format("reserved bits in FLG {:02x} or BD {:02x}", flags, descriptor));
  }
  FrameHeader header;
  header.size = (flags & 0x08U) != 0 ? 15 : 7;
  header.block_bytes_max = std::size_t{1} << (8 + 2 * size_id);
  header.block_checksums = (flags & 0x10U) != 0;
  header.content_checksum = (flags & 0x04U) != 0;
  if (frame.size() < header.size) {
    return bad_frame("it ends inside its header");
  }
  const std::uint32_t checksum = internal::xxh32(frame.substr(4, header.size - 5));
  if (((checksum >> 8U) & 0xffU) != static_cast<unsigned char>(frame[header.size - 1])) {
    return bad_frame("the header's checksum is wrong");
  }
  return header;
}

Status write_block(ByteView block, bool stored, const FrameHeader& header, OutputBuffer& out) {
  if (stored) {
    if (!out.ensure(block.size())) {
      return bad_frame("the content is larger than the limit");
    }
    std::memcpy(out.end(), block.data(), block.size());
    out.advance(block.size());
    return Status();
  }
  const std::size_t room =
      std::min({header.block_bytes_max, block.size() * kExpansionMax, out.left_max()});
  out.ensure(room);
  const int written = LZ4_decompress_safe(block.data(), out.end(), static_cast<int>(block.size()),
                                          static_cast<int>(room));
  if (written < 0) {
    return bad_frame("a block is damaged, or the content is larger than the limit");
  }
  out.advance(static_cast<std::size_t>(written));
  return Status();
}

// Blocks: size u32 (high bit: stored, not compressed; 0: the end) | bytes | checksum u32 if FLG
// says
Status read_blocks(ByteView rest, const FrameHeader& header, OutputBuffer& out) {
  const std::size_t checksum_bytes = header.block_checksums ? kChecksumBytes : 0;
  while (true) {
    if (rest.size() < 4) {
      return bad_frame("it ends before its end mark");
    }
    const std::uint32_t raw = load_le32(rest.data());
    rest.remove_prefix(4);
    if (raw == 0) {
      break;
    }
    const std::size_t size = raw & ~kStoredBit;
    if (size > header.block_bytes_max) {
      return bad_frame(fmt::format("a block of {} bytes is over the frame's maximum of {}", size,
                                   header.block_bytes_max));
    }
    if (rest.size() < size + checksum_bytes) {
      return bad_frame("it ends inside a block");
    }
    const ByteView block = rest.substr(0, size);
    if (header.block_checksums && internal::xxh32(block) != load_le32(rest.data() + size)) {
      return bad_frame("a block's checksum is wrong");
    }
    WEIR_TRY(write_block(block, (raw & kStoredBit) != 0, header, out));
    rest.remove_prefix(size + checksum_bytes);
  }
  if (header.content_checksum && rest.size() < kChecksumBytes) {
    return bad_frame("it ends inside the content's checksum");
  }
  return Status();
}

char* store_le32(char* out, std::uint32_t value) {
  std::memcpy(out, &value, sizeof(value));
  return out + sizeof(value);
}

// Requires: room for LZ4_compressBound(block.size()) at `out`. Returns the size.
int compress_fast(ByteView block, char* out) {
  // 16 KB; one a thread serves every batch.
  thread_local const std::unique_ptr<LZ4_stream_t> state = std::make_unique<LZ4_stream_t>();
  const int size = static_cast<int>(block.size());
  const int written =
      LZ4_compress_fast_extState(state.get(), block.data(), out, size, LZ4_compressBound(size), 1);
  WEIR_ASSERT(written > 0);
  return written;
}

// The same with 260 KB.
int compress_high(ByteView block, int level, char* out) {
  thread_local const std::unique_ptr<LZ4_streamHC_t> state = std::make_unique<LZ4_streamHC_t>();
  const int size = static_cast<int>(block.size());
  const int written = LZ4_compress_HC_extStateHC(state.get(), block.data(), out, size,
                                                 LZ4_compressBound(size), level);
  WEIR_ASSERT(written > 0);
  return written;
}

}  // namespace

namespace internal {

std::uint32_t xxh32(ByteView bytes) {
  const char* in = bytes.data();
  std::size_t left = bytes.size();
  std::uint32_t hash = kPrime5;
  if (left >= 16) {
    std::uint32_t lanes[4] = {kPrime1 + kPrime2, kPrime2, 0, 0U - kPrime1};
    for (; left >= 16; left -= 16) {
      for (std::uint32_t& lane : lanes) {
        lane = std::rotl(lane + load_le32(in) * kPrime2, 13) * kPrime1;
        in += 4;
      }
    }
    hash = std::rotl(lanes[0], 1) + std::rotl(lanes[1], 7) + std::rotl(lanes[2], 12) +
           std::rotl(lanes[3], 18);
  }
  hash += static_cast<std::uint32_t>(bytes.size());
  for (; left >= 4; left -= 4, in += 4) {
    hash = std::rotl(hash + load_le32(in) * kPrime3, 17) * kPrime4;
  }
  for (; left > 0; --left, ++in) {
    hash = std::rotl(hash + static_cast<unsigned char>(*in) * kPrime5, 11) * kPrime1;
  }
  hash = (hash ^ (hash >> 15U)) * kPrime2;
  hash = (hash ^ (hash >> 13U)) * kPrime3;
  return hash ^ (hash >> 16U);
}

}  // namespace internal

std::size_t lz4_frame_bytes_max(std::size_t plain_bytes) {
  const std::size_t blocks = (plain_bytes + kBlockBytes - 1) / kBlockBytes;
  // No block is written larger than it was, but the last one may be tried.
  constexpr std::size_t kTried = LZ4_COMPRESSBOUND(kBlockBytes) - kBlockBytes;
  return kFrameStart.size() + blocks * kBlockHeaderBytes + plain_bytes + kTried + kBlockHeaderBytes;
}

char* compress_lz4_frame(ByteView plain, int level, char* out) {
  std::memcpy(out, kFrameStart.data(), kFrameStart.size());
  out += kFrameStart.size();
  while (!plain.empty()) {
    const ByteView block = plain.substr(0, kBlockBytes);
    auto size = static_cast<std::uint32_t>(
        level == kFastLevel ? compress_fast(block, out + kBlockHeaderBytes)
                            : compress_high(block, level, out + kBlockHeaderBytes));
    std::uint32_t mark = size;
    if (size >= block.size()) {
      std::memcpy(out + kBlockHeaderBytes, block.data(), block.size());
      size = static_cast<std::uint32_t>(block.size());
      mark = size | kStoredBit;
    }
    out = store_le32(out, mark) + size;
    plain.remove_prefix(block.size());
  }
  return store_le32(out, 0);
}

Status decompress_lz4_frame(ByteView frame, OutputBuffer& out) {
  WEIR_TRY_ASSIGN(const FrameHeader header, read_frame_header(frame));
  return read_blocks(frame.substr(header.size), header, out);
}

}  // namespace weir::log
