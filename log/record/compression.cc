#include "log/record/compression.h"

#include "log/record/gzip_stream.h"
#include "log/record/lz4_frame.h"
#include "log/record/output_buffer.h"

#include <weir/runtime/endian.h>

#include <fmt/format.h>

#include <algorithm>
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
// Two bytes of a snappy block stand for at most 64.
constexpr std::size_t kSnappyExpansionMax = 32;

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
};

// In one call and not as a stream: a stream needs a window of what the frame claims, up to 128 MiB.
// The size is rarely written, so a buffer that was too small is replaced by one four times larger.
Status decompress_zstd(ByteView in, std::size_t bytes_max, SharedBytes& out) {
  // 160 KB; one a thread serves every batch.
  thread_local std::unique_ptr<ZSTD_DCtx, FreeContext> context(ZSTD_createDCtx());
  if (context == nullptr) {
    return Error(Errc::kInternal, "zstd stream: no memory for its state");
  }
  std::size_t capacity = std::min(std::max<std::size_t>(8 * in.size(), 4000), bytes_max);
  while (true) {
    out = SharedBytes::allocate(capacity);
    const std::size_t room = std::min(out.capacity(), bytes_max);
    const std::size_t size =
        ZSTD_decompressDCtx(context.get(), out.data(), room, in.data(), in.size());
    if (ZSTD_isError(size) == 0) {
      out.resize(size);
      return Status();
    }
    if (ZSTD_getErrorCode(size) != ZSTD_error_dstSize_tooSmall) {
      return bad_stream("zstd", ZSTD_getErrorName(size));
    }
    if (room >= bytes_max) {
      return bad_stream("zstd", "the content is larger than the limit");
    }
    capacity = std::min(4 * room, bytes_max);
  }
}

}  // namespace

Result<SharedBytes> decompress(std::uint8_t codec_bits, ByteView compressed,
                               std::size_t bytes_max) {
  if (codec_bits == static_cast<std::uint8_t>(Codec::kZstd)) {
    SharedBytes plain;
    WEIR_TRY(decompress_zstd(compressed, bytes_max, plain));
    return plain;
  }
  if (codec_bits > static_cast<std::uint8_t>(Codec::kZstd)) {
    return Error(Errc::kUnsupported,
                 fmt::format("codec {} is none of none, gzip, snappy, lz4, zstd", codec_bits));
  }
  OutputBuffer out(kExpansionExpected * compressed.size(), bytes_max + kSlackBytes);
  Status done;
  switch (static_cast<Codec>(codec_bits)) {
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
      return SharedBytes::copy_of(compressed);
  }
  if (!done.ok()) {
    return std::move(done).error();
  }
  if (out.used() > bytes_max) {
    return bad_stream(codec_name(static_cast<Codec>(codec_bits)),
                      "the content is larger than the limit");
  }
  return out.take();
}

}  // namespace weir::log
