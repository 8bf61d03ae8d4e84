#pragma once

#include <weir/runtime/file_system.h>
#include <weir/runtime/thread_annotations.h>

#include <atomic>
#include <cstdint>
#include <string>

namespace weir::log {

// A file whose only use is the space it takes. On a full disk it is given up, and then the log's
// own topics (committed offsets, deletions of topics) and its checkpoints still find room, while
// appends of users' topics are refused until there is space for it again.
//
// Threading: thread-safe.
class DiskReserve {
 public:
  // At most a 64th of the disk. `bytes` 0: there is none, it always stands.
  DiskReserve(FileSystem& files, std::string path, std::uint64_t bytes)
      : files_(files), path_(std::move(path)), bytes_(bytes) {}

  // Whether it stands, or could be made again now.
  bool stands() { return stands_.load(std::memory_order_acquire) || make(); }
  // Gives the space to whoever comes first. False when it was given up before.
  bool give_up();

 private:
  bool make();

  FileSystem& files_;
  const std::string path_;
  const std::uint64_t bytes_;
  std::atomic<bool> stands_{false};
  Mutex mutex_;  // held across the making and the removal
};

}  // namespace weir::log
