#ifndef GANNET_CLIENT_SESSION_IN_FLIGHT_WORK_H_
#define GANNET_CLIENT_SESSION_IN_FLIGHT_WORK_H_

#include <algorithm>
#include <bit>
#include <cstdint>
#include <span>
#include <vector>

#include "common/base/check.h"
#include "common/base/data_path_checks.h"

namespace gannet {

// The work requests that were posted to one send queue and have not completed, in order. Those of a
// reliable connection complete in the order in which they were posted. So one signaled completion
// also completes every unsignaled work request before it. Only then their send queue entries are
// free again.
//
// One owner thread.
class InFlightWork {
 public:
  // kOwnRead: a READ that no operation made.
  enum class Kind : uint8_t { kRead, kCompareAndSwap, kMessage, kOwnRead };
  // A work request's kind and operation in one word. For a READ, which most are, it is just the
  // number of the operation.
  class Work {
   public:
    Work() = default;
    // REQUIRES: op is below 2^30.
    Work(uint32_t op, Kind kind) : word_(op | static_cast<uint32_t>(kind) << kKindShift) {
      GANNET_CHECK_DATA_PATH(op >> kKindShift == 0, "the number of an operation is too high");
    }
    Kind kind() const { return static_cast<Kind>(word_ >> kKindShift); }
    bool is_read() const { return word_ >> kKindShift == 0; }
    uint32_t op() const { return word_ << (32 - kKindShift) >> (32 - kKindShift); }

   private:
    static constexpr int kKindShift = 30;
    static_assert(static_cast<int>(Kind::kRead) == 0);
    uint32_t word_ = 0;
  };

  // REQUIRES: `capacity` is a power of two, since positions wrap at 2^32.
  explicit InFlightWork(uint32_t capacity) : works_(capacity), mask_(capacity - 1) {
    GANNET_CHECK(std::has_single_bit(capacity), "capacity of a send queue");
  }

  uint32_t room() const { return mask_ + 1 - in_flight(); }
  uint32_t in_flight() const { return tail_ - head_; }
  // The position of the next work request, and whether all before a position are done.
  uint32_t posted() const { return tail_; }
  bool IsDone(uint32_t position) const { return static_cast<int32_t>(head_ - position) >= 0; }

  // Returns whether a READ in flight waits for a message that was posted before it.
  bool HasReadBehindMessage() const {
    bool message = false;
    for (uint32_t position = head_; position != tail_; ++position) {
      const Work& work = works_[position & mask_];
      if (message && work.is_read()) return true;
      message |= work.kind() == Kind::kMessage;
    }
    return false;
  }

  // Returns whether anything but messages is in flight.
  bool HasOtherThanMessages() const {
    for (uint32_t position = head_; position != tail_; ++position) {
      if (works_[position & mask_].kind() != Kind::kMessage) return true;
    }
    return false;
  }
  // Returns how many READs there are up to `position`, of those in flight.
  uint32_t ReadsUpTo(uint32_t position) const {
    uint32_t reads = 0;
    if (position - head_ >= in_flight()) return 0;
    for (uint32_t at = head_; at != position + 1; ++at) reads += works_[at & mask_].is_read();
    return reads;
  }

  // Calls use(position, work) for each in flight, oldest first.
  template <class F>
  void ForEachInFlight(F use) const {
    for (uint32_t position = head_; position != tail_; ++position)
      use(position, works_[position & mask_]);
  }

  // Adds the next work request and returns its position, for the completion. REQUIRES: room() > 0.
  uint32_t Push(Work work) {
    GANNET_CHECK_DATA_PATH(room() > 0, "send queue overrun");
    works_[tail_ & mask_] = work;
    return tail_++;
  }

  // Takes note that the work request at `position` completed. Calls done(span of Work, signaled)
  // for it and all before it, oldest first, in one or two calls. `signaled` tells whether the
  // completion belongs to the last one of the span. `done` may call Push; the entries it is told of
  // are not free yet. Returns false if nothing is in flight at this position.
  template <class F>
  bool Complete(uint32_t position, F done) {
    const uint32_t n = position - head_ + 1;
    if (n - 1 >= in_flight()) return false;
    const uint32_t first = head_ & mask_;
    const uint32_t until_wrap = std::min(n, mask_ + 1 - first);
    done(std::span<const Work>(&works_[first], until_wrap), until_wrap == n);
    if (until_wrap < n) done(std::span<const Work>(works_.data(), n - until_wrap), true);
    head_ += n;
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
