#ifndef SOFTVERBS_NIC_OBJECT_COUNT_H_
#define SOFTVERBS_NIC_OBJECT_COUNT_H_

#include <atomic>
#include <cstdint>

#include "softverbs/base/log.h"
#include "softverbs/base/verbs_limits.h"

namespace softverbs {

// Counts the process's objects of one kind, against the limit that query_device reports. Thread
// safe. Relaxed: only the number matters.
class ObjectCount {
 public:
  // `kind` names the objects in the message.
  explicit ObjectCount(const char* kind) : kind_(kind) {}

  // Counts a new object. Returns false if the limit is reached.
  bool Take() {
    if (count_.fetch_add(1, std::memory_order_relaxed) < kMaxObjects) return true;
    count_.fetch_sub(1, std::memory_order_relaxed);
    Report("no more than %u %s", kMaxObjects, kind_);
    return false;
  }
  void Return() { count_.fetch_sub(1, std::memory_order_relaxed); }

 private:
  const char* const kind_;
  std::atomic<uint32_t> count_{0};
};

}  // namespace softverbs

#endif  // SOFTVERBS_NIC_OBJECT_COUNT_H_
