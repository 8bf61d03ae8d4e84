#include "log/client/commit_queue.h"

namespace weir::log {

CommitQueue::~CommitQueue() {
  {
    const MutexLock lock(mutex_);
    stopping_ = true;
    changed_.notify_all();
  }
  if (thread_.joinable()) {
    thread_.join();
  }
}

Status CommitQueue::commit_now(const ConsumerOffsets& offsets) {
  const std::vector<std::pair<TopicPartition, CommittedOffset>> list(offsets.begin(),
                                                                     offsets.end());
  return list.empty() ? Status() : group_.commit(list);
}

Status CommitQueue::commit(const ConsumerOffsets& offsets) {
  drain();
  return commit_now(offsets);
}

void CommitQueue::commit_async(ConsumerOffsets offsets, CommitCallback done) {
  const MutexLock lock(mutex_);
  while (pending_.size() >= kPendingMax) {
    changed_.wait(mutex_);
  }
  pending_.push_back({std::move(offsets), std::move(done), {}});
  changed_.notify_all();
  if (!thread_.joinable()) {
    thread_ = std::thread([this] { run(); });
  }
}

bool CommitQueue::idle() {
  const MutexLock lock(mutex_);
  return pending_.empty();
}

void CommitQueue::drain() {
  const MutexLock lock(mutex_);
  while (!pending_.empty()) {
    changed_.wait(mutex_);
  }
}

void CommitQueue::run_callbacks() {
  if (in_callback_) {
    return;
  }
  in_callback_ = true;
  while (std::optional<Job> job = next_finished()) {
    job->done(job->offsets, job->result);
  }
  in_callback_ = false;
}

std::optional<CommitQueue::Job> CommitQueue::next_finished() {
  const MutexLock lock(mutex_);
  if (finished_.empty()) {
    return std::nullopt;
  }
  Job job = std::move(finished_.front());
  finished_.pop_front();
  return job;
}

void CommitQueue::run() {
  for (;;) {
    ConsumerOffsets offsets;
    {
      const MutexLock lock(mutex_);
      while (pending_.empty() && !stopping_) {
        changed_.wait(mutex_);
      }
      if (pending_.empty()) {
        return;
      }
      offsets = pending_.front().offsets;
    }
    Status result = commit_now(offsets);
    const MutexLock lock(mutex_);
    pending_.front().result = std::move(result);
    if (pending_.front().done) {
      finished_.push_back(std::move(pending_.front()));
    }
    pending_.pop_front();
    changed_.notify_all();
  }
}

}  // namespace weir::log
