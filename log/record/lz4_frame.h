#pragma once

#include "log/record/output_buffer.h"

#include <weir/runtime/result.h>

namespace weir::log {

// Decompresses the first LZ4 frame of `frame` as Kafka's Lz4BlockInputStream does: independent
// blocks only, header and block checksums checked, the content checksum skipped, what stands behind
// the frame ignored. Errors: kCorrupt.
Status decompress_lz4_frame(ByteView frame, OutputBuffer& out);

namespace internal {
// XXH32 with seed 0: the checksum of LZ4 frames.
std::uint32_t xxh32(ByteView bytes);
}  // namespace internal

}  // namespace weir::log
