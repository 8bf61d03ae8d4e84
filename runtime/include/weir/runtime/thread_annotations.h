#pragma once

#include <chrono>
#include <condition_variable>
#include <mutex>

// Clang's thread-safety analysis (preset `clang`); empty for g++.
#if defined(__clang__)
#define WEIR_TSA(x) __attribute__((x))
#else
#define WEIR_TSA(x)
#endif
#define WEIR_CAPABILITY(x) WEIR_TSA(capability(x))
#define WEIR_SCOPED_CAPABILITY WEIR_TSA(scoped_lockable)
#define WEIR_GUARDED_BY(x) WEIR_TSA(guarded_by(x))
#define WEIR_PT_GUARDED_BY(x) WEIR_TSA(pt_guarded_by(x))
#define WEIR_REQUIRES(...) WEIR_TSA(requires_capability(__VA_ARGS__))
#define WEIR_ACQUIRE(...) WEIR_TSA(acquire_capability(__VA_ARGS__))
#define WEIR_RELEASE(...) WEIR_TSA(release_capability(__VA_ARGS__))
#define WEIR_EXCLUDES(...) WEIR_TSA(locks_excluded(__VA_ARGS__))
#define WEIR_ASSERT_CAPABILITY(x) WEIR_TSA(assert_capability(x))
#define WEIR_NO_THREAD_SAFETY_ANALYSIS WEIR_TSA(no_thread_safety_analysis)

namespace weir {

// std::mutex that the analysis knows. No lock is held across a callback or user code.
class WEIR_CAPABILITY("mutex") Mutex {
 public:
  void lock() WEIR_ACQUIRE() { mutex_.lock(); }
  void unlock() WEIR_RELEASE() { mutex_.unlock(); }

 private:
  friend class CondVar;
  std::mutex mutex_;
};

class WEIR_SCOPED_CAPABILITY MutexLock {
 public:
  explicit MutexLock(Mutex& mutex) WEIR_ACQUIRE(mutex) : mutex_(mutex) { mutex_.lock(); }
  ~MutexLock() WEIR_RELEASE() { mutex_.unlock(); }
  MutexLock(const MutexLock&) = delete;
  MutexLock& operator=(const MutexLock&) = delete;

 private:
  Mutex& mutex_;
};

class CondVar {
 public:
  void notify_one() { condition_.notify_one(); }
  void notify_all() { condition_.notify_all(); }
  // May wake spuriously: call in a loop that tests the condition.
  void wait(Mutex& mutex) WEIR_REQUIRES(mutex) WEIR_NO_THREAD_SAFETY_ANALYSIS {
    std::unique_lock<std::mutex> lock(mutex.mutex_, std::adopt_lock);
    condition_.wait(lock);
    lock.release();
  }
  // False when `timeout` passed.
  bool wait_for(Mutex& mutex, std::chrono::nanoseconds timeout)
      WEIR_REQUIRES(mutex) WEIR_NO_THREAD_SAFETY_ANALYSIS {
    std::unique_lock<std::mutex> lock(mutex.mutex_, std::adopt_lock);
    const bool notified = condition_.wait_for(lock, timeout) == std::cv_status::no_timeout;
    lock.release();
    return notified;
  }

 private:
  std::condition_variable condition_;
};

}  // namespace weir
