#pragma once

#include "log/partition/producer_state.h"

#include <weir/runtime/file_system.h>
#include <weir/runtime/types.h>

#include <map>
#include <string>
#include <utility>

namespace weir::log {

// `wal/producers` (docs/formats/producers.md): the producers of every partition that has some, with
// all of their last batches, as of a moment when all before it was flushed. Replaced whole.
using ProducersOfPartitions = std::map<std::pair<Uuid, PartitionId>, ProducersAt>;

std::string encode_producers_file(const ProducersOfPartitions& partitions);
// Errors: kCorrupt.
Result<ProducersOfPartitions> parse_producers_file(ByteView file);
// An absent file is empty. Errors: kCorrupt, kIo.
Result<ProducersOfPartitions> read_producers_file(FileSystem& files, const std::string& path);

}  // namespace weir::log
