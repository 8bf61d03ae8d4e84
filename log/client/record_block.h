#pragma once

#include "log/partition/partition.h"

namespace weir::log {

// The records of a batch at or behind `from`, as a block without its assignment and high
// watermarks. A control batch gives no records; next_offset is behind it all the same. The block
// owns what it shows: the batch's buffer, which is taken, or the decompressed bytes. Errors: those
// of decode_records().
Result<RecordBlock> decode_block(FetchedBatch& batch, Offset from);
// The same of a batch whose transaction was aborted: no records.
RecordBlock block_without_records(const FetchedBatch& batch);

}  // namespace weir::log
