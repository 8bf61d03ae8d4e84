#include "log/broker/recover_partitions.h"

#include <oneapi/tbb/parallel_for.h>

namespace weir::log {

std::vector<RecoveredPartition> recover_partitions(const Partition::Environment& environment,
                                                   std::vector<Partition::OpenOptions> partitions) {
  std::vector<RecoveredPartition> results;
  results.reserve(partitions.size());
  for (const Partition::OpenOptions& options : partitions) {
    results.push_back({options.name,
                       options.watermark,
                       Error(Errc::kInternal, "not opened"),
                       {options.topic_id, options.name.partition},
                       options.wal_tail ? options.wal_tail->batches : std::vector<WalBatch>()});
  }
  oneapi::tbb::parallel_for(std::size_t{0}, partitions.size(), [&](std::size_t i) {
    Result<std::shared_ptr<Partition>> opened =
        Partition::open(environment, std::move(partitions[i]));
    if (opened.ok()) {
      results[i].partition = std::move(opened);
      results[i].batches.clear();
    } else {
      results[i].partition = std::move(opened).error().with_context(results[i].name.to_string());
    }
  });
  return results;
}

}  // namespace weir::log
