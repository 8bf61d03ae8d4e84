#pragma once

#include <weir/runtime/thread_annotations.h>

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <list>
#include <unordered_map>

namespace weir::log {

class Segment;

// What all segments of a directory share: descriptors, reserved space, memory for newest batches.
//
// Threading: thread-safe. Ownership: outlives its segments (they hold it).
class SegmentResources {
 public:
  struct Limits {
    std::size_t open_files_max = 1024;
    std::uint64_t unused_bytes_max = UINT64_MAX;  // reserved on disk and not written yet
    std::size_t tail_bytes_max = SIZE_MAX;        // of all tail caches together
  };
  explicit SegmentResources(Limits limits) : limits_(limits) {}

  // `segment` has opened its file. When there are too many, the one that was opened first is
  // closed; its segment opens it again when it needs it.
  void opened(Segment& segment);
  // Its file is closed, or it goes away.
  void closed(Segment& segment);
  std::size_t open_files() const;

  // Whether `bytes` more may lie reserved; counts them if so.
  bool take_unused(std::uint64_t bytes);
  void return_unused(std::uint64_t bytes) { unused_bytes_.fetch_sub(bytes); }

  // Counts a change of one tail cache's size. False when all together are too large: it is to be
  // emptied.
  bool count_tail(std::size_t before, std::size_t after);

 private:
  const Limits limits_;
  std::atomic<std::uint64_t> unused_bytes_{0};
  std::atomic<std::size_t> tail_bytes_{0};
  mutable Mutex mutex_;                               // taken before a segment's own
  std::list<Segment*> open_ WEIR_GUARDED_BY(mutex_);  // in the order of opening
  std::unordered_map<Segment*, std::list<Segment*>::iterator> places_ WEIR_GUARDED_BY(mutex_);
};

}  // namespace weir::log
