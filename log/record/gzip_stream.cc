#include "log/record/gzip_stream.h"

#include <weir/runtime/assert.h>

#include <fmt/format.h>

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <optional>
#define ZLIB_CONST
#include <zlib.h>

namespace weir::log {

namespace {

constexpr std::size_t kHeaderBytes = 10;
constexpr std::size_t kTrailerBytes = 8;
// Smallest member: header, an empty deflate stream, trailer. Java looks for no further one in less.
constexpr std::size_t kMemberBytesMin = 18;
constexpr std::size_t kStepBytesMax = std::size_t{1} << 30U;

Error bad_stream(std::string_view what) {
  return Error(Errc::kCorrupt, fmt::format("gzip stream: {}", what));
}

// zlib's state is 40 KB; one a thread serves every batch.
class Inflater {
 public:
  Inflater() { ready_ = inflateInit2(&stream_, -MAX_WBITS) == Z_OK; }
  ~Inflater() {
    if (ready_) {
      inflateEnd(&stream_);
    }
  }
  Inflater(const Inflater&) = delete;
  Inflater& operator=(const Inflater&) = delete;

  // One raw deflate stream at the front of `in`, which is moved behind it.
  Status inflate_one(ByteView& in, OutputBuffer& out) {
    if (!ready_ || inflateReset(&stream_) != Z_OK) {
      return Error(Errc::kInternal, "gzip stream: zlib has no memory for its state");
    }
    int code = Z_OK;
    while (code != Z_STREAM_END) {
      if (out.left() == 0 && !out.ensure(1)) {
        return bad_stream("the content is larger than the limit");
      }
      const std::size_t in_step = std::min(in.size(), kStepBytesMax);
      const std::size_t out_step = std::min(out.left(), kStepBytesMax);
      stream_.next_in = reinterpret_cast<const Bytef*>(in.data());
      stream_.avail_in = static_cast<uInt>(in_step);
      stream_.next_out = reinterpret_cast<Bytef*>(out.end());
      stream_.avail_out = static_cast<uInt>(out_step);
      code = inflate(&stream_, Z_NO_FLUSH);
      in.remove_prefix(in_step - stream_.avail_in);
      out.advance(out_step - stream_.avail_out);
      if (code != Z_OK && code != Z_STREAM_END) {
        return bad_stream(stream_.msg != nullptr ? stream_.msg : "it ends inside the data");
      }
    }
    return Status();
  }

 private:
  z_stream stream_{};
  bool ready_ = false;
};

// The counterpart; 270 KB, one a thread too.
class Deflater {
 public:
  Deflater() {
    ready_ = deflateInit2(&stream_, level_, Z_DEFLATED, -MAX_WBITS, kMemoryLevel,
                          Z_DEFAULT_STRATEGY) == Z_OK;
  }
  ~Deflater() {
    if (ready_) {
      deflateEnd(&stream_);
    }
  }
  Deflater(const Deflater&) = delete;
  Deflater& operator=(const Deflater&) = delete;

  // Writes `plain` as one raw deflate stream and returns the end.
  char* deflate_one(ByteView plain, int level, char* out, std::size_t room) {
    WEIR_ASSERT(ready_ && deflateReset(&stream_) == Z_OK);
    if (level != level_) {
      WEIR_ASSERT(deflateParams(&stream_, level, Z_DEFAULT_STRATEGY) == Z_OK);
      level_ = level;
    }
    stream_.next_in = reinterpret_cast<const Bytef*>(plain.data());
    stream_.avail_in = static_cast<uInt>(plain.size());
    stream_.next_out = reinterpret_cast<Bytef*>(out);
    stream_.avail_out = static_cast<uInt>(std::min<std::size_t>(room, UINT32_MAX));
    const int code = deflate(&stream_, Z_FINISH);
    WEIR_ASSERT(code == Z_STREAM_END);  // the room is gzip_bytes_max()
    return reinterpret_cast<char*>(stream_.next_out);
  }

 private:
  static constexpr int kMemoryLevel = 8;  // zlib's default, which Java takes too

  z_stream stream_{};
  int level_ = Z_DEFAULT_COMPRESSION;
  bool ready_ = false;
};

char* store_le32(char* out, std::uint32_t value) {
  for (unsigned shift = 0; shift < 32; shift += 8) {
    *out++ = static_cast<char>(value >> shift);
  }
  return out;
}

std::uint32_t load_le16(const char* in) {
  return static_cast<unsigned char>(in[0]) |
         static_cast<std::uint32_t>(static_cast<unsigned char>(in[1])) << 8U;
}

std::uint32_t load_le32(const char* in) {
  return load_le16(in) | load_le16(in + 2) << 16U;
}

std::uint32_t crc32_of(const char* data, std::size_t size) {
  return static_cast<std::uint32_t>(crc32_z(0, reinterpret_cast<const Bytef*>(data), size));
}

// Position behind a zero-terminated text.
std::optional<std::size_t> skip_text(ByteView in, std::size_t at) {
  const std::size_t zero = in.find('\0', at);
  return zero == ByteView::npos ? std::nullopt : std::optional<std::size_t>(zero + 1);
}

// Size of the member header at the front of `in`; nullopt when there is none.
// ID1 1f | ID2 8b | CM 8 | FLG | MTIME u32 | XFL | OS | [extra] [name] [comment] [header crc u16]
std::optional<std::size_t> header_size(ByteView in) {
  if (in.size() < kHeaderBytes || in.substr(0, 3) != ByteView("\x1f\x8b\x08", 3)) {
    return std::nullopt;
  }
  const auto flags = static_cast<unsigned char>(in[3]);
  std::optional<std::size_t> at = kHeaderBytes;
  if ((flags & 0x04U) != 0) {
    if (in.size() < kHeaderBytes + 2) {
      return std::nullopt;
    }
    at = kHeaderBytes + 2 + load_le16(in.data() + kHeaderBytes);
  }
  if ((flags & 0x08U) != 0 && at) {
    at = skip_text(in, *at);
  }
  if ((flags & 0x10U) != 0 && at) {
    at = skip_text(in, *at);
  }
  if ((flags & 0x02U) != 0 && at) {
    if (in.size() < *at + 2) {
      return std::nullopt;
    }
    if ((crc32_of(in.data(), *at) & 0xffffU) != load_le16(in.data() + *at)) {
      return std::nullopt;
    }
    at = *at + 2;
  }
  return at && *at <= in.size() ? at : std::nullopt;
}

Status check_trailer(ByteView& in, const char* content, std::size_t size) {
  if (in.size() < kTrailerBytes) {
    return bad_stream("it ends inside a trailer");
  }
  if (load_le32(in.data()) != crc32_of(content, size)) {
    return bad_stream("the content's crc is wrong");
  }
  if (load_le32(in.data() + 4) != static_cast<std::uint32_t>(size)) {
    return bad_stream("the content's length is wrong");
  }
  in.remove_prefix(kTrailerBytes);
  return Status();
}

}  // namespace

Status decompress_gzip(ByteView stream, OutputBuffer& out) {
  thread_local Inflater inflater;
  std::optional<std::size_t> header = header_size(stream);
  if (!header) {
    return bad_stream("no gzip header in front");
  }
  while (header) {
    stream.remove_prefix(*header);
    const std::size_t used_before = out.used();
    WEIR_TRY(inflater.inflate_one(stream, out));
    const std::size_t size = out.used() - used_before;
    WEIR_TRY(check_trailer(stream, out.end() - size, size));
    header = stream.size() > kMemberBytesMin ? header_size(stream) : std::nullopt;
  }
  return Status();
}

std::size_t gzip_bytes_max(std::size_t plain_bytes) {
  // deflateBound() of the default window and memory level.
  return plain_bytes + (plain_bytes >> 12U) + (plain_bytes >> 14U) + (plain_bytes >> 25U) + 13 +
         kHeaderBytes + kTrailerBytes;
}

char* compress_gzip(ByteView plain, int level, char* out, std::size_t room) {
  static constexpr ByteView kHeader("\x1f\x8b\x08\0\0\0\0\0\0\xff", kHeaderBytes);
  thread_local Deflater deflater;
  std::memcpy(out, kHeader.data(), kHeader.size());
  out = deflater.deflate_one(plain, level, out + kHeaderBytes, room - kHeaderBytes - kTrailerBytes);
  out = store_le32(out, crc32_of(plain.data(), plain.size()));
  return store_le32(out, static_cast<std::uint32_t>(plain.size()));
}

}  // namespace weir::log
