#ifndef GANNET_SERVER_MEMORY_HEAP_SINGLE_RUNS_H_
#define GANNET_SERVER_MEMORY_HEAP_SINGLE_RUNS_H_

#include <atomic>
#include <cstdint>
#include <unordered_set>

#include "common/base/mutex.h"

namespace gannet {

// The runs of a heap that are blocks of sealed items (Heap::Shrink), by their first units. There
// are few, because only a full heap makes any. While there are none, nothing takes a lock.
//
// Thread safety: any thread. Relaxed: whoever frees or moves an item holds the lock under which its
// block was made.
class SingleRuns {
 public:
  void Add(uint64_t first_unit) {
    MutexLock lock(mutex_);
    runs_.insert(first_unit);
    count_.fetch_add(1, std::memory_order_relaxed);
  }
  bool empty() const { return count_.load(std::memory_order_relaxed) == 0; }
  bool Contains(uint64_t first_unit) const {
    if (empty()) return false;
    MutexLock lock(mutex_);
    return runs_.contains(first_unit);
  }
  // Returns false if it is none.
  bool Remove(uint64_t first_unit) {
    MutexLock lock(mutex_);
    if (runs_.erase(first_unit) == 0) return false;
    count_.fetch_sub(1, std::memory_order_relaxed);
    return true;
  }

 private:
  std::atomic<uint64_t> count_{0};
  mutable Mutex mutex_;
  std::unordered_set<uint64_t> runs_ GANNET_GUARDED_BY(mutex_);
};

}  // namespace gannet

#endif  // GANNET_SERVER_MEMORY_HEAP_SINGLE_RUNS_H_
