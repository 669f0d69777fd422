#ifndef GANNET_COMMON_BASE_WORD_MUTEX_H_
#define GANNET_COMMON_BASE_WORD_MUTEX_H_

#include <atomic>
#include <cstdint>

#include "common/base/mutex.h"

namespace gannet {

// A mutex of one word for hot paths: taking it and giving it back, when nobody else wants it, are
// two inlined atomic instructions (std::mutex: 60 instructions in two library calls). Who has to
// wait spins a little and then sleeps in the kernel. Not fair, not recursive, no condition
// variables; elsewhere use Mutex.
class GANNET_THREAD_ANNOTATION(capability("mutex")) WordMutex {
 public:
  void Lock() GANNET_THREAD_ANNOTATION(acquire_capability()) {
    uint32_t free = kFree;
    // Acquire: what the last holder did is seen.
    if (!word_.compare_exchange_strong(free, kHeld, std::memory_order_acquire,
                                       std::memory_order_relaxed)) [[unlikely]] {
      LockSlowly();
    }
  }
  void Unlock() GANNET_THREAD_ANNOTATION(release_capability()) {
    // Release: what this holder did is seen by the next.
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
      // Relaxed when it fails: nothing was learnt. Acquire when it succeeds, as in Lock.
      if (word_.load(std::memory_order_relaxed) == kFree &&
          word_.compare_exchange_weak(free, kHeld, std::memory_order_acquire,
                                      std::memory_order_relaxed)) {
        return;
      }
    }
    // From here on whoever gives it back must wake somebody: this thread cannot tell whether it is
    // the last that waits, so it takes the mutex as contended too.
    while (word_.exchange(kContended, std::memory_order_acquire) != kFree) {
      word_.wait(kContended, std::memory_order_relaxed);
    }
  }

  std::atomic<uint32_t> word_{kFree};
};

}  // namespace gannet

#endif  // GANNET_COMMON_BASE_WORD_MUTEX_H_
