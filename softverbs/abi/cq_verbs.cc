#include "softverbs/abi/cq_verbs.h"

#include <pthread.h>

#include <cerrno>

#include "softverbs/abi/check_objects.h"
#include "softverbs/base/errno.h"
#include "softverbs/base/export.h"
#include "softverbs/base/mutex.h"
#include "softverbs/base/verbs_limits.h"
#include "softverbs/cq/cq.h"
#include "softverbs/nic/context.h"

namespace softverbs {
namespace {

constexpr uint64_t kSupportedWcFlags =
    uint64_t{IBV_WC_STANDARD_FLAGS} | uint64_t{IBV_WC_EX_WITH_COMPLETION_TIMESTAMP};

Cq* CreateCq(ibv_context* context, const ibv_cq_init_attr_ex& attr) {
  if (attr.cqe == 0 || attr.cqe > kMaxCqe ||
      attr.comp_vector >= static_cast<uint32_t>(context->num_comp_vectors)) {
    errno = EINVAL;
    return nullptr;
  }
  if (const int error = CheckObjects(context, attr.channel)) return NullWithErrno<Cq>(error);
  if (!Context::From(context)->nic->cqs().Take()) return NullWithErrno<Cq>(ENOMEM);
  auto* cq = new Cq;
  cq->lock.AssertHeld();  // nobody else knows it yet
  cq->context = Context::From(context);
  cq->channel = Channel::From(attr.channel);
  cq->Resize(attr.cqe);
  cq->ex.context = context;
  cq->ex.channel = attr.channel;
  cq->ex.cq_context = attr.cq_context;
  cq->identity.Take(cq->ex);
  pthread_mutex_init(&cq->ex.mutex, nullptr);
  pthread_cond_init(&cq->ex.cond, nullptr);
  InstallExtendedPolling(*cq);
  if (attr.channel != nullptr) {
    __atomic_add_fetch(&attr.channel->refcnt, 1, __ATOMIC_RELAXED);
  }
  cq->context->objects.fetch_add(1, std::memory_order_relaxed);
  return cq;
}

// Waits until the application acknowledged the events it took. Events that it did not take are
// dropped.
void AwaitAcknowledged(Cq& cq) {
  ibv_cq* ibv = cq.ibv();
  uint32_t comp_events = cq.comp_events_pushed.load(std::memory_order_relaxed);
  if (cq.channel != nullptr) {
    comp_events -= cq.channel->events.Purge(&cq);
  }
  uint32_t async_events = cq.async_events_pushed.load(std::memory_order_relaxed);
  async_events -= cq.context->async_events.Purge([&](const ibv_async_event& event) {
    return event.event_type == IBV_EVENT_CQ_ERR && event.element.cq == ibv;
  });
  pthread_mutex_lock(&ibv->mutex);
  while (ibv->comp_events_completed != comp_events || ibv->async_events_completed != async_events) {
    pthread_cond_wait(&ibv->cond, &ibv->mutex);
  }
  pthread_mutex_unlock(&ibv->mutex);
}

}  // namespace

ibv_cq_ex* CreateCqEx(ibv_context* context, ibv_cq_init_attr_ex* attr) {
  if ((attr->wc_flags & ~kSupportedWcFlags) != 0 ||
      (attr->comp_mask & ~(IBV_CQ_INIT_ATTR_MASK_FLAGS)) != 0) {
    errno = EOPNOTSUPP;
    return nullptr;
  }
  Cq* cq = CreateCq(context, *attr);
  return cq == nullptr ? nullptr : &cq->ex;
}

}  // namespace softverbs

using softverbs::Channel;
using softverbs::Context;
using softverbs::Cq;

SOFTVERBS_EXPORT ibv_comp_channel* ibv_create_comp_channel(ibv_context* context) {
  auto* channel = new Channel(context);
  if (channel->events.fd() < 0) {
    delete channel;
    errno = EMFILE;
    return nullptr;
  }
  Context::From(context)->objects.fetch_add(1, std::memory_order_relaxed);
  return &channel->ibv;
}

SOFTVERBS_EXPORT int ibv_destroy_comp_channel(ibv_comp_channel* channel) {
  if (softverbs::Inherited(channel->context)) return 0;
  if (__atomic_load_n(&channel->refcnt, __ATOMIC_ACQUIRE) != 0) {
    return softverbs::WithErrno(EBUSY);
  }
  Context::From(channel->context)->objects.fetch_sub(1, std::memory_order_relaxed);
  delete Channel::From(channel);
  return 0;
}

SOFTVERBS_EXPORT ibv_cq* ibv_create_cq(ibv_context* context, int cqe, void* cq_context,
                                       ibv_comp_channel* channel, int comp_vector) {
  if (cqe < 0 || comp_vector < 0) {
    errno = EINVAL;
    return nullptr;
  }
  ibv_cq_init_attr_ex attr{};
  attr.cqe = static_cast<uint32_t>(cqe);
  attr.cq_context = cq_context;
  attr.channel = channel;
  attr.comp_vector = static_cast<uint32_t>(comp_vector);
  Cq* cq = softverbs::CreateCq(context, attr);
  return cq == nullptr ? nullptr : cq->ibv();
}

SOFTVERBS_EXPORT int ibv_resize_cq(ibv_cq* ibv, int cqe) {
  Cq& cq = *Cq::From(ibv);
  if (const int error = cq.Check()) return softverbs::WithErrno(error);
  if (cqe <= 0 || cqe > static_cast<int>(softverbs::kMaxCqe)) return softverbs::WithErrno(EINVAL);
  const softverbs::LockGuard guard(cq.lock);
  if (cq.tail - cq.head > static_cast<uint32_t>(cqe)) return softverbs::WithErrno(EINVAL);
  cq.Resize(static_cast<uint32_t>(cqe));
  return 0;
}

SOFTVERBS_EXPORT int ibv_destroy_cq(ibv_cq* ibv) {
  if (softverbs::Inherited(ibv->context)) return 0;
  Cq* cq = Cq::From(ibv);
  if (const int error = cq->Check()) return softverbs::WithErrno(error);
  if (cq->users.load(std::memory_order_acquire) != 0) return softverbs::WithErrno(EBUSY);
  softverbs::AwaitAcknowledged(*cq);
  if (ibv->channel != nullptr) __atomic_sub_fetch(&ibv->channel->refcnt, 1, __ATOMIC_RELEASE);
  cq->context->objects.fetch_sub(1, std::memory_order_relaxed);
  cq->context->nic->cqs().Return();
  pthread_mutex_destroy(&ibv->mutex);
  pthread_cond_destroy(&ibv->cond);
  delete cq;
  return 0;
}

SOFTVERBS_EXPORT int ibv_get_cq_event(ibv_comp_channel* channel, ibv_cq** cq, void** cq_context) {
  Cq* const due = Channel::From(channel)->events.Pop();
  if (due == nullptr) return -1;
  *cq = due->ibv();
  *cq_context = (*cq)->cq_context;
  return 0;
}

SOFTVERBS_EXPORT void ibv_ack_cq_events(ibv_cq* cq, unsigned int count) {
  pthread_mutex_lock(&cq->mutex);
  cq->comp_events_completed += count;
  pthread_cond_signal(&cq->cond);
  pthread_mutex_unlock(&cq->mutex);
}
