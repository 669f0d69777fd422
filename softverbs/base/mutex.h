#ifndef SOFTVERBS_BASE_MUTEX_H_
#define SOFTVERBS_BASE_MUTEX_H_

#include <condition_variable>
#include <mutex>

#include "softverbs/base/thread_annotations.h"

namespace softverbs {

// A std::mutex that the compiler can check (thread_annotations.h).
class SV_CAPABILITY Mutex {
 public:
  void lock() SV_ACQUIRE() { mutex_.lock(); }
  bool try_lock() SV_TRY_ACQUIRE(true) { return mutex_.try_lock(); }
  void unlock() SV_RELEASE() { mutex_.unlock(); }
  // For lambdas, which the compiler does not know to run under their caller's lock. Checks nothing.
  void AssertHeld() const SV_ASSERT_HELD() {}

 private:
  friend class Condition;
  std::mutex mutex_;
};

// A std::condition_variable for such a mutex.
class Condition {
 public:
  // Releases the mutex, waits, and takes it again. May return without a notification.
  void Wait(Mutex& mutex) SV_REQUIRES(mutex) {
    std::unique_lock<std::mutex> lock(mutex.mutex_, std::adopt_lock);
    condition_.wait(lock);
    lock.release();
  }
  void NotifyAll() { condition_.notify_all(); }

 private:
  std::condition_variable condition_;
};

// Holds a lock (Mutex, SpinLock) for as long as it lives.
template <class Lock>
class SV_SCOPED_CAPABILITY LockGuard {
 public:
  explicit LockGuard(Lock& lock) SV_ACQUIRE(lock) : lock_(lock) { lock_.lock(); }
  ~LockGuard() SV_RELEASE() { lock_.unlock(); }
  LockGuard(const LockGuard&) = delete;
  LockGuard& operator=(const LockGuard&) = delete;

 private:
  Lock& lock_;
};

}  // namespace softverbs

#endif  // SOFTVERBS_BASE_MUTEX_H_
