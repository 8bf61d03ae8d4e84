#include "runtime/io/io_workers.h"

#include <system_error>
#include <utility>

namespace weir::internal {
namespace {

thread_local bool is_worker = false;

}  // namespace

Status perform(const IoRequest& request) {
  WEIR_ASSERT(request.file != nullptr);
  if (request.kind == IoRequest::Kind::kSync) {
    return request.file->sync();
  }
  const bool all = request.bytes.bytes.data() == nullptr;
  return request.file->write_at(request.position,
                                all ? request.bytes.owner.view() : request.bytes.bytes);
}

void IoWorkers::submit(IoRequest request, std::function<void(Status)> done) {
  Job job{std::move(request), std::move(done)};
  if (!enqueue(job)) {
    complete(std::move(job));
  }
}

bool IoWorkers::enqueue(Job& job) {
  const MutexLock lock(mutex_);
  while (!stopping_ && !is_worker && queue_.size() >= kQueueMax) {
    not_full_.wait(mutex_);
  }
  if (stopping_ || (threads_.empty() && !start_threads())) {
    return false;
  }
  queue_.push_back(std::move(job));
  not_empty_.notify_one();
  return true;
}

// A machine that gives no thread still gets its I/O done, by one thread or by the caller.
bool IoWorkers::start_threads() {
  try {
    while (threads_.size() < kThreads) {
      threads_.emplace_back([this] { run(); });
    }
  } catch (const std::system_error&) {
    return !threads_.empty();
  }
  return true;
}

void IoWorkers::run() {
  is_worker = true;
  for (;;) {
    Job job;
    {
      const MutexLock lock(mutex_);
      while (queue_.empty() && !stopping_) {
        not_empty_.wait(mutex_);
      }
      if (queue_.empty()) {
        return;
      }
      job = std::move(queue_.front());
      queue_.pop_front();
      not_full_.notify_one();
    }
    complete(std::move(job));
  }
}

void IoWorkers::complete(Job job) {
  Status status = perform(job.request);
  job.request = IoRequest();  // the buffer goes back before user code runs
  if (job.done) {
    job.done(std::move(status));
  }
}

void IoWorkers::stop() {
  std::vector<std::thread> threads;
  {
    const MutexLock lock(mutex_);
    stopping_ = true;
    threads.swap(threads_);
    not_empty_.notify_all();
    not_full_.notify_all();
  }
  for (std::thread& thread : threads) {
    thread.join();
  }
}

}  // namespace weir::internal
