#include "tools/kvload/acknowledged_counter.h"

namespace gannet::kvload {

void AcknowledgedCounter::Acknowledge(uint64_t number) {
  MutexLock lock(mutex_);
  early_.insert(number);
  // Relaxed: it changes only under the mutex.
  uint64_t end = acknowledged_.load(std::memory_order_relaxed);
  while (!early_.empty() && *early_.begin() == end) {
    early_.erase(early_.begin());
    ++end;
  }
  acknowledged_.store(end, std::memory_order_release);
}

}  // namespace gannet::kvload
