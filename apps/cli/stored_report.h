#pragma once

#include <weir/log/stored_log.h>

#include <cstdint>
#include <string>
#include <vector>

namespace weir::cli {

struct StoredLosses {
  std::uint64_t ranges = 0;   // damaged or missing
  std::uint64_t offsets = 0;  // in them
};

// Says on stderr what is odd about the folder and, a line each, what these partitions of it lost.
// Reads them through if that was not done yet. `quiet`: losses only.
Result<StoredLosses> report_stored(const char* program, log::StoredLog& stored,
                                   const std::vector<TopicPartition>& partitions, bool quiet);

}  // namespace weir::cli
