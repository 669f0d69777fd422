#include <atomic>
#include <cerrno>
#include <memory>
#include <utility>
#include <vector>

#include "softverbs/abi/check_objects.h"
#include "softverbs/base/errno.h"
#include "softverbs/base/export.h"
#include "softverbs/base/locked_pages.h"
#include "softverbs/base/log.h"
#include "softverbs/base/mutex.h"
#include "softverbs/base/page_size.h"
#include "softverbs/base/populate.h"
#include "softverbs/fault/strict.h"
#include "softverbs/nic/context.h"
#include "softverbs/nic/loop.h"
#include "softverbs/nic/nic.h"
#include "softverbs/qp/qp.h"

#undef ibv_reg_mr
#undef ibv_reg_mr_iova

namespace softverbs {
namespace {

// What a registration is made of.
struct Range {
  void* addr;
  size_t length;
  uint64_t iova;
  unsigned access;

  uint64_t begin() const { return reinterpret_cast<uint64_t>(addr); }
  // The address of the first byte, as users of the keys give it.
  uint64_t first() const { return (access & IBV_ACCESS_ZERO_BASED) != 0 ? 0 : iova; }
};

struct Mr {
  ibv_mr ibv{};  // first
  Identity identity;
  Range range{};
  uint32_t region = 0;

  static Mr* From(ibv_mr* mr) { return reinterpret_cast<Mr*>(mr); }
};

constexpr unsigned kRemoteAccess =
    IBV_ACCESS_REMOTE_READ | IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_ATOMIC;
constexpr unsigned kRemoteChange = IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_ATOMIC;
// Rights for which the memory must be writable.
constexpr unsigned kChange = IBV_ACCESS_LOCAL_WRITE | kRemoteChange | IBV_ACCESS_MW_BIND;
constexpr unsigned kSupported = IBV_ACCESS_LOCAL_WRITE | kRemoteAccess | IBV_ACCESS_MW_BIND |
                                IBV_ACCESS_ZERO_BASED | IBV_ACCESS_HUGETLB |
                                IBV_ACCESS_OPTIONAL_RANGE;

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
    const PacketEngine::Pause pause(nic.engine());  // also ends what our own NIC was executing
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
  const PacketEngine::Pause pause(nic.engine());
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

// Returns 0 or an errno value.
int CheckRange(const Range& range) {
  if (const int error = CheckAccess(range.access)) return error;
  if (fault::StrikesNextCall(fault::FaultKind::kFailRegMr)) return ENOMEM;
  const uint64_t begin = range.begin();
  // As the kernel: a registration has at least one page.
  if (range.length == 0 && begin % PageSize() == 0) {
    Report("a registration of no bytes, at the beginning of a page, has no page");
    return EINVAL;
  }
  return begin + range.length < begin || range.first() + range.length < range.first() ? EINVAL : 0;
}

// Counts the pages and brings them in, as if to pin them. Returns 0 or an errno value; then nothing
// is counted.
int TakePages(const Range& range) {
  if (!TakeLockedPages(range.begin(), range.length)) {
    Report("a registration of %zu bytes exceeds RLIMIT_MEMLOCK", range.length);
    return ENOMEM;
  }
  const bool writable = (range.access & kChange) != 0;
  // A simulation has no latencies that page faults would spoil, and registers memory thousands of
  // times.
  if (Loop::Get().Simulated()) return 0;
  const int error = PopulatePages(range.begin(), range.length, writable);
  if (error == 0) return 0;
  ReturnLockedPages(range.begin(), range.length);
  Report("memory to register at %p, %zu bytes, is not mapped%s", range.addr, range.length,
         writable ? " or not writable" : "");
  return error;
}

// Enters the range into the tables, with a new key. Returns 0 or an errno value; then `mr` is as
// before.
int Enter(ibv_pd* pd, const Range& range, Mr* mr) {
  if (const int error = Pd::From(pd)->Check()) return error;
  if (const int error = CheckRange(range)) return error;
  if (const int error = TakePages(range)) return error;
  Nic& nic = *Context::From(pd->context)->nic;
  ExportedRegions::Location location;
  // With a fault plan, peers must not bypass our engine.
  if ((range.access & kRemoteAccess) != 0 && fault::Active() == nullptr) {
    location =
        nic.exported().Acquire(range.addr, range.length, (range.access & kRemoteChange) != 0);
  }
  const uint32_t key =
      nic.memory().Add({static_cast<uint8_t*>(range.addr), range.first(), range.length,
                        range.access, Pd::From(pd)->id, location.region, location.offset});
  if (key == 0) {
    if (location.region != 0) nic.exported().Release(location.region);
    ReturnLockedPages(range.begin(), range.length);
    Report("no more than %u regions", kMaxMrs);
    return ENOMEM;
  }
  mr->region = location.region;
  mr->range = range;
  mr->ibv.context = pd->context;
  mr->ibv.pd = pd;
  mr->ibv.addr = range.addr;
  mr->ibv.length = range.length;
  mr->ibv.handle = mr->ibv.lkey = mr->ibv.rkey = key;
  mr->identity.Take(mr->ibv);
  Pd::From(pd)->users.fetch_add(1, std::memory_order_acq_rel);
  return 0;
}

// Takes what Enter entered out of the tables, and waits until nobody uses it any more. Returns 0,
// or EBUSY if windows are bound to the region; then it is as before.
int Leave(const Mr& mr) {
  Nic& nic = *Context::From(mr.ibv.context)->nic;
  Pd& pd = *Pd::From(mr.ibv.pd);
  if (!nic.windows().CloseRegion(mr.ibv.lkey)) return EBUSY;
  AwaitInitiators(nic, pd.id);
  nic.memory().Free(mr.ibv.lkey);
  if (mr.region != 0 && nic.exported().Release(mr.region)) {
    nic.links().AnnounceRegionGone(mr.region);
  }
  ReturnLockedPages(mr.range.begin(), mr.range.length);
  pd.users.fetch_sub(1, std::memory_order_acq_rel);
  return 0;
}

ibv_mr* Register(ibv_pd* pd, const Range& range) {
  auto mr = std::make_unique<Mr>();
  if (const int error = Enter(pd, range, mr.get())) return NullWithErrno<ibv_mr>(error);
  return &mr.release()->ibv;
}

// Returns whether the arguments of ibv_rereg_mr fit together.
bool IsValidChange(int flags, const ibv_pd* pd, const Range& range) {
  constexpr int kKnown =
      IBV_REREG_MR_CHANGE_TRANSLATION | IBV_REREG_MR_CHANGE_PD | IBV_REREG_MR_CHANGE_ACCESS;
  if (flags == 0 || (flags & ~kKnown) != 0) return false;
  if ((flags & IBV_REREG_MR_CHANGE_TRANSLATION) && (range.addr == nullptr || range.length == 0)) {
    return false;
  }
  if ((flags & IBV_REREG_MR_CHANGE_PD) && pd == nullptr) return false;
  return (flags & IBV_REREG_MR_CHANGE_ACCESS) || range.access == 0;
}

// Registers anew, under new keys, and then takes the old registration back. So the old one stays
// valid if that fails. Returns 0 or an errno value.
int Reregister(Mr& mr, int flags, ibv_pd* pd, Range range) {
  if (const int error = mr.identity.Check(mr.ibv)) return error;
  if (!IsValidChange(flags, pd, range)) return EINVAL;
  const Mr old = mr;
  if ((flags & IBV_REREG_MR_CHANGE_TRANSLATION) == 0) {
    const unsigned access = range.access;
    range = old.range;
    range.access = access;
  }
  if ((flags & IBV_REREG_MR_CHANGE_ACCESS) == 0) range.access = old.range.access;
  if ((flags & IBV_REREG_MR_CHANGE_PD) == 0) pd = old.ibv.pd;
  if (const int error = CheckObjects(old.ibv.context, pd)) return error;
  if (const int error = Enter(pd, range, &mr)) return error;
  const int error = Leave(old);
  if (error != 0) {
    Leave(std::exchange(mr, old));
  }
  return error;
}

}  // namespace
}  // namespace softverbs

using softverbs::Context;
using softverbs::Mr;
using softverbs::Nic;
using softverbs::Pd;

SOFTVERBS_EXPORT ibv_mr* ibv_reg_mr(ibv_pd* pd, void* addr, size_t length, int access) {
  return softverbs::Register(
      pd, {addr, length, reinterpret_cast<uint64_t>(addr), static_cast<unsigned>(access)});
}

SOFTVERBS_EXPORT ibv_mr* ibv_reg_mr_iova(ibv_pd* pd, void* addr, size_t length, uint64_t iova,
                                         int access) {
  return softverbs::Register(pd, {addr, length, iova, static_cast<unsigned>(access)});
}

SOFTVERBS_EXPORT ibv_mr* ibv_reg_mr_iova2(ibv_pd* pd, void* addr, size_t length, uint64_t iova,
                                          unsigned int access) {
  return softverbs::Register(pd, {addr, length, iova, access});
}

SOFTVERBS_EXPORT ibv_mr* ibv_reg_dmabuf_mr(ibv_pd*, uint64_t, size_t, uint64_t, int, int) {
  errno = EOPNOTSUPP;
  return nullptr;
}

SOFTVERBS_EXPORT int ibv_rereg_mr(ibv_mr* ibv, int flags, ibv_pd* pd, void* addr, size_t length,
                                  int access) {
  if (softverbs::Inherited(ibv->context)) return 0;
  const int error = softverbs::Reregister(
      *Mr::From(ibv), flags, pd,
      {addr, length, reinterpret_cast<uint64_t>(addr), static_cast<unsigned>(access)});
  // The one code for a failure that leaves the region as it was.
  return softverbs::WithErrno(error) == 0 ? 0 : int{IBV_REREG_MR_ERR_INPUT};
}

SOFTVERBS_EXPORT int ibv_dereg_mr(ibv_mr* ibv) {
  if (softverbs::Inherited(ibv->context)) return 0;
  Mr* mr = Mr::From(ibv);
  if (const int error = mr->identity.Check(*ibv)) return softverbs::WithErrno(error);
  const softverbs::fault::Plan* plan = softverbs::fault::Active();
  if (plan != nullptr && plan->strict &&
      softverbs::InUse(*Context::From(ibv->context)->nic, ibv->lkey)) {
    softverbs::fault::Misuse("ibv_dereg_mr: a posted request uses the region");
  }
  if (const int error = softverbs::Leave(*mr)) return softverbs::WithErrno(error);
  delete mr;
  return 0;
}
