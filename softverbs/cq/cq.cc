#include "softverbs/cq/cq.h"

#include <bit>
#include <new>
#include <utility>

#include "softverbs/base/log.h"
#include "softverbs/base/mutex.h"
#include "softverbs/base/stats.h"

namespace softverbs {
namespace {

void RaiseOverrun(Cq& cq) {
  Report("CQ %p overrun: it has %d places, and what finds none is lost",
         static_cast<void*>(cq.ibv()), cq.ibv()->cqe);
  ibv_async_event event{};
  event.element.cq = cq.ibv();
  event.event_type = IBV_EVENT_CQ_ERR;
  cq.async_events_pushed.fetch_add(1, std::memory_order_relaxed);
  cq.context->async_events.Push(event);
}

// IBTA: a queue armed for solicited events reports receives whose sender asked for an event, and
// all unsuccessful completions.
bool IsDue(Cq& cq, const Cqe& cqe) SV_REQUIRES(cq.lock) {
  if (cq.armed == Cq::Armed::kNo || cq.channel == nullptr) return false;
  return cq.armed == Cq::Armed::kAny || cqe.solicited || cqe.status != IBV_WC_SUCCESS;
}

// Removes and returns the oldest completion. It stays readable until the lock is released.
// REQUIRES: lock held, the CQ is not empty.
const Cqe& TakeLocked(Cq& cq) SV_REQUIRES(cq.lock) {
  const Cqe& cqe = cq.ring[cq.head++ & cq.mask];
  // Release pairs with the acquire in post_send: nobody reads the place any more.
  if (cqe.sq_freed != nullptr) cqe.sq_freed->store(cqe.sq_free_to, std::memory_order_release);
  return cqe;
}

bool TryPop(Cq& cq, Cqe* cqe) {
  const LockGuard guard(cq.lock);
  if (cq.head == cq.tail) {
    cq.head = cq.tail = 0;
    return false;
  }
  *cqe = TakeLocked(cq);
  Count(stats.completions);
  return true;
}

[[gnu::always_inline]] inline int TryPoll(Cq& cq, int entries, ibv_wc* wc) {
  const LockGuard guard(cq.lock);
  int polled = 0;
  while (polled < entries && cq.head != cq.tail) wc[polled++] = TakeLocked(cq);
  if (polled == 0 && cq.head == cq.tail) cq.head = cq.tail = 0;
  Count(stats.completions, static_cast<uint64_t>(polled));
  return polled;
}

// A function of its own, so that PollCq needs no stack frame.
[[gnu::noinline]] int PollAfterDriving(Cq& cq, int entries, ibv_wc* wc) {
  if (entries <= 0) return 0;
  cq.context->nic->engine().Poll();
  return TryPoll(cq, entries, wc);
}

}  // namespace

void Cq::Resize(uint32_t new_capacity) {
  const uint32_t places = std::bit_ceil(new_capacity);
  std::unique_ptr<Cqe[], FreeRing> new_ring(static_cast<Cqe*>(std::calloc(places, sizeof(Cqe))));
  if (new_ring == nullptr) throw std::bad_alloc();
  const uint32_t count = tail - head;
  for (uint32_t i = 0; i < count; ++i) new_ring[i] = ring[(head + i) & mask];
  ring = std::move(new_ring);
  mask = places - 1;
  capacity = new_capacity;
  head = 0;
  tail = count;
  ex.cqe = static_cast<int>(new_capacity);
}

void PushToFullOrArmed(Cq& cq, const Cqe& cqe) {
  bool due = false, lost = false;
  {
    const LockGuard guard(cq.lock);
    if (cq.tail - cq.head == cq.capacity) {
      lost = !cq.overrun;
      cq.overrun = true;
    } else {
      cq.ring[cq.tail++ & cq.mask] = cqe;
      due = IsDue(cq, cqe);
      if (due) cq.armed = Cq::Armed::kNo;
    }
  }
  if (lost) RaiseOverrun(cq);
  if (due) {
    cq.comp_events_pushed.fetch_add(1, std::memory_order_relaxed);
    cq.channel->events.Push(&cq);
  }
}

bool PopCompletion(Cq& cq, Cqe* cqe) {
  if (TryPop(cq, cqe)) return true;
  cq.context->nic->engine().Poll();
  return TryPop(cq, cqe);
}

void PurgeCompletions(Cq& cq, uint32_t qp_num) {
  const LockGuard guard(cq.lock);
  uint32_t kept = cq.head;
  for (uint32_t i = cq.head; i != cq.tail; ++i) {
    const Cqe& cqe = cq.ring[i & cq.mask];
    if (cqe.qp_num != qp_num) cq.ring[kept++ & cq.mask] = cqe;
  }
  cq.tail = kept;
}

int PollCq(ibv_cq* ibv, int entries, ibv_wc* wc) {
  Cq& cq = *Cq::From(ibv);
  const int polled = TryPoll(cq, entries, wc);
  return polled > 0 ? polled : PollAfterDriving(cq, entries, wc);
}

int RequestNotify(ibv_cq* ibv, int solicited_only) {
  Cq& cq = *Cq::From(ibv);
  {
    const LockGuard guard(cq.lock);
    // A later request for solicited completions does not weaken a request for any completion.
    if (!solicited_only) {
      cq.armed = Cq::Armed::kAny;
    } else if (cq.armed == Cq::Armed::kNo) {
      cq.armed = Cq::Armed::kSolicited;
    }
  }
  if (cq.channel != nullptr) {
    cq.channel->events.OnArmed();
  } else {
    cq.context->nic->engine().PrepareToSleep(0);
  }
  return 0;
}

}  // namespace softverbs
