#ifndef SOFTVERBS_CQ_CQ_H_
#define SOFTVERBS_CQ_CQ_H_

#include <infiniband/verbs.h>

#include <atomic>
#include <cstdint>
#include <cstdlib>
#include <memory>

#include "softverbs/base/mutex.h"
#include "softverbs/base/spin_lock.h"
#include "softverbs/cq/channel.h"
#include "softverbs/nic/context.h"

namespace softverbs {

// A completion that waits in a CQ: the ibv_wc that polling returns, and the effects of polling it.
struct Cqe : ibv_wc {
  // Polling a send completion frees the send queue up to here; null for receives.
  std::atomic<uint32_t>* sq_freed;
  uint32_t sq_free_to;
  bool solicited;
};
static_assert(sizeof(Cqe) == 64);

// A completion queue. It is always an ibv_cq_ex too, however it was created.
//
// Push and Poll are thread safe. The extended polling calls work on `current` between start and
// end. They do not hold `lock`, because programs post between them. poll_owner admits one polling
// thread at a time.
struct Cq {
  ibv_cq_ex ex{};  // first
  Identity identity;
  Context* context = nullptr;
  Channel* channel = nullptr;
  std::atomic<int> users{0};  // queue pairs

  struct FreeRing {
    void operator()(Cqe* ring) const { std::free(ring); }
  };

  SpinLock lock;
  // Its size is a power of two, at least capacity. Zeroed by the system, page by page, when a page
  // is first used.
  std::unique_ptr<Cqe[], FreeRing> ring SV_GUARDED_BY(lock);
  uint32_t mask SV_GUARDED_BY(lock) = 0;
  uint32_t capacity SV_GUARDED_BY(lock) = 0;
  // `head` is the oldest. Both count up, until a poll finds the queue empty: then they begin again,
  // so that only as much of the ring is used, and stays in the cache, as completions wait.
  uint32_t head SV_GUARDED_BY(lock) = 0;
  uint32_t tail SV_GUARDED_BY(lock) = 0;
  enum class Armed : uint8_t { kNo, kSolicited, kAny } armed SV_GUARDED_BY(lock) = Armed::kNo;
  bool overrun SV_GUARDED_BY(lock) = false;

  std::atomic<uint32_t> comp_events_pushed{0};
  std::atomic<uint32_t> async_events_pushed{0};

  SpinLock poll_owner;  // held from start_poll to end_poll
  Cqe current SV_GUARDED_BY(poll_owner){};

  // REQUIRES: lock held, or nobody else knows the CQ yet; the waiting completions fit.
  void Resize(uint32_t new_capacity) SV_REQUIRES(lock);
  static Cq* From(ibv_cq* cq) { return reinterpret_cast<Cq*>(cq); }
  static Cq* From(ibv_cq_ex* cq) { return reinterpret_cast<Cq*>(cq); }
  ibv_cq* ibv() { return reinterpret_cast<ibv_cq*>(&ex); }
  int Check() const { return identity.Check(ex); }
};

// The slow path of PushCompletion, for a CQ that is full or armed.
void PushToFullOrArmed(Cq& cq, const Cqe& cqe);

// Adds a completion, and raises an event if the CQ is armed for it. `fill(Cqe&)` fills in a zeroed
// Cqe. If the CQ is full, the completion is lost, the CQ is marked overrun for good, and
// IBV_EVENT_CQ_ERR is raised. Inline, so that `fill` writes straight into the ring.
template <class Fill>
[[gnu::always_inline]] inline void PushCompletion(Cq& cq, Fill&& fill) {
  {
    const LockGuard guard(cq.lock);
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

// Takes the oldest completion. Returns false if there is none even after the NIC was driven once.
bool PopCompletion(Cq& cq, Cqe* cqe);

// Removes the completions of a queue pair that is destroyed or reset.
void PurgeCompletions(Cq& cq, uint32_t qp_num);

// The implementations of ibv_context_ops, and of the extended polling calls.
int PollCq(ibv_cq* cq, int entries, ibv_wc* wc);
int RequestNotify(ibv_cq* cq, int solicited_only);
void InstallExtendedPolling(Cq& cq);

}  // namespace softverbs

#endif  // SOFTVERBS_CQ_CQ_H_
