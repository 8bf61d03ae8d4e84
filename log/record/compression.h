#pragma once

#include "log/record/batch_header.h"

namespace weir::log {

// Decompresses the records part of a batch. Framings as in reference K 3.4: gzip (concatenated
// members too), snappy (xerial stream, or one raw block as librdkafka writes), lz4 frame (block
// checksums checked, content checksum not, a second frame ignored), zstd frames.
// Whatever the input claims, no block is allocated that is larger than `bytes_max` plus a constant
// (while one grows, the former of at most half its size lives beside it), and none for more than
// the input's bytes can stand for.
// Errors: kCorrupt, kUnsupported (codec bits 5 to 7).
Result<SharedBytes> decompress(std::uint8_t codec_bits, ByteView compressed, std::size_t bytes_max);

}  // namespace weir::log
