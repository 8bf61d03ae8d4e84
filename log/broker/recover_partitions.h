#pragma once

#include "log/durability/unserved_batches.h"
#include "log/partition/partition.h"

#include <vector>

namespace weir::log {

struct RecoveredPartition {
  TopicPartition name;
  WatermarkSlot* slot = nullptr;
  Result<std::shared_ptr<Partition>> partition;
  UnservedBatches::Name id;
  std::vector<WalBatch> batches;  // of one that failed: what the write-ahead log has of it
};

// Opens (and so recovers) partitions in parallel, in a bulk job on all cores; one that fails does
// not keep the others from opening. Results in the order given. Blocks.
std::vector<RecoveredPartition> recover_partitions(const Partition::Environment& environment,
                                                   std::vector<Partition::OpenOptions> partitions);

}  // namespace weir::log
