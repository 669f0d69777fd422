#include "softverbs/qp/srq.h"

#include "softverbs/base/errno.h"
#include "softverbs/base/mutex.h"
#include "softverbs/base/stats.h"

namespace softverbs {

bool Srq::Take(ReceiveWqe* wqe) {
  bool limit_reached = false;
  {
    const LockGuard guard(lock);
    if (!queue.Take(wqe)) return false;
    limit_reached = queue.size() < limit;
    if (limit_reached) limit = 0;
  }
  if (limit_reached) {
    ibv_async_event event{};
    event.element.srq = &ibv;
    event.event_type = IBV_EVENT_SRQ_LIMIT_REACHED;
    events_pushed.fetch_add(1, std::memory_order_relaxed);
    context->async_events.Push(event);
  }
  return true;
}

int PostSrqReceive(ibv_srq* ibv, ibv_recv_wr* wr, ibv_recv_wr** bad_wr) {
  Srq& srq = *Srq::From(ibv);
  const LockGuard guard(srq.lock);
  for (; wr != nullptr; wr = wr->next) {
    if (const int error = srq.queue.Post(*wr)) {
      *bad_wr = wr;
      return WithErrno(error);
    }
    Count(stats.receives);
  }
  return 0;
}

}  // namespace softverbs
