#pragma once

#include "log/partition/partition.h"

#include <memory>

namespace weir::log {

// Registers a notifier with a partition for as long as it lives.
// Threading: confined to its owner.
class WatermarkWaiter {
 public:
  WatermarkWaiter(std::shared_ptr<Partition> partition, std::shared_ptr<Notifier> notifier);
  ~WatermarkWaiter();
  WatermarkWaiter(const WatermarkWaiter&) = delete;
  WatermarkWaiter& operator=(const WatermarkWaiter&) = delete;

 private:
  std::shared_ptr<Partition> partition_;
  std::shared_ptr<Notifier> notifier_;
};

// Blocks until everything below `end` is below the high watermark.
// Errors: the partition's own (kIo after a failed sync, kClosed), kTimedOut: the outcome is
// unknown.
Status await_high_watermark(const std::shared_ptr<Partition>& partition, Offset end,
                            Duration timeout);

}  // namespace weir::log
