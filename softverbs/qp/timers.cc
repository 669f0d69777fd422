#include "softverbs/qp/timers.h"

#include <algorithm>

#include "softverbs/base/monotonic_clock.h"
#include "softverbs/base/mutex.h"
#include "softverbs/base/port_state.h"
#include "softverbs/nic/loop.h"
#include "softverbs/qp/path.h"
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
    const PacketEngine::Pause pause(nic->engine());
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

void LimitWaitForPort(Qp& qp) {
  const SendQueue& queue = qp.requester.queue;
  const bool waits = qp.state == IBV_QPS_RTS || qp.state == IBV_QPS_SQD;
  // A timeout of 0 waits for ever.
  if (!qp.IsReliable() || !waits || queue.Idle() || qp.attr.timeout == 0) return;
  const int64_t wait_ns = (qp.attr.retry_cnt + 1) * AckTimeoutNs(qp.attr.timeout);
  TransmitAfter(qp, wait_ns, [done = queue.done, epoch = qp.requester.epoch](Qp& later) {
    later.lock.AssertHeld();
    const bool same = later.requester.queue.done == done && later.requester.epoch == epoch;
    const bool waits = later.state == IBV_QPS_RTS || later.state == IBV_QPS_SQD;
    if (same && waits && !later.requester.queue.Idle() && IsPortDown(PathPort(later))) {
      if (MigrateFromDeadPath(later, /*last=*/true)) return true;
      FailOldest(later, IBV_WC_RETRY_EXC_ERR);
    }
    return false;
  });
}

namespace {

constexpr int kLooksAtSilence = 8;

// Returns how long to wait for an answer, or 0 for ever.
int64_t SilenceNs(const Qp& qp) SV_REQUIRES(qp.lock) {
  if (!qp.IsReliable() || qp.attr.timeout == 0) return 0;
  return std::max((qp.attr.retry_cnt + 1) * AckTimeoutNs(qp.attr.timeout), kSilenceNsMin);
}

Progress ProgressOf(Qp& qp) SV_REQUIRES(qp.lock) {
  SendQueue& queue = qp.requester.queue;
  const RemotePump* pump = qp.link->pump();
  return {.done = queue.done,
          .sent_bytes = qp.requester.sent_bytes,
          .received = queue.Idle() ? 0 : queue.At(queue.done).received,
          .acknowledged = pump == nullptr ? 0 : pump->AcknowledgedBytes()};
}

// Returns whether to look again later.
bool LookForProgress(Qp& qp) SV_REQUIRES(qp.lock) {
  Requester& requester = qp.requester;
  const int64_t silence_ns = SilenceNs(qp);
  const bool waits = qp.state == IBV_QPS_RTS || qp.state == IBV_QPS_SQD;
  if (!waits || silence_ns == 0 || requester.queue.Idle() || requester.peer_awaited) return false;
  const int64_t now = MonotonicNs();
  const Progress progress = ProgressOf(qp);
  if (progress != requester.progress || requester.backing_off) {
    requester.progress = progress;
    requester.progress_at = now - silence_ns / kLooksAtSilence;
  } else if (now - requester.progress_at >= silence_ns - silence_ns / kLooksAtSilence / 2) {
    HandleSilence(qp);
    return false;
  }
  return true;
}

void LookLater(Qp& qp) SV_REQUIRES(qp.lock) {
  TransmitAfter(qp, SilenceNs(qp) / kLooksAtSilence, [count = qp.requester.await_count](Qp& later) {
    later.lock.AssertHeld();
    Requester& requester = later.requester;
    if (!requester.awaits_answers || requester.await_count != count) return false;
    requester.awaits_answers = LookForProgress(later);
    if (requester.awaits_answers) LookLater(later);
    return false;
  });
}

}  // namespace

void LimitLife(Qp& qp) {
  const int64_t silence_ns = SilenceNs(qp);
  RemotePump* pump = qp.link->pump();
  if (silence_ns != 0 && pump != nullptr) pump->LimitLife(silence_ns / 4 * 3);
}

void AwaitAnswers(Qp& qp) {
  Requester& requester = qp.requester;
  if (requester.awaits_answers || requester.queue.Idle() || SilenceNs(qp) == 0) return;
  requester.awaits_answers = true;
  ++requester.await_count;
  requester.progress = ProgressOf(qp);
  requester.progress_at = MonotonicNs();
  LookLater(qp);
}

}  // namespace softverbs
