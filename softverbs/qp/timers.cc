#include "softverbs/qp/timers.h"

#include <algorithm>

#include "softverbs/base/clock.h"
#include "softverbs/base/mutex.h"
#include "softverbs/nic/loop.h"
#include "softverbs/qp/requester.h"

namespace softverbs {

int64_t RnrTimerNs(uint32_t code) {
  static constexpr int64_t kHundredthsOfMs[32] = {
      65536, 1,    2,    3,    4,    6,     8,     12,    16,    24,   32,
      48,    64,   96,   128,  192,  256,   384,   512,   768,   1024, 1536,
      2048,  3072, 4096, 6144, 8192, 12288, 16384, 24576, 32768, 49152};
  return kHundredthsOfMs[code & 31] * 10'000;
}

int64_t AckTimeoutNs(uint32_t code) { return int64_t{4096} << std::min(code & 31, 24u); }

namespace {

// Runs `resume(qp)` later, and then transmits, unless `resume` says that the wait is over already.
// Finds the queue pair by its number, while nothing can be destroyed, because it may be gone when
// the timer runs. The timer is never cancelled: under these locks nobody could wait for that.
template <class Resume>
void TransmitAfter(Qp& qp, int64_t wait_ns, Resume resume) {
  Loop::Get().RunAt(MonotonicNs() + wait_ns, [nic = qp.nic, number = qp.number, resume] {
    const Engine::Pause pause(nic->engine());
    Qp* qp = nic->qps().Find(number);
    if (qp == nullptr) return;
    const LockGuard guard(qp->lock);
    if (resume(*qp)) Transmit(*qp);
  });
}

}  // namespace

void ResumeAfter(Qp& qp, int64_t wait_ns) {
  const uint32_t count = ++qp.requester.back_off_count;
  TransmitAfter(qp, wait_ns, [count](Qp& later) {
    later.lock.AssertHeld();
    Requester& requester = later.requester;
    if (!requester.backing_off || requester.back_off_count != count) return false;
    requester.backing_off = false;
    return true;
  });
}

void HoldBack(Qp& qp, int64_t wait_ns) {
  Requester& requester = qp.requester;
  if (requester.held_back) return;
  requester.held_back = true;
  const uint32_t count = ++requester.hold_count;
  TransmitAfter(qp, wait_ns, [count, place = requester.queue.next](Qp& later) {
    later.lock.AssertHeld();
    Requester& requester = later.requester;
    if (!requester.held_back || requester.hold_count != count) return false;
    requester.held_back = false;
    requester.queue.At(place).faults.delay_ns = 0;
    return true;
  });
}

}  // namespace softverbs
