#pragma once

#include <weir/runtime/file_system.h>
#include <weir/runtime/thread_annotations.h>

#include <cstddef>
#include <deque>
#include <functional>
#include <thread>
#include <vector>

namespace weir::internal {

// Does what `request` asks for, on the caller's thread.
Status perform(const IoRequest& request);

// Threads that perform IoRequests, started by the first one.
//
// Threading: thread-safe. Requests start in the order of submit() and may finish in any.
// Bounds:    at most kQueueMax requests wait; submit() blocks while the queue is full. A
//            completion that submits is let through (one worker waiting for the other would never
//            end), so the queue may hold a few more.
class IoWorkers {
 public:
  static constexpr std::size_t kThreads = 2;
  static constexpr std::size_t kQueueMax = 1024;

  IoWorkers() = default;
  IoWorkers(const IoWorkers&) = delete;
  IoWorkers& operator=(const IoWorkers&) = delete;
  ~IoWorkers() { stop(); }

  void submit(IoRequest request, std::function<void(Status)> done) WEIR_EXCLUDES(mutex_);
  // Finishes what was submitted and ends the threads; later requests run on their caller's thread.
  void stop() WEIR_EXCLUDES(mutex_);

 private:
  struct Job {
    IoRequest request;
    std::function<void(Status)> done;
  };

  // Whether the job must be run by the caller.
  bool enqueue(Job& job) WEIR_EXCLUDES(mutex_);
  bool start_threads() WEIR_REQUIRES(mutex_);
  void run() WEIR_EXCLUDES(mutex_);
  static void complete(Job job);

  Mutex mutex_;
  CondVar not_empty_;
  CondVar not_full_;
  std::deque<Job> queue_ WEIR_GUARDED_BY(mutex_);
  std::vector<std::thread> threads_ WEIR_GUARDED_BY(mutex_);
  bool stopping_ WEIR_GUARDED_BY(mutex_) = false;
};

}  // namespace weir::internal
