#include "softverbs/qp/timers.h"

#include <algorithm>
#include <mutex>

#include "softverbs/base/clock.h"
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

void ResumeAfter(Qp& qp, int64_t wait_ns) {
  const uint32_t count = ++qp.requester.back_off_count;
  Nic* nic = qp.nic;
  // By number: the queue pair may be gone when the timer runs, and is looked up while nothing can
  // be destroyed. The timer is never cancelled, which could not be waited for under these locks.
  Loop::Get().RunAt(MonotonicNs() + wait_ns, [nic, number = qp.number, count] {
    const Engine::Pause pause(nic->engine());
    Qp* qp = nic->qps().Find(number);
    if (qp == nullptr) return;
    const std::lock_guard<SpinLock> guard(qp->lock);
    if (!qp->requester.backing_off || qp->requester.back_off_count != count) return;
    qp->requester.backing_off = false;
    Transmit(*qp);
  });
}

}  // namespace softverbs
