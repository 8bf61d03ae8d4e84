#pragma once

#include "log/record/output_buffer.h"

#include <weir/runtime/result.h>

namespace weir::log {

// Decompresses gzip members (RFC 1952) one after the other as java.util.zip.GZIPInputStream does:
// checksums and lengths checked, what stands behind the last member and is none ignored.
// Errors: kCorrupt; kInternal when zlib has no memory.
Status decompress_gzip(ByteView stream, OutputBuffer& out);

// Writes one member, as java.util.zip.GZIPOutputStream of a current JDK does (no time, no name, OS
// 255), and returns the end. `level`: 1 to 9, or -1 for zlib's own choice.
// Requires: room >= gzip_bytes_max(plain.size()), plain.size() < 2^32.
char* compress_gzip(ByteView plain, int level, char* out, std::size_t room);
std::size_t gzip_bytes_max(std::size_t plain_bytes);

}  // namespace weir::log
