#include "softverbs/abi/pd_verbs.h"

#include <cerrno>

#include "softverbs/abi/check_objects.h"
#include "softverbs/base/errno.h"
#include "softverbs/base/export.h"
#include "softverbs/nic/context.h"

namespace softverbs {
namespace {

// Returns null and sets errno if there are too many.
Pd* NewPd(ibv_context* context) {
  Context& owner = *Context::From(context);
  if (!owner.nic->pds().Take()) return NullWithErrno<Pd>(ENOMEM);
  auto* pd = new Pd;
  pd->ibv.context = context;
  owner.objects.fetch_add(1, std::memory_order_relaxed);
  return pd;
}

}  // namespace

ibv_td* AllocateThreadDomain(ibv_context* context, ibv_td_init_attr* attr) {
  if (attr->comp_mask != 0) return NullWithErrno<ibv_td>(EINVAL);
  auto* td = new ThreadDomain;
  td->ibv.context = context;
  Context::From(context)->objects.fetch_add(1, std::memory_order_relaxed);
  return &td->ibv;
}

int FreeThreadDomain(ibv_td* ibv) {
  if (Inherited(ibv->context)) return 0;
  ThreadDomain* td = ThreadDomain::From(ibv);
  if (td->users.load(std::memory_order_acquire) != 0) return WithErrno(EBUSY);
  Context::From(ibv->context)->objects.fetch_sub(1, std::memory_order_relaxed);
  delete td;
  return 0;
}

ibv_pd* AllocateParentDomain(ibv_context* context, ibv_parent_domain_init_attr* attr) {
  // The queues are not made of memory that an application could provide.
  if ((attr->comp_mask & IBV_PARENT_DOMAIN_INIT_ATTR_ALLOCATORS) != 0) {
    return NullWithErrno<ibv_pd>(EOPNOTSUPP);
  }
  const uint32_t unknown = ~uint32_t{IBV_PARENT_DOMAIN_INIT_ATTR_PD_CONTEXT};
  if ((attr->comp_mask & unknown) != 0 || attr->pd == nullptr) {
    return NullWithErrno<ibv_pd>(EINVAL);
  }
  if (const int error = CheckObjects(context, attr->pd, attr->td)) {
    return NullWithErrno<ibv_pd>(error);
  }
  Pd* parent = NewPd(context);
  if (parent == nullptr) return nullptr;
  parent->base = Pd::From(attr->pd);
  parent->id = parent->base->id;
  parent->ibv.handle = attr->pd->handle;
  parent->identity.Take(parent->ibv);
  parent->base->users.fetch_add(1, std::memory_order_acq_rel);
  if (attr->td != nullptr) {
    parent->thread = ThreadDomain::From(attr->td);
    parent->thread->users.fetch_add(1, std::memory_order_acq_rel);
  }
  return &parent->ibv;
}

}  // namespace softverbs

using softverbs::Context;
using softverbs::Pd;

SOFTVERBS_EXPORT ibv_pd* ibv_alloc_pd(ibv_context* context) {
  Pd* pd = softverbs::NewPd(context);
  if (pd == nullptr) return nullptr;
  pd->id = Context::From(context)->nic->NewPdId();
  pd->ibv.handle = pd->id;
  pd->identity.Take(pd->ibv);
  return &pd->ibv;
}

SOFTVERBS_EXPORT int ibv_dealloc_pd(ibv_pd* ibv) {
  if (softverbs::Inherited(ibv->context)) return 0;
  Pd* pd = Pd::From(ibv);
  if (const int error = pd->Check()) return softverbs::WithErrno(error);
  if (pd->users.load(std::memory_order_acquire) != 0) return softverbs::WithErrno(EBUSY);
  if (pd->base != nullptr) pd->base->users.fetch_sub(1, std::memory_order_acq_rel);
  if (pd->thread != nullptr) pd->thread->users.fetch_sub(1, std::memory_order_acq_rel);
  Context* context = Context::From(ibv->context);
  context->objects.fetch_sub(1, std::memory_order_relaxed);
  context->nic->pds().Return();
  delete pd;
  return 0;
}
