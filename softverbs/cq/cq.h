#ifndef SOFTVERBS_CQ_CQ_H_
#define SOFTVERBS_CQ_CQ_H_

#include <infiniband/verbs.h>

#include <atomic>
#include <cstdint>
#include <memory>
#include <mutex>

#include "softverbs/base/spin_lock.h"
#include "softverbs/cq/channel.h"
#include "softverbs/nic/context.h"

namespace softverbs {

// A completion as it waits in a CQ: what polling hands out, copied as a whole, and what it does.
struct Cqe : ibv_wc {
  // Polling a send completion frees the send queue up to here; null for receives.
  std::atomic<uint32_t>* sq_freed;
  uint32_t sq_free_to;
  bool solicited;
};
static_assert(sizeof(Cqe) == 64);

// A completion queue; also an ibv_cq_ex, whichever way it was created.
//
// Push and Poll are thread safe. The extended polling calls hold a CQE of their own between start
// and end, not the lock, because programs post between them; one thread at a time, kept by
// poll_owner.
struct Cq {
  ibv_cq_ex ex{};  // first
  Context* context = nullptr;
  Channel* channel = nullptr;
  std::atomic<int> users{0};  // queue pairs

  SpinLock lock;
  // Guarded by lock.
  std::unique_ptr<Cqe[]> ring;  // a power of two of places, at least capacity
  uint32_t mask = 0;
  uint32_t capacity = 0;
  uint32_t head = 0;  // oldest; counts up for ever, as tail
  uint32_t tail = 0;
  enum class Armed : uint8_t { kNo, kSolicited, kAny } armed = Armed::kNo;
  bool overrun = false;

  std::atomic<uint32_t> comp_events_pushed{0};
  std::atomic<uint32_t> async_events_pushed{0};

  SpinLock poll_owner;  // held from start_poll to end_poll
  Cqe current{};        // guarded by poll_owner

  // REQUIRES: lock held, or nobody else knows the CQ yet; the completions in it fit.
  void Resize(uint32_t new_capacity);
  static Cq* From(ibv_cq* cq) { return reinterpret_cast<Cq*>(cq); }
  static Cq* From(ibv_cq_ex* cq) { return reinterpret_cast<Cq*>(cq); }
  ibv_cq* ibv() { return reinterpret_cast<ibv_cq*>(&ex); }
};

// PushCompletion when the CQ is full or armed.
void PushToFullOrArmed(Cq& cq, const Cqe& cqe);

// Adds a completion, a Cqe of zeroes that `fill(Cqe&)` completes, and raises an event if the CQ is
// armed for it. A full CQ loses it, is marked overrun for good and raises IBV_EVENT_CQ_ERR. Inline:
// the completion is built in its place.
template <class Fill>
[[gnu::always_inline]] inline void PushCompletion(Cq& cq, Fill&& fill) {
  {
    const std::lock_guard<SpinLock> guard(cq.lock);
    if (cq.tail - cq.head != cq.capacity && cq.armed == Cq::Armed::kNo) [[likely]] {
      Cqe& cqe = cq.ring[cq.tail++ & cq.mask];
      cqe = {};
      fill(cqe);
      return;
    }
  }
  Cqe cqe{};
  fill(cqe);
  PushToFullOrArmed(cq, cqe);
}

// The oldest completion; false when there is none even after the NIC was driven once.
bool PopCompletion(Cq& cq, Cqe* cqe);

// Removes the completions of a queue pair that is destroyed or reset.
void PurgeCompletions(Cq& cq, uint32_t qp_num);

// The members of ibv_context_ops and the extended table.
int PollCq(ibv_cq* cq, int entries, ibv_wc* wc);
int RequestNotify(ibv_cq* cq, int solicited_only);
void InstallExtendedPolling(Cq& cq);

}  // namespace softverbs

#endif  // SOFTVERBS_CQ_CQ_H_
