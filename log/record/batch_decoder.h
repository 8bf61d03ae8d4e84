#pragma once

#include "log/record/batch_header.h"

#include <weir/runtime/record.h>

#include <cstdint>
#include <vector>

namespace weir::log {

struct DecodeLimits {
  // Largest uncompressed size of one batch: a bound for hostile input.
  std::size_t decompressed_bytes_max = 256U << 20U;
};

// Appends the records of one verified batch to `out`, as views into `batch` or, for a compressed
// one, into `decompressed`, which is replaced in every call (by none when the batch is not
// compressed) and must be kept as long as the views. Reads exactly recordsCount records, as Kafka's
// reader does; with LogAppendTime every record has the batch's maxTimestamp.
// Works for control batches too: the caller asks header.is_control().
// Errors: kCorrupt (names the batch's base offset and what is wrong), kUnsupported (unknown codec);
//         `out` is then as it was.
Status decode_records(const BatchHeader& header, ByteView batch, const DecodeLimits& limits,
                      RecordViews& out, SharedBytes& decompressed);

}  // namespace weir::log
