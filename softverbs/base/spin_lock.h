#ifndef SOFTVERBS_BASE_SPIN_LOCK_H_
#define SOFTVERBS_BASE_SPIN_LOCK_H_

#include <sched.h>

#include <atomic>

namespace softverbs {

// A small lock for short critical sections of the data path (BasicLockable). A waiter yields its
// core soon, because on a machine with few cores the holder may have been preempted.
class SpinLock {
 public:
  void lock() {
    if (!held_.exchange(true, std::memory_order_acquire)) return;
    LockSlow();
  }
  bool try_lock() {
    return !held_.load(std::memory_order_relaxed) &&
           !held_.exchange(true, std::memory_order_acquire);
  }
  // Release pairs with the acquire above: the next holder sees everything that was done under the
  // lock.
  void unlock() { held_.store(false, std::memory_order_release); }

 private:
  __attribute__((noinline)) void LockSlow() {
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
