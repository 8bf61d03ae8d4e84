#pragma once

#include "log/record/output_buffer.h"

#include <weir/runtime/result.h>

namespace weir::log {

// Decompresses gzip members (RFC 1952) one after the other as java.util.zip.GZIPInputStream does:
// checksums and lengths checked, what stands behind the last member and is none ignored.
// Errors: kCorrupt; kInternal when zlib has no memory.
Status decompress_gzip(ByteView stream, OutputBuffer& out);

}  // namespace weir::log
