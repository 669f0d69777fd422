#ifndef GANNET_TOOLS_KVLOAD_ACKNOWLEDGED_COUNTER_H_
#define GANNET_TOOLS_KVLOAD_ACKNOWLEDGED_COUNTER_H_

#include <atomic>
#include <cstdint>
#include <set>

#include "common/base/mutex.h"

namespace gannet::kvload {

// Numbers records while several threads insert. Readers must pick only records whose insert was
// acknowledged. Otherwise an honest miss would look like a lost record. Inserts may be acknowledged
// in any order, but acknowledged() covers only a prefix without gaps. Thread safe.
class AcknowledgedCounter {
 public:
  explicit AcknowledgedCounter(uint64_t first) : next_(first), acknowledged_(first) {}

  // Returns the number of the next record to insert.
  // Relaxed: nothing else is published with the number.
  uint64_t Take() { return next_.fetch_add(1, std::memory_order_relaxed); }
  void Acknowledge(uint64_t number) GANNET_EXCLUDES(mutex_);
  // Records [0, acknowledged()) exist.
  // Acquire: pairs with the release in Acknowledge, so a record's insert happens before a read of
  // it.
  uint64_t acknowledged() const { return acknowledged_.load(std::memory_order_acquire); }

 private:
  std::atomic<uint64_t> next_;
  std::atomic<uint64_t> acknowledged_;
  Mutex mutex_;
  std::set<uint64_t> early_ GANNET_GUARDED_BY(mutex_);  // acknowledged beyond a gap
};

}  // namespace gannet::kvload

#endif  // GANNET_TOOLS_KVLOAD_ACKNOWLEDGED_COUNTER_H_
