#pragma once

#include <weir/log/consumer.h>
#include <weir/runtime/thread_annotations.h>

#include <deque>
#include <optional>
#include <thread>
#include <utility>
#include <vector>

namespace weir::log {

// Commits of one consumer, one after the other in the order of the calls, so that a later one is
// never overtaken. Asynchronous ones run on a thread of the queue, which is started by the first.
//
// Threading: the owner's calls are confined to one thread. The group is used by the queue's thread
//            only while idle() is false, so the owner may use it after drain().
// Ownership: `group` outlives the queue.
// Bounds:    kPendingMax unfinished asynchronous commits; then commit_async() waits for the oldest.
//            As many may wait for run_callbacks(), which the owner calls before each
//            commit_async().
class CommitQueue {
 public:
  static constexpr std::size_t kPendingMax = 1'000;

  explicit CommitQueue(Group& group) : group_(group) {}
  // Finishes what was begun; callbacks that did not run yet are dropped.
  ~CommitQueue();
  CommitQueue(const CommitQueue&) = delete;
  CommitQueue& operator=(const CommitQueue&) = delete;

  // Waits for the commits before it. Errors: those of Group::commit.
  Status commit(const ConsumerOffsets& offsets);
  void commit_async(ConsumerOffsets offsets, CommitCallback done);
  // No asynchronous commit is unfinished.
  bool idle();
  void drain();
  // Callbacks of finished commits, in order, on the caller's thread. They may commit; called by one
  // of them it does nothing.
  void run_callbacks();

 private:
  struct Job {
    ConsumerOffsets offsets;
    CommitCallback done;
    Status result;
  };
  Status commit_now(const ConsumerOffsets& offsets);
  std::optional<Job> next_finished();
  void run();

  Group& group_;
  Mutex mutex_;
  CondVar changed_;
  std::deque<Job> pending_ WEIR_GUARDED_BY(mutex_);  // the first may be under way
  std::deque<Job> finished_ WEIR_GUARDED_BY(mutex_);
  bool stopping_ WEIR_GUARDED_BY(mutex_) = false;
  bool in_callback_ = false;  // the owner's
  std::thread thread_;
};

}  // namespace weir::log
