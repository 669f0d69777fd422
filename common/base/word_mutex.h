#ifndef GANNET_COMMON_BASE_WORD_MUTEX_H_
#define GANNET_COMMON_BASE_WORD_MUTEX_H_

#include <atomic>
#include <cstdint>

#include "common/base/mutex.h"

namespace gannet {

// A mutex of one word for hot paths. To take and release it while nobody else wants it costs two
// inlined atomic instructions (std::mutex: 60 instructions in two library calls). A thread that has
// to wait spins a little and then sleeps in the kernel. Not fair, not recursive, no condition
// variables. Elsewhere use Mutex.
class GANNET_THREAD_ANNOTATION(capability("mutex")) WordMutex {
 public:
  void Lock() GANNET_THREAD_ANNOTATION(acquire_capability()) {
    uint32_t free = kFree;
    // Acquire: this holder sees what the last one did.
    if (!word_.compare_exchange_strong(free, kHeld, std::memory_order_acquire,
                                       std::memory_order_relaxed)) [[unlikely]] {
      LockSlowly();
    }
  }
  // Returns whether it was free, and is held now.
  bool TryLock() GANNET_THREAD_ANNOTATION(try_acquire_capability(true)) {
    uint32_t free = kFree;
    // As in Lock.
    return word_.compare_exchange_strong(free, kHeld, std::memory_order_acquire,
                                         std::memory_order_relaxed);
  }
  void Unlock() GANNET_THREAD_ANNOTATION(release_capability()) {
    // Release: the next holder sees what this one did.
    if (word_.exchange(kFree, std::memory_order_release) == kContended) [[unlikely]] {
      word_.notify_one();
    }
  }

 private:
  enum : uint32_t { kFree, kHeld, kContended };
  static constexpr int kSpins = 100;

  void LockSlowly() {
    for (int i = 0; i < kSpins; ++i) {
      uint32_t free = kFree;
      // Relaxed if it fails, because nothing was learnt. Acquire if it succeeds, as in Lock.
      if (word_.load(std::memory_order_relaxed) == kFree &&
          word_.compare_exchange_weak(free, kHeld, std::memory_order_acquire,
                                      std::memory_order_relaxed)) {
        return;
      }
    }
    // From here on, the thread that releases the mutex must wake another. This thread cannot tell
    // whether it is the last one that waits, so it takes the mutex as contended too.
    while (word_.exchange(kContended, std::memory_order_acquire) != kFree) {
      word_.wait(kContended, std::memory_order_relaxed);
    }
  }

  std::atomic<uint32_t> word_{kFree};
};

class GANNET_THREAD_ANNOTATION(scoped_lockable) WordMutexLock {
 public:
  explicit WordMutexLock(WordMutex& mutex) GANNET_THREAD_ANNOTATION(acquire_capability(mutex))
      : mutex_(mutex) {
    mutex_.Lock();
  }
  ~WordMutexLock() GANNET_THREAD_ANNOTATION(release_capability()) { mutex_.Unlock(); }
  WordMutexLock(const WordMutexLock&) = delete;
  WordMutexLock& operator=(const WordMutexLock&) = delete;

 private:
  WordMutex& mutex_;
};

}  // namespace gannet

#endif  // GANNET_COMMON_BASE_WORD_MUTEX_H_
