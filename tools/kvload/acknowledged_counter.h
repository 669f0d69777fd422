#ifndef GANNET_TOOLS_KVLOAD_ACKNOWLEDGED_COUNTER_H_
#define GANNET_TOOLS_KVLOAD_ACKNOWLEDGED_COUNTER_H_

#include <atomic>
#include <cstdint>
#include <set>

#include "common/base/mutex.h"

namespace gannet::kvload {

// Numbers of records while several threads insert: readers must only pick records whose insert was
// acknowledged, or an honest miss would look like a lost record. Inserts are acknowledged in any
// order; `acknowledged()` grows only over a gapless prefix. Thread safe.
class AcknowledgedCounter {
 public:
  explicit AcknowledgedCounter(uint64_t first) : next_(first), acknowledged_(first) {}

  // The number of a record to insert.
  // Relaxed: the number is all that is handed out, nothing is published with it.
  uint64_t Take() { return next_.fetch_add(1, std::memory_order_relaxed); }
  void Acknowledge(uint64_t number) GANNET_EXCLUDES(mutex_);
  // Records [0, acknowledged()) are there.
  // Acquire: pairs with the release in Acknowledge, so the insert happens before a read of it.
  uint64_t acknowledged() const { return acknowledged_.load(std::memory_order_acquire); }

 private:
  std::atomic<uint64_t> next_;
  std::atomic<uint64_t> acknowledged_;
  Mutex mutex_;
  std::set<uint64_t> early_ GANNET_GUARDED_BY(mutex_);  // acknowledged beyond a gap
};

}  // namespace gannet::kvload

#endif  // GANNET_TOOLS_KVLOAD_ACKNOWLEDGED_COUNTER_H_
