#pragma once

#include "log/partition/partition.h"

#include <functional>

namespace weir::log {

// Reads a partition from `from` to its high watermark and hands over its data records in order
// (control batches are passed over); for the log's own topics. Batches from disk are checked by
// CRC. Returns: the position behind what was read. Errors:  those of Partition::read(), kCorrupt,
// and the first of `record`.
Result<Offset> replay_records(Partition& partition, Offset from,
                              const std::function<Status(const RecordView&)>& record);
// The same with the header of each record's batch, and with control records.
Result<Offset> replay_batches(
    Partition& partition, Offset from,
    const std::function<Status(const BatchHeader&, const RecordView&)>& record);

}  // namespace weir::log
