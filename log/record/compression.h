#pragma once

#include "log/record/batch_header.h"

namespace weir::log {

// Decompresses the records part of a batch. Framings as in reference K 3.4: gzip (concatenated
// members too), snappy (xerial stream, or one raw block as librdkafka writes), lz4 frame (block
// checksums checked, content checksum not, a second frame ignored), zstd frames.
// The result stands behind `front_bytes` that are the caller's to write (a batch header).
// Whatever the input claims, no block is allocated that is larger than `bytes_max` plus a constant
// (while one grows, the former of at most half its size lives beside it), and none for more than
// the input's bytes can stand for.
// Errors: kCorrupt, kUnsupported (codec bits 5 to 7).
Result<SharedBytes> decompress(std::uint8_t codec_bits, ByteView compressed, std::size_t bytes_max,
                               std::size_t front_bytes = 0);

// The counterpart, in the framings that Kafka's Java writers choose: one gzip member, xerial snappy
// in chunks of 32 KiB, an lz4 frame of independent 64 KiB blocks without checksums, one zstd frame
// with its content size. The result may be larger than `plain`.
// Never fails: it aborts when memory is exhausted, as SharedBytes::allocate does.
// Cost: one pass straight into the result, no copy; states of zlib (270 KB), lz4 (16 or 260 KB) and
// zstd are kept per thread.
// Requires: plain.size() < 2^31.
SharedBytes compress(const Compression& compression, ByteView plain, std::size_t front_bytes = 0);

// Most bytes that compress() makes of `plain_bytes`.
std::size_t compressed_bytes_max(Codec codec, std::size_t plain_bytes);

// The batch with its records in another codec. Header and records are what they were, save codec,
// batchLength and CRC; the CRC is the caller's to stamp, since more may change.
// Requires: `header` is that of `batch`, whose length was checked.
// Errors: kCorrupt, kUnsupported: the batch's stream; kRecordTooLarge: over 2^31 - 1 bytes.
Result<SharedBytes> convert_batch(const BatchHeader& header, ByteView batch,
                                  const Compression& compression,
                                  std::size_t decompressed_bytes_max);

}  // namespace weir::log
