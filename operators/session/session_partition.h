#pragma once

#include "operators/task/task.h"

#include <weir/runtime/backend.h>
#include <weir/runtime/thread_annotations.h>

#include <atomic>
#include <cstdint>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

namespace weir::internal {

// What a worker needs of a partition between its assignment and its release.
//
// Threading: made and restored on the polling thread, then its worker's (SessionDispatch::kLocal);
//            without state any worker's.
struct SessionPartition {
  TopicPartition source;
  Uuid source_id;
  TaskStore state;                    // no store: has_state is false
  bool has_changelog_handle = false;  // state.changelog_topic is of the worker's sink
  bool in_flush = false;
  // Set by the polling thread when it is given up: what still runs changes nothing durable.
  std::atomic<bool> is_retired{false};
};

// Partitions by number. Threading: thread-safe. Shared ownership: a handler that outlives the
// hand-over still has its store.
class SessionPartitions {
 public:
  void set(std::uint32_t number, std::shared_ptr<SessionPartition> partition) {
    const MutexLock lock(mutex_);
    if (number >= partitions_.size()) {
      partitions_.resize(number + 1);
    }
    partitions_[number] = std::move(partition);
  }
  std::shared_ptr<SessionPartition> get(std::uint32_t number) const {
    const MutexLock lock(mutex_);
    return number < partitions_.size() ? partitions_[number] : nullptr;
  }
  // What is still held of it is retired; its name stays, for letters that are on their way.
  void retire(std::uint32_t number) {
    const MutexLock lock(mutex_);
    if (number < partitions_.size() && partitions_[number] != nullptr) {
      auto name = std::make_shared<SessionPartition>();
      name->source = partitions_[number]->source;
      name->source_id = partitions_[number]->source_id;
      name->is_retired.store(true, std::memory_order_release);
      std::exchange(partitions_[number], std::move(name))
          ->is_retired.store(true, std::memory_order_release);
    }
  }

 private:
  mutable Mutex mutex_;
  std::vector<std::shared_ptr<SessionPartition>> partitions_ WEIR_GUARDED_BY(mutex_);
};

}  // namespace weir::internal
