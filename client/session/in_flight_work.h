#ifndef GANNET_CLIENT_SESSION_IN_FLIGHT_WORK_H_
#define GANNET_CLIENT_SESSION_IN_FLIGHT_WORK_H_

#include <bit>
#include <cstdint>
#include <vector>

#include "common/base/check.h"

namespace gannet {

// What was posted to one queue pair's send queue and has not completed, in order. Work requests of
// a reliable connection complete in the order in which they were posted, so one signaled completion
// finishes every unsignaled one before it. A send queue slot is free again only then, which is why
// every kSignalEvery-th work request and the last of each chain is signaled.
//
// One owner thread.
class InFlightWork {
 public:
  static constexpr uint32_t kSignalEvery = 8;

  enum class Kind : uint8_t { kRead, kCompareAndSwap, kMessage };
  struct Work {
    uint32_t op;
    Kind kind;
  };

  // REQUIRES: `capacity` is a power of two, since positions wrap at 2^32.
  explicit InFlightWork(uint32_t capacity) : works_(capacity), mask_(capacity - 1) {
    GANNET_CHECK(std::has_single_bit(capacity), "capacity of a send queue");
  }

  uint32_t room() const { return static_cast<uint32_t>(works_.size()) - in_flight(); }
  uint32_t in_flight() const { return tail_ - head_; }

  // Adds the next work request and returns its position, for the completion. `signal`: whether it
  // must be signaled although it is not the last of its chain. REQUIRES: room() > 0.
  uint32_t Push(Work work, bool* signal) {
    GANNET_CHECK(room() > 0, "send queue overrun");
    works_[tail_ & mask_] = work;
    *signal = tail_ % kSignalEvery == kSignalEvery - 1;
    return tail_++;
  }

  // The completion of the work request at `position`: calls done(Work, bool signaled) for it and
  // all before it, oldest first. False: no such position, a completion that is not ours.
  template <class F>
  bool Complete(uint32_t position, F done) {
    if (position - head_ >= in_flight()) return false;
    while (head_ != position + 1) {
      const Work work = works_[head_ & mask_];
      const bool last = head_++ == position;
      done(work, last);
    }
    return true;
  }

 private:
  std::vector<Work> works_;
  uint32_t mask_;
  uint32_t head_ = 0;  // oldest in flight
  uint32_t tail_ = 0;  // next to be pushed
};

}  // namespace gannet

#endif  // GANNET_CLIENT_SESSION_IN_FLIGHT_WORK_H_
