#pragma once

#include "log/record/output_buffer.h"

#include <weir/runtime/result.h>

namespace weir::log {

// Decompresses the first LZ4 frame of `frame` as Kafka's Lz4BlockInputStream does: independent
// blocks only, header and block checksums checked, the content checksum skipped, what stands behind
// the frame ignored. Errors: kCorrupt.
Status decompress_lz4_frame(ByteView frame, OutputBuffer& out);

// Writes one frame as Kafka's Lz4BlockOutputStream does for magic 2: independent blocks of 64 KiB
// without checksums, a block that does not shrink stored as it is. Returns the end. `level`: 9, the
// default, is the fast compressor, as in Kafka; every other one is the high compressor's, which
// knows 1 to 12 and takes more for 12.
// Requires: room for lz4_frame_bytes_max(plain.size()) at `out`.
char* compress_lz4_frame(ByteView plain, int level, char* out);
std::size_t lz4_frame_bytes_max(std::size_t plain_bytes);

namespace internal {
// XXH32 with seed 0: the checksum of LZ4 frames.
std::uint32_t xxh32(ByteView bytes);
}  // namespace internal

}  // namespace weir::log
