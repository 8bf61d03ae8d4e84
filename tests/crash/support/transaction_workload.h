#pragma once

#include <weir/log/embedded_log.h>

#include <fmt/core.h>

#include <string>
#include <vector>

// What the process that is killed and the test that checks it have in common.
namespace weir::crash {

inline constexpr const char* kLines = "lines";    // transactions
inline constexpr const char* kTable = "table";    // compacted
inline constexpr const char* kWindow = "window";  // retention.bytes
inline constexpr const char* kReaders = "readers";
inline constexpr int kLinesPartitions = 3;
inline constexpr int kTransactionalIds = 2;
inline constexpr int kWindowBytes = 4000;

inline std::string transactional_id(int id) {
  return fmt::format("tx-{}", id);
}

inline std::vector<TopicSpec> workload_topics() {
  return {{kLines, kLinesPartitions, {{"segment.bytes", "4000"}, {"retention.ms", "-1"}}},
          {"input", 1, {}},
          {kTable,
           1,
           {{"cleanup.policy", "compact"},
            {"segment.bytes", "1500"},
            {"min.cleanable.dirty.ratio", "0.01"},
            {"delete.retention.ms", "20"}}},
          {kWindow,
           1,
           {{"segment.bytes", "1000"},
            {"retention.ms", "-1"},
            {"retention.bytes", std::to_string(kWindowBytes)}}}};
}

// Small, so that checkpoints, compaction and retention come within a run.
inline log::EmbeddedLogOptions workload_options() {
  log::EmbeddedLogOptions options;
  options.offsets_partitions = 2;
  options.transaction_partitions = 2;
  options.wal_file_bytes_min = 16U << 10U;
  options.wal_file_bytes_max = 128U << 10U;
  options.wal_bytes_max = 512U << 10U;
  options.metadata_snapshot_bytes = 300;
  options.initial_task_delay_ms = 5;
  options.retention_check_interval_ms = 20;
  options.cleaner_backoff_ms = 10;
  return options;
}

}  // namespace weir::crash
