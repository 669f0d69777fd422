#ifndef GANNET_CLIENT_SESSION_FIXED_RING_H_
#define GANNET_CLIENT_SESSION_FIXED_RING_H_

#include <bit>
#include <cstdint>
#include <vector>

#include "common/base/check.h"
#include "common/base/data_path_checks.h"

namespace gannet {

// A first-in-first-out queue with a bound. Allocates only when it is made. One owner thread.
template <class T>
class FixedRing {
 public:
  explicit FixedRing(uint32_t capacity)
      : slots_(std::bit_ceil(capacity)), mask_(static_cast<uint32_t>(slots_.size()) - 1) {}

  bool empty() const { return head_ == tail_; }
  uint32_t size() const { return tail_ - head_; }
  // REQUIRES, for front and Pop: not empty.
  const T& front() const {
    GANNET_CHECK_DATA_PATH(!empty(), "nothing is in the queue");
    return slots_[head_ & mask_];
  }
  void Pop() {
    GANNET_CHECK_DATA_PATH(!empty(), "nothing is in the queue");
    ++head_;
  }
  // REQUIRES: not full. The callers' own limits see to that.
  void Push(const T& value) {
    GANNET_CHECK(size() <= mask_, "queue overrun");
    slots_[tail_++ & mask_] = value;
  }
  void Clear() { head_ = tail_; }

 private:
  std::vector<T> slots_;
  uint32_t mask_;
  uint32_t head_ = 0;
  uint32_t tail_ = 0;
};

}  // namespace gannet

#endif  // GANNET_CLIENT_SESSION_FIXED_RING_H_
