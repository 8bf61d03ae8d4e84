#include "log/partition/disk_reserve.h"

#include <weir/runtime/logger.h>

#include <algorithm>

namespace weir::log {

bool DiskReserve::make() {
  const MutexLock lock(mutex_);
  if (bytes_ == 0 || stands_) {
    stands_ = true;
    return true;
  }
  const Result<DiskSpace> space = files_.disk_space(parent_path(path_));
  if (!space.ok()) {
    return false;
  }
  constexpr std::uint64_t kShare = 64;  // of a small disk
  const std::uint64_t bytes = std::min(bytes_, space->capacity_bytes / kShare);
  // An earlier process may have left it: its bytes are there.
  Result<std::shared_ptr<File>> file = files_.open(path_, OpenMode::kReadWrite);
  if (!file.ok()) {
    // Not with the last bytes: what gave it up may need some more.
    if (space->available_bytes < 2 * bytes) {
      return false;
    }
    file = files_.open(path_, OpenMode::kCreateNew);
  }
  if (!file.ok() || !(*file)->reserve(bytes).ok()) {
    files_.remove_file(path_).ignore("it is made when there is room for it");
    return false;
  }
  stands_.store(true, std::memory_order_release);
  return true;
}

bool DiskReserve::give_up() {
  const MutexLock lock(mutex_);
  if (bytes_ == 0 || !stands_) {
    return false;
  }
  stands_.store(false, std::memory_order_release);
  WEIR_WARN(
      "disk full: the reserve is given up for the log's own topics, users' appends are refused "
      "until there is room again path={}",
      path_);
  return files_.remove_file(path_).ok();
}

}  // namespace weir::log
