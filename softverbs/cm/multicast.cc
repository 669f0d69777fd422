// rdma_join_multicast and rdma_leave_multicast. No other process has to be asked. As in RoCE v2,
// the group of an address is the GID of that address.

#include <errno.h>
#include <rdma/rdma_cma.h>

#include <algorithm>
#include <utility>

#include "softverbs/base/export.h"
#include "softverbs/base/gid_table.h"
#include "softverbs/cm/cm_id.h"
#include "softverbs/cm/enter_group.h"
#include "softverbs/cm/param.h"

namespace softverbs::cm {
namespace {

constexpr uint32_t kMulticastQueuePair = 0xffffff;
constexpr uint16_t kNoLid = 0;

// Returns the first membership in the group of `address`, or the end. REQUIRES: mutex held.
std::vector<MulticastMembership>::iterator Find(CmId* id, const Address& address)
    SV_REQUIRES(state_mutex) {
  return std::find_if(
      id->memberships.begin(), id->memberships.end(),
      [&](const MulticastMembership& each) { return each.address.SameHost(address); });
}

// Returns 0 or an errno. REQUIRES: mutex held.
int Join(CmId* id, const Address& address, bool send_only, void* context) SV_REQUIRES(state_mutex) {
  const bool placed = id->state == IdState::kBound || id->state == IdState::kAddressResolved;
  if (!id->IsDatagram() || !placed || id->verbs == nullptr || !address.IsMulticast()) return EINVAL;
  if (const int error = CheckMulticast()) return error;
  id->memberships.push_back({.address = address, .send_only = send_only, .context = context});
  auto event = id->NewEvent(RDMA_CM_EVENT_MULTICAST_JOIN, 0);
  rdma_ud_param& param = event->param.ud;
  param.private_data = context;
  param.qp_num = kMulticastQueuePair;
  param.qkey = RDMA_UDP_QKEY;
  param.ah_attr = AddressHandle(id, address);
  id->QueueEvent(std::move(event));
  return 0;
}

// Returns 0 or an errno.
int Leave(CmId* id, const Address& address) {
  bool detach = false;
  {
    const LockGuard lock(state_mutex);
    const auto membership = Find(id, address);
    if (membership == id->memberships.end()) return EADDRNOTAVAIL;
    detach = membership->attached;
    id->memberships.erase(membership);
    if (Find(id, address) != id->memberships.end()) detach = false;  // it joined more than once
  }
  if (!detach || id->qp == nullptr) return 0;
  const ibv_gid group = address.ToGid();
  return ibv_detach_mcast(id->qp, &group, kNoLid);
}

int JoinFor(rdma_cm_id* handle, const sockaddr* addr, bool send_only, void* context) {
  CmId* id = CmId::From(handle);
  const auto address = Address::From(addr);
  if (id == nullptr || !address) return Result(EINVAL);
  {
    const LockGuard lock(state_mutex);
    if (const int error = Join(id, *address, send_only, context)) return Result(error);
  }
  return Complete(id);
}

}  // namespace

bool EnterGroup(QueuedEvent* event) {
  auto* id = static_cast<CmId*>(event->id);
  const ibv_gid group = event->param.ud.ah_attr.grh.dgid;
  {
    const LockGuard lock(state_mutex);
    const auto membership = std::find_if(
        id->memberships.begin(), id->memberships.end(), [&](const MulticastMembership& each) {
          return each.context == event->param.ud.private_data && !each.attached &&
                 std::equal(group.raw, group.raw + sizeof(group.raw), each.address.ToGid().raw);
        });
    if (membership == id->memberships.end()) return false;
    if (id->qp == nullptr || membership->send_only) return true;
    membership->attached = true;
  }
  if (const int error = ibv_attach_mcast(id->qp, &group, kNoLid)) {
    event->event = RDMA_CM_EVENT_MULTICAST_ERROR;
    event->status = -error;
  }
  return true;
}

}  // namespace softverbs::cm

using softverbs::cm::Address;
using softverbs::cm::CmId;
using softverbs::cm::Result;

SOFTVERBS_EXPORT int rdma_join_multicast(rdma_cm_id* id, sockaddr* addr, void* context) {
  return softverbs::cm::JoinFor(id, addr, /*send_only=*/false, context);
}

SOFTVERBS_EXPORT int rdma_join_multicast_ex(rdma_cm_id* id, rdma_cm_join_mc_attr_ex* attr,
                                            void* context) {
  constexpr uint32_t kAddress = RDMA_CM_JOIN_MC_ATTR_ADDRESS;
  constexpr uint32_t kFlags = RDMA_CM_JOIN_MC_ATTR_JOIN_FLAGS;
  if ((attr->comp_mask & kAddress) == 0 || (attr->comp_mask & kFlags) == 0 ||
      attr->comp_mask >= RDMA_CM_JOIN_MC_ATTR_RESERVED ||
      attr->join_flags >= RDMA_MC_JOIN_FLAG_RESERVED) {
    return Result(EINVAL);
  }
  const bool send_only = attr->join_flags == RDMA_MC_JOIN_FLAG_SENDONLY_FULLMEMBER;
  return softverbs::cm::JoinFor(id, attr->addr, send_only, context);
}

SOFTVERBS_EXPORT int rdma_leave_multicast(rdma_cm_id* handle, sockaddr* addr) {
  CmId* id = CmId::From(handle);
  const auto address = Address::From(addr);
  if (id == nullptr || !address) return Result(EINVAL);
  return Result(softverbs::cm::Leave(id, *address));
}
