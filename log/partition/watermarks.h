#pragma once

#include <weir/runtime/file_system.h>
#include <weir/runtime/thread_annotations.h>
#include <weir/runtime/types.h>

#include <atomic>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace weir::log {

// What the holder of a directory publishes about one partition, in shared memory (DESIGN D4). A
// read-only process reads the log by it. One cache line, 64 bytes, host byte order:
//
//   0 topic id 16 bytes | 16 partition i32 | 20 state u32 (0 free, 1 used) | 24 log start i64
//  32 high watermark i64 | 40 last stable offset i64 | 48 reserved
struct alignas(64) WatermarkSlot {
  std::uint8_t topic_id[16];
  std::int32_t partition;
  std::atomic<std::uint32_t> state;
  std::atomic<std::int64_t> log_start;
  std::atomic<std::int64_t> high_watermark;
  std::atomic<std::int64_t> last_stable;

  void publish(Offset start, Offset high, Offset stable) noexcept {
    log_start.store(start.value(), std::memory_order_release);
    last_stable.store(stable.value(), std::memory_order_release);
    high_watermark.store(high.value(), std::memory_order_release);
  }
};
static_assert(sizeof(WatermarkSlot) == 64);

// The file `wal/watermarks`: a 64-byte header (magic "WEIRWM01"), then slots. Not
// durable and not needed for recovery: after a power cut its content is ignored.
//
// Threading: thread-safe.
// Bounds:    16,384 slots (1 MiB); beyond it a partition is not published and read-only
//            processes see it as of its last clean close.
class Watermarks {
 public:
  // The holder's side: all slots free. An old file is used again.
  static Result<std::unique_ptr<Watermarks>> create(FileSystem& files, const std::string& path);
  // A reader's side. Errors: kNotFound, kCorrupt.
  static Result<std::unique_ptr<Watermarks>> open(FileSystem& files, const std::string& path);

  // The holder's: a slot for a partition; null when all are used. Readers see it after the first
  // publish() and activate().
  WatermarkSlot* claim(const Uuid& topic_id, PartitionId partition);
  static void activate(WatermarkSlot* slot);
  void release(WatermarkSlot* slot);

  struct Published {
    Offset log_start;
    Offset high_watermark;
    Offset last_stable;
  };
  // A reader's; nullopt when the holder has not opened the partition.
  std::optional<Published> find(const Uuid& topic_id, PartitionId partition) const;

 private:
  explicit Watermarks(std::unique_ptr<SharedMapping> mapping) : mapping_(std::move(mapping)) {}
  WatermarkSlot* slots() const;

  std::unique_ptr<SharedMapping> mapping_;
  mutable Mutex mutex_;
  std::size_t used_ WEIR_GUARDED_BY(mutex_) = 0;  // the holder's: slots below were handed out
  std::vector<WatermarkSlot*> released_ WEIR_GUARDED_BY(mutex_);
};

}  // namespace weir::log
