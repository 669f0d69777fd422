#ifndef SOFTVERBS_QP_SRQ_H_
#define SOFTVERBS_QP_SRQ_H_

#include <infiniband/verbs.h>

#include <atomic>
#include <cstdint>

#include "softverbs/base/spin_lock.h"
#include "softverbs/nic/context.h"
#include "softverbs/qp/receive_queue.h"

namespace softverbs {

// A shared receive queue. Thread safe.
struct Srq {
  ibv_srq ibv{};  // first
  Identity identity;
  Context* context = nullptr;
  Pd* pd = nullptr;
  uint32_t number = 0;
  std::atomic<int> users{0};  // queue pairs

  SpinLock lock;
  ReceiveQueue queue SV_GUARDED_BY(lock);
  uint32_t limit SV_GUARDED_BY(lock) = 0;  // 0: not armed

  std::atomic<uint32_t> events_pushed{0};

  static Srq* From(ibv_srq* srq) { return reinterpret_cast<Srq*>(srq); }
  int Check() const { return identity.Check(ibv); }

  // Takes the oldest receive. Raises IBV_EVENT_SRQ_LIMIT_REACHED once, when fewer receives than the
  // limit remain.
  bool Take(ReceiveWqe* wqe);
};

// Implements ibv_context_ops::post_srq_recv.
int PostSrqReceive(ibv_srq* srq, ibv_recv_wr* wr, ibv_recv_wr** bad_wr);

}  // namespace softverbs

#endif  // SOFTVERBS_QP_SRQ_H_
