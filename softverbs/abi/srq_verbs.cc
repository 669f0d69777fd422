#include "softverbs/abi/srq_verbs.h"

#include <pthread.h>

#include <cerrno>

#include "softverbs/abi/check_objects.h"
#include "softverbs/base/errno.h"
#include "softverbs/base/export.h"
#include "softverbs/base/mutex.h"
#include "softverbs/base/verbs_limits.h"
#include "softverbs/qp/srq.h"

namespace softverbs {
namespace {

std::atomic<uint32_t> last_srq_number{0};

Srq* CreateSrq(ibv_context* context, ibv_pd* pd, void* srq_context, ibv_srq_attr* attr) {
  if (attr->max_wr == 0 || attr->max_wr > kMaxWr || attr->max_sge > kMaxSge) {
    errno = EINVAL;
    return nullptr;
  }
  if (const int error = CheckObjects(context, pd)) return NullWithErrno<Srq>(error);
  if (!Context::From(context)->nic->srqs().Take()) return NullWithErrno<Srq>(ENOMEM);
  auto* srq = new Srq;
  srq->lock.AssertHeld();  // nobody else knows it yet
  srq->context = Context::From(context);
  srq->pd = Pd::From(pd);
  srq->number = last_srq_number.fetch_add(1, std::memory_order_relaxed) + 1;
  srq->queue.Init(attr->max_wr, attr->max_sge);
  srq->ibv.context = context;
  srq->ibv.srq_context = srq_context;
  srq->ibv.pd = pd;
  srq->ibv.handle = srq->number;
  srq->identity.Take(srq->ibv);
  pthread_mutex_init(&srq->ibv.mutex, nullptr);
  pthread_cond_init(&srq->ibv.cond, nullptr);
  srq->pd->users.fetch_add(1, std::memory_order_acq_rel);
  srq->context->objects.fetch_add(1, std::memory_order_relaxed);
  return srq;
}

void AwaitAcknowledged(Srq& srq) {
  uint32_t events = srq.events_pushed.load(std::memory_order_relaxed);
  events -= srq.context->async_events.Purge([&](const ibv_async_event& event) {
    return (event.event_type == IBV_EVENT_SRQ_LIMIT_REACHED ||
            event.event_type == IBV_EVENT_SRQ_ERR) &&
           event.element.srq == &srq.ibv;
  });
  pthread_mutex_lock(&srq.ibv.mutex);
  while (srq.ibv.events_completed != events) pthread_cond_wait(&srq.ibv.cond, &srq.ibv.mutex);
  pthread_mutex_unlock(&srq.ibv.mutex);
}

}  // namespace

ibv_srq* CreateSrqEx(ibv_context* context, ibv_srq_init_attr_ex* attr) {
  const bool basic =
      !(attr->comp_mask & IBV_SRQ_INIT_ATTR_TYPE) || attr->srq_type == IBV_SRQT_BASIC;
  if (!basic || !(attr->comp_mask & IBV_SRQ_INIT_ATTR_PD)) {
    errno = EOPNOTSUPP;
    return nullptr;
  }
  Srq* srq = CreateSrq(context, attr->pd, attr->srq_context, &attr->attr);
  return srq == nullptr ? nullptr : &srq->ibv;
}

int GetSrqNumber(ibv_srq* srq, uint32_t* number) {
  *number = Srq::From(srq)->number;
  return 0;
}

}  // namespace softverbs

using softverbs::Srq;

SOFTVERBS_EXPORT ibv_srq* ibv_create_srq(ibv_pd* pd, ibv_srq_init_attr* init) {
  Srq* srq = softverbs::CreateSrq(pd->context, pd, init->srq_context, &init->attr);
  return srq == nullptr ? nullptr : &srq->ibv;
}

SOFTVERBS_EXPORT int ibv_modify_srq(ibv_srq* ibv, ibv_srq_attr* attr, int mask) {
  Srq& srq = *Srq::From(ibv);
  if (const int error = srq.Check()) return softverbs::WithErrno(error);
  if ((mask & IBV_SRQ_MAX_WR) != 0)
    return softverbs::WithErrno(EOPNOTSUPP);  // no IBV_DEVICE_SRQ_RESIZE
  if ((mask & IBV_SRQ_LIMIT) == 0) return 0;
  const softverbs::LockGuard guard(srq.lock);
  if (attr->srq_limit > srq.queue.max_wr()) return softverbs::WithErrno(EINVAL);
  srq.limit = attr->srq_limit;
  return 0;
}

SOFTVERBS_EXPORT int ibv_query_srq(ibv_srq* ibv, ibv_srq_attr* attr) {
  Srq& srq = *Srq::From(ibv);
  if (const int error = srq.Check()) return softverbs::WithErrno(error);
  const softverbs::LockGuard guard(srq.lock);
  attr->max_wr = srq.queue.max_wr();
  attr->max_sge = srq.queue.max_sge();
  attr->srq_limit = srq.limit;
  return 0;
}

SOFTVERBS_EXPORT int ibv_destroy_srq(ibv_srq* ibv) {
  if (softverbs::Inherited(ibv->context)) return 0;
  Srq* srq = Srq::From(ibv);
  if (const int error = srq->Check()) return softverbs::WithErrno(error);
  if (srq->users.load(std::memory_order_acquire) != 0) return softverbs::WithErrno(EBUSY);
  softverbs::AwaitAcknowledged(*srq);
  srq->pd->users.fetch_sub(1, std::memory_order_acq_rel);
  srq->context->objects.fetch_sub(1, std::memory_order_relaxed);
  srq->context->nic->srqs().Return();
  pthread_mutex_destroy(&ibv->mutex);
  pthread_cond_destroy(&ibv->cond);
  delete srq;
  return 0;
}
