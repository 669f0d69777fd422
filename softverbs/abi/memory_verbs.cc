#include <atomic>
#include <cerrno>
#include <memory>
#include <vector>

#include "softverbs/base/export.h"
#include "softverbs/base/locked_pages.h"
#include "softverbs/base/mutex.h"
#include "softverbs/fault/strict.h"
#include "softverbs/nic/context.h"
#include "softverbs/nic/nic.h"
#include "softverbs/qp/qp.h"

#undef ibv_reg_mr
#undef ibv_reg_mr_iova

namespace softverbs {
namespace {

struct Mr {
  ibv_mr ibv{};  // first
  uint32_t region = 0;

  static Mr* From(ibv_mr* mr) { return reinterpret_cast<Mr*>(mr); }
};

constexpr unsigned kRemoteAccess =
    IBV_ACCESS_REMOTE_READ | IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_ATOMIC;
constexpr unsigned kRemoteChange = IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_ATOMIC;
constexpr unsigned kSupported =
    IBV_ACCESS_LOCAL_WRITE | kRemoteAccess | IBV_ACCESS_HUGETLB | IBV_ACCESS_OPTIONAL_RANGE;

int CheckAccess(unsigned access) {
  if ((access & ~kSupported) != 0) return EOPNOTSUPP;
  // IBTA: a region that peers may write must be writable locally too.
  const bool changes = (access & kRemoteChange) != 0;
  return changes && (access & IBV_ACCESS_LOCAL_WRITE) == 0 ? EINVAL : 0;
}

// Peers may be executing operations on a region of this protection domain themselves. Waits for
// those that may have begun before its key became invalid.
void AwaitInitiators(Nic& nic, uint32_t pd) {
  std::vector<std::pair<std::shared_ptr<Link>, uint32_t>> initiators;
  {
    const Engine::Pause pause(nic.engine());  // also ends what our own NIC was executing
    for (uint32_t index = 0; index < kQpsPerProcess; ++index) {
      Qp* qp = nic.qps().At(index);
      if (qp == nullptr || qp->pd_id != pd) continue;
      const LockGuard guard(qp->lock);
      if (qp->link) initiators.emplace_back(qp->link, QpIndex(qp->attr.dest_qp_num));
    }
  }
  for (const auto& [link, index] : initiators) {
    const SharedTables* peer = link->peer_tables();
    if (peer == nullptr || link->state() != Link::State::kUp) continue;
    AwaitQuiet(peer->qps[index].in_flight);
  }
}

// Returns whether the list of an unfinished request has the key.
bool InUse(Nic& nic, uint32_t lkey) {
  const Engine::Pause pause(nic.engine());
  for (uint32_t index = 0; index < kQpsPerProcess; ++index) {
    Qp* qp = nic.qps().At(index);
    if (qp == nullptr) continue;
    const LockGuard guard(qp->lock);
    SendQueue& queue = qp->requester.queue;
    for (uint32_t place = queue.done; place != queue.posted; ++place) {
      SendWqe& wqe = queue.At(place);
      if (wqe.is_inline()) continue;
      for (uint32_t i = 0; i < wqe.sge_count; ++i) {
        if (wqe.sges()[i].lkey == lkey) return true;
      }
    }
  }
  return false;
}

ibv_mr* Register(ibv_pd* pd, void* addr, size_t length, uint64_t iova, unsigned access) {
  if (const int error = CheckAccess(access)) {
    errno = error;
    return nullptr;
  }
  if (fault::StrikesNextCall(fault::Kind::kFailRegMr)) {
    errno = ENOMEM;
    return nullptr;
  }
  const uint64_t begin = reinterpret_cast<uint64_t>(addr);
  if (begin + length < begin || iova + length < iova) {
    errno = EINVAL;
    return nullptr;
  }
  if (!TakeLockedPages(begin, length)) {
    errno = ENOMEM;
    return nullptr;
  }
  Nic& nic = *Context::From(pd->context)->nic;
  auto mr = std::make_unique<Mr>();
  ExportedRegions::Location location;
  // With a fault plan, peers must not bypass our engine.
  if ((access & kRemoteAccess) != 0 && fault::Active() == nullptr) {
    location = nic.exported().Acquire(addr, length, (access & kRemoteChange) != 0);
  }
  const uint32_t key = nic.memory().Add({static_cast<uint8_t*>(addr), iova, length, access,
                                         Pd::From(pd)->id, location.region, location.offset});
  if (key == 0) {
    if (location.region != 0) nic.exported().Release(location.region);
    ReturnLockedPages(begin, length);
    errno = ENOMEM;
    return nullptr;
  }
  mr->region = location.region;
  mr->ibv.context = pd->context;
  mr->ibv.pd = pd;
  mr->ibv.addr = addr;
  mr->ibv.length = length;
  mr->ibv.handle = mr->ibv.lkey = mr->ibv.rkey = key;
  Pd::From(pd)->users.fetch_add(1, std::memory_order_acq_rel);
  return &mr.release()->ibv;
}

}  // namespace
}  // namespace softverbs

using softverbs::Context;
using softverbs::Mr;
using softverbs::Nic;
using softverbs::Pd;

SOFTVERBS_EXPORT ibv_pd* ibv_alloc_pd(ibv_context* context) {
  auto* pd = new Pd;
  pd->id = Context::From(context)->nic->NewPdId();
  pd->ibv.context = context;
  pd->ibv.handle = pd->id;
  Context::From(context)->objects.fetch_add(1, std::memory_order_relaxed);
  return &pd->ibv;
}

SOFTVERBS_EXPORT int ibv_dealloc_pd(ibv_pd* pd) {
  if (softverbs::Inherited(pd->context)) return 0;
  if (Pd::From(pd)->users.load(std::memory_order_acquire) != 0) return EBUSY;
  Context::From(pd->context)->objects.fetch_sub(1, std::memory_order_relaxed);
  delete Pd::From(pd);
  return 0;
}

SOFTVERBS_EXPORT ibv_mr* ibv_reg_mr(ibv_pd* pd, void* addr, size_t length, int access) {
  return softverbs::Register(pd, addr, length, reinterpret_cast<uint64_t>(addr),
                             static_cast<unsigned>(access));
}

SOFTVERBS_EXPORT ibv_mr* ibv_reg_mr_iova(ibv_pd* pd, void* addr, size_t length, uint64_t iova,
                                         int access) {
  return softverbs::Register(pd, addr, length, iova, static_cast<unsigned>(access));
}

SOFTVERBS_EXPORT ibv_mr* ibv_reg_mr_iova2(ibv_pd* pd, void* addr, size_t length, uint64_t iova,
                                          unsigned int access) {
  return softverbs::Register(pd, addr, length, iova, access);
}

SOFTVERBS_EXPORT ibv_mr* ibv_reg_dmabuf_mr(ibv_pd*, uint64_t, size_t, uint64_t, int, int) {
  errno = EOPNOTSUPP;
  return nullptr;
}

SOFTVERBS_EXPORT int ibv_rereg_mr(ibv_mr*, int, ibv_pd*, void*, size_t, int) {
  errno = EOPNOTSUPP;
  return IBV_REREG_MR_ERR_INPUT;
}

SOFTVERBS_EXPORT int ibv_dereg_mr(ibv_mr* ibv) {
  if (softverbs::Inherited(ibv->context)) return 0;
  Mr* mr = Mr::From(ibv);
  Nic& nic = *Context::From(ibv->context)->nic;
  Pd& pd = *Pd::From(ibv->pd);
  const softverbs::fault::Plan* plan = softverbs::fault::Active();
  if (plan != nullptr && plan->strict && softverbs::InUse(nic, ibv->lkey)) {
    softverbs::fault::Misuse("ibv_dereg_mr: a posted request uses the region");
  }
  nic.memory().Invalidate(ibv->lkey);
  softverbs::AwaitInitiators(nic, pd.id);
  nic.memory().Free(ibv->lkey);
  if (mr->region != 0 && nic.exported().Release(mr->region)) {
    nic.links().AnnounceRegionGone(mr->region);
  }
  softverbs::ReturnLockedPages(reinterpret_cast<uint64_t>(ibv->addr), ibv->length);
  pd.users.fetch_sub(1, std::memory_order_acq_rel);
  delete mr;
  return 0;
}
