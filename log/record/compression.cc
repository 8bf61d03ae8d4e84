#include "log/record/compression.h"

#include "log/record/gzip_stream.h"
#include "log/record/lz4_frame.h"
#include "log/record/output_buffer.h"

#include <weir/runtime/assert.h>
#include <weir/runtime/endian.h>

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <limits>
#include <memory>
#include <snappy.h>
#include <zstd.h>
#include <zstd_errors.h>

namespace weir::log {

namespace {

// org.xerial.snappy.SnappyCodec: magic, version i32, lowest compatible version i32; the versions
// are not looked at (Kafka reads 0 and 2 as well).
constexpr ByteView kXerialMagic{"\x82SNAPPY\0", 8};
constexpr std::size_t kXerialHeaderBytes = 16;
constexpr std::int32_t kXerialMagicHead = static_cast<std::int32_t>(0x82534e41U);
constexpr std::int32_t kXerialChunkBytesMax = 536870912;
// Java's writer fills chunks of this many plain bytes.
constexpr std::size_t kXerialChunkBytes = std::size_t{32} << 10U;
// Two bytes of a snappy block stand for at most 64.
constexpr std::size_t kSnappyExpansionMax = 32;

// Four bytes of a zstd block, its header and one of content, stand for at most 128 KiB.
constexpr std::size_t kZstdExpansionMax = std::size_t{32} << 10U;

// A codec learns that it is at the end only when it may write one byte more.
constexpr std::size_t kSlackBytes = 64;

// What compressed records usually grow by; more is found out on the way.
constexpr std::size_t kExpansionExpected = 4;

Error bad_stream(std::string_view codec, std::string_view what) {
  return Error(Errc::kCorrupt, fmt::format("{} stream: {}", codec, what));
}

Status uncompress_snappy_block(ByteView block, OutputBuffer& out) {
  std::size_t size = 0;
  // The claim is believed only as far as the block's bytes can carry it.
  if (!snappy::GetUncompressedLength(block.data(), block.size(), &size) ||
      size > block.size() * kSnappyExpansionMax) {
    return bad_stream("snappy", "a block's length is wrong");
  }
  if (!out.ensure(size)) {
    return bad_stream("snappy", "the content is larger than the limit");
  }
  if (!snappy::RawUncompress(block.data(), block.size(), out.end())) {
    return bad_stream("snappy", "a block is damaged");
  }
  out.advance(size);
  return Status();
}

// Chunks of {length i32, block} behind the header; a further header may stand where a chunk's
// length would, as when two streams are written one after the other.
Status uncompress_xerial(ByteView in, OutputBuffer& out) {
  in.remove_prefix(kXerialHeaderBytes);
  while (in.size() >= 4) {
    const auto length = load_be<std::int32_t>(in.data());
    if (length == kXerialMagicHead) {
      if (in.size() < kXerialHeaderBytes || !in.starts_with(kXerialMagic)) {
        return Status();  // Java's reader takes it as the end
      }
      in.remove_prefix(kXerialHeaderBytes);
      continue;
    }
    in.remove_prefix(4);
    if (length < 0 || length > kXerialChunkBytesMax) {
      return bad_stream("snappy", fmt::format("a chunk's length is {}", length));
    }
    const auto size = static_cast<std::size_t>(length);
    if (size > in.size()) {
      return bad_stream("snappy", "it ends inside a chunk");
    }
    WEIR_TRY(uncompress_snappy_block(in.substr(0, size), out));
    in.remove_prefix(size);
  }
  return Status();
}

Status decompress_snappy(ByteView in, OutputBuffer& out) {
  if (in.size() >= kXerialHeaderBytes && in.starts_with(kXerialMagic)) {
    return uncompress_xerial(in, out);
  }
  return uncompress_snappy_block(in, out);
}

struct FreeContext {
  void operator()(ZSTD_DCtx* context) const { ZSTD_freeDCtx(context); }
  void operator()(ZSTD_CCtx* context) const { ZSTD_freeCCtx(context); }
};

// What the first frame says that it holds, as far as its bytes can carry it, else a guess.
std::size_t zstd_bytes_expected(ByteView in, std::size_t bytes_max) {
  const unsigned long long claim = ZSTD_getFrameContentSize(in.data(), in.size());
  if (claim == ZSTD_CONTENTSIZE_UNKNOWN || claim == ZSTD_CONTENTSIZE_ERROR) {
    return std::min(std::max<std::size_t>(8 * in.size(), 4000), bytes_max);
  }
  return std::min<std::size_t>({claim, in.size() * kZstdExpansionMax, bytes_max});
}

// In one call and not as a stream: a stream needs a window of what the frame claims, up to 128 MiB.
// The size may be unwritten, that of the first of several frames, or a lie: a buffer that was too
// small is replaced by one four times larger.
Status decompress_zstd(ByteView in, std::size_t bytes_max, std::size_t front_bytes,
                       SharedBytes& out) {
  // 160 KB; one a thread serves every batch.
  thread_local std::unique_ptr<ZSTD_DCtx, FreeContext> context(ZSTD_createDCtx());
  if (context == nullptr) {
    return Error(Errc::kInternal, "zstd stream: no memory for its state");
  }
  std::size_t capacity = zstd_bytes_expected(in, bytes_max);
  while (true) {
    out = SharedBytes::allocate(front_bytes + capacity);
    const std::size_t room = std::min(out.capacity() - front_bytes, bytes_max);
    const std::size_t size =
        ZSTD_decompressDCtx(context.get(), out.data() + front_bytes, room, in.data(), in.size());
    if (ZSTD_isError(size) == 0) {
      out.resize(front_bytes + size);
      return Status();
    }
    if (ZSTD_getErrorCode(size) != ZSTD_error_dstSize_tooSmall) {
      return bad_stream("zstd", ZSTD_getErrorName(size));
    }
    if (room >= bytes_max) {
      return bad_stream("zstd", "the content is larger than the limit");
    }
    capacity = std::min(std::max<std::size_t>(4 * room, 4000), bytes_max);
  }
}

std::size_t count_chunks(std::size_t bytes, std::size_t chunk_bytes) {
  return (bytes + chunk_bytes - 1) / chunk_bytes;
}

// snappy has no state to keep: it takes its 32 KiB table from the heap in every call.
char* compress_xerial(ByteView plain, char* out) {
  std::memcpy(out, kXerialMagic.data(), kXerialMagic.size());
  out = store_be(out + kXerialMagic.size(), std::int32_t{1});  // version
  out = store_be(out, std::int32_t{1});                        // lowest compatible version
  while (!plain.empty()) {
    const ByteView chunk = plain.substr(0, kXerialChunkBytes);
    std::size_t size = 0;
    snappy::RawCompress(chunk.data(), chunk.size(), out + 4, &size);
    store_be(out, static_cast<std::int32_t>(size));
    out += 4 + size;
    plain.remove_prefix(chunk.size());
  }
  return out;
}

char* compress_zstd(ByteView plain, std::int32_t level, char* out, std::size_t room) {
  // A few MB at most levels; zstd sizes it by the batches.
  thread_local std::unique_ptr<ZSTD_CCtx, FreeContext> context(ZSTD_createCCtx());
  WEIR_ASSERT(context != nullptr);
  ZSTD_CCtx_setParameter(context.get(), ZSTD_c_compressionLevel, level);
  const std::size_t size = ZSTD_compress2(context.get(), out, room, plain.data(), plain.size());
  WEIR_ASSERT(ZSTD_isError(size) == 0);  // the room is ZSTD_compressBound's
  return out + size;
}

}  // namespace

Result<SharedBytes> decompress(std::uint8_t codec_bits, ByteView compressed, std::size_t bytes_max,
                               std::size_t front_bytes) {
  if (codec_bits == static_cast<std::uint8_t>(Codec::kZstd)) {
    SharedBytes plain;
    WEIR_TRY(decompress_zstd(compressed, bytes_max, front_bytes, plain));
    return plain;
  }
  if (codec_bits > static_cast<std::uint8_t>(Codec::kZstd)) {
    return Error(Errc::kUnsupported,
                 fmt::format("codec {} is none of none, gzip, snappy, lz4, zstd", codec_bits));
  }
  const Codec codec = static_cast<Codec>(codec_bits);
  const std::size_t expected =
      codec == Codec::kNone ? compressed.size() : kExpansionExpected * compressed.size();
  OutputBuffer out(front_bytes + expected, front_bytes + bytes_max + kSlackBytes);
  out.advance(front_bytes);
  Status done;
  switch (codec) {
    case Codec::kGzip:
      done = decompress_gzip(compressed, out);
      break;
    case Codec::kSnappy:
      done = decompress_snappy(compressed, out);
      break;
    case Codec::kLz4:
      done = decompress_lz4_frame(compressed, out);
      break;
    default:
      if (compressed.size() > bytes_max) {
        return bad_stream("uncompressed", "the content is larger than the limit");
      }
      std::memcpy(out.end(), compressed.data(), compressed.size());
      out.advance(compressed.size());
  }
  if (!done.ok()) {
    return std::move(done).error();
  }
  if (out.used() - front_bytes > bytes_max) {
    return bad_stream(codec_name(codec), "the content is larger than the limit");
  }
  return out.take();
}

std::size_t compressed_bytes_max(Codec codec, std::size_t plain_bytes) {
  switch (codec) {
    case Codec::kGzip:
      return gzip_bytes_max(plain_bytes);
    case Codec::kSnappy: {
      // snappy::MaxCompressedLength rounds down for each chunk.
      const std::size_t chunks = count_chunks(plain_bytes, kXerialChunkBytes);
      return kXerialHeaderBytes + chunks * (4 + snappy::MaxCompressedLength(0)) + plain_bytes +
             plain_bytes / 6;
    }
    case Codec::kLz4:
      return lz4_frame_bytes_max(plain_bytes);
    case Codec::kZstd:
      return ZSTD_compressBound(plain_bytes);
    default:
      return plain_bytes;
  }
}

SharedBytes compress(const Compression& compression, ByteView plain, std::size_t front_bytes) {
  const std::size_t room = compressed_bytes_max(compression.codec, plain.size());
  SharedBytes result = SharedBytes::allocate(front_bytes + room);
  char* const out = result.data() + front_bytes;
  char* end = out;
  const std::int32_t level = compression.level_in_force();
  switch (compression.codec) {
    case Codec::kGzip:
      end = compress_gzip(plain, level, out, room);
      break;
    case Codec::kSnappy:
      end = compress_xerial(plain, out);
      break;
    case Codec::kLz4:
      end = compress_lz4_frame(plain, level, out);
      break;
    case Codec::kZstd:
      end = compress_zstd(plain, level, out, room);
      break;
    default:
      std::memcpy(out, plain.data(), plain.size());
      end = out + plain.size();
  }
  result.resize(static_cast<std::size_t>(end - result.data()));
  return result;
}

Result<SharedBytes> convert_batch(const BatchHeader& header, ByteView batch,
                                  const Compression& compression,
                                  std::size_t decompressed_bytes_max) {
  ByteView records = batch.substr(kBatchHeaderBytes);
  SharedBytes plain;
  SharedBytes converted;
  if (compression.codec == Codec::kNone) {
    WEIR_TRY_ASSIGN(converted, decompress(header.codec_bits(), records, decompressed_bytes_max,
                                          kBatchHeaderBytes));
  } else {
    if (header.codec_bits() != 0) {
      WEIR_TRY_ASSIGN(plain, decompress(header.codec_bits(), records, decompressed_bytes_max));
      records = plain.view();
    }
    converted = compress(compression, records, kBatchHeaderBytes);
  }
  if (converted.size() > std::numeric_limits<std::int32_t>::max()) {
    return Error(Errc::kRecordTooLarge,
                 fmt::format("batch of {} bytes has {} as {}, more than a batch can", batch.size(),
                             converted.size(), codec_name(compression.codec)));
  }
  BatchHeader changed = header;
  changed.batch_length = static_cast<std::int32_t>(converted.size() - kBatchLengthEnd);
  changed.attributes = static_cast<std::int16_t>((header.attributes & ~kCodecMask) |
                                                 static_cast<std::int16_t>(compression.codec));
  write_batch_header(converted.data(), changed);
  return converted;
}

}  // namespace weir::log
