#include "log/broker/log_directory.h"

#include <utility>

namespace weir::log {
namespace {

PartitionRecovery recovery_of(const TopicPartition& name, const RecoveryReport& report) {
  PartitionRecovery recovery;
  recovery.name = name;
  recovery.scanned_bytes = report.scanned_bytes;
  recovery.cut_bytes = report.truncated_bytes;
  recovery.replayed_bytes = report.replayed_bytes;
  recovery.cut_from = report.truncated_from;
  recovery.segments_removed = report.segments_removed;
  recovery.indexes_rebuilt = report.indexes_rebuilt;
  recovery.reason = report.reason;
  recovery.damaged = report.damaged;
  return recovery;
}

}  // namespace

RecoveryResult LogDirectory::recovery() const {
  RecoveryResult result;
  result.was_clean = clean_;
  if (clean_ || options_.read_only) {
    return result;
  }
  result.partitions.push_back(recovery_of(metadata_->options().name, metadata_->recovery()));
  const MutexLock lock(state_mutex_);
  for (const auto& [name, opened] : opened_) {
    if (opened.partition) {
      result.partitions.push_back(recovery_of(name, opened.partition->recovery()));
    } else {
      PartitionRecovery failed;
      failed.name = name;
      failed.failure = opened.failure;
      result.partitions.push_back(std::move(failed));
    }
  }
  return result;
}

}  // namespace weir::log
