#ifndef SOFTVERBS_BASE_SPIN_LOCK_H_
#define SOFTVERBS_BASE_SPIN_LOCK_H_

#include <sched.h>

#include <atomic>

#include "softverbs/base/thread_annotations.h"

namespace softverbs {

// A small lock for short critical sections of the data path (BasicLockable). A waiter yields its
// core soon, because on a machine with few cores the holder may have been preempted.
class SV_CAPABILITY SpinLock {
 public:
  void lock() SV_ACQUIRE() {
    if (!held_.exchange(true, std::memory_order_acquire)) return;
    LockSlow();
  }
  bool try_lock() SV_TRY_ACQUIRE(true) {
    return !held_.load(std::memory_order_relaxed) &&
           !held_.exchange(true, std::memory_order_acquire);
  }
  // Release pairs with the acquire above: the next holder sees everything that was done under the
  // lock.
  void unlock() SV_RELEASE() { held_.store(false, std::memory_order_release); }
  // For lambdas, which the compiler does not know to run under their caller's lock. Checks nothing.
  void AssertHeld() const SV_ASSERT_HELD() {}

 private:
  // The check does not know that the loop ends with the lock held.
  __attribute__((noinline)) void LockSlow() SV_UNCHECKED {
    for (int spins = 0; !try_lock(); ++spins) {
      if (spins < 64) {
        __builtin_ia32_pause();
      } else {
        sched_yield();
      }
    }
  }

  std::atomic<bool> held_{false};
};

}  // namespace softverbs

#endif  // SOFTVERBS_BASE_SPIN_LOCK_H_
