// rdma_bind_addr and rdma_listen: an id gets an address and a port of this host.

#include "softverbs/cm/bind.h"

#include <errno.h>
#include <rdma/rdma_cma.h>

#include <algorithm>
#include <utility>

#include "softverbs/base/export.h"
#include "softverbs/base/net_config.h"
#include "softverbs/cm/listening_socket.h"
#include "softverbs/cm/port_name.h"
#include "softverbs/cm/steps.h"
#include "softverbs/nic/nic.h"

namespace softverbs::cm {
namespace {

constexpr int kBacklogMax = 1024;  // as the kernel's rdma_ucm.max_backlog

void PublishLocal(CmId* id) SV_REQUIRES(state_mutex) {
  id->local.CopyTo(&id->route.addr.src_storage);
  id->route.addr.addr.ibaddr.sgid = id->local.ToGid();
}

// Claims the name of the id's address, which other ids were allowed to share so far. REQUIRES:
// mutex held.
int ClaimShared(CmId* id) SV_REQUIRES(state_mutex) {
  if (id->port_holder) return 0;
  return ClaimPort(id->ps, id->v6_only.value_or(false), PortUse::kListener, &id->local,
                   &id->port_holder);
}

// REQUIRES: mutex held.
int StartListening(CmId* id, int backlog) SV_REQUIRES(state_mutex) {
  if (id->state != IdState::kBound) return EINVAL;
  if (const int error = ClaimShared(id)) return error;
  const int places = backlog <= 0 ? kBacklogMax : std::min(backlog, kBacklogMax);
  auto listener = std::make_shared<ListeningSocket>(
      id->IsDatagram() ? MessageKind::kServiceRequest : MessageKind::kRequest,
      [id](std::shared_ptr<PeerSocket> peer, const Message& message) {
        state_mutex.AssertHeld();
        OnRequest(id, std::move(peer), message);
      },
      std::move(id->port_holder), places);
  if (const int error = listener->Start()) return error;
  id->listener = std::move(listener);
  id->state = IdState::kListening;
  return 0;
}

}  // namespace

int ClaimFor(CmId* id, PortUse use, Address wanted) {
  const bool chosen = wanted.port() == 0;
  UniqueFd holder;
  const int error = ClaimPort(id->ps, id->v6_only.value_or(false), use, &wanted, &holder);
  if (error != 0) return error;
  id->local = wanted;
  // A shared port is only checked now, because the id that binds it may not be the one that listens
  // on it.
  if (chosen || !id->reuse_address) id->port_holder = std::move(holder);
  return 0;
}

int Bind(CmId* id, const Address& wanted) {
  if (!wanted.IsWildcard()) {
    if (const int error = CheckLocal(wanted)) return error;
  }
  {
    const LockGuard lock(state_mutex);
    if (id->state != IdState::kIdle) return EINVAL;
    if (const int error = ClaimFor(id, PortUse::kListener, wanted)) return error;
    id->state = IdState::kBound;
    PublishLocal(id);
  }
  // A wildcard is not bound to a device. Each of its connections will be.
  return wanted.IsWildcard() ? 0 : id->BindDevice();
}

}  // namespace softverbs::cm

using softverbs::cm::Address;
using softverbs::cm::CmId;
using softverbs::cm::Result;

SOFTVERBS_EXPORT int rdma_bind_addr(rdma_cm_id* handle, sockaddr* addr) {
  CmId* id = CmId::From(handle);
  const auto wanted = Address::From(addr);
  if (id == nullptr || !wanted) return Result(EINVAL);
  return Result(softverbs::cm::Bind(id, *wanted));
}

SOFTVERBS_EXPORT int rdma_listen(rdma_cm_id* handle, int backlog) {
  CmId* id = CmId::From(handle);
  if (id == nullptr) return -1;
  bool idle;
  {
    const softverbs::LockGuard lock(softverbs::cm::state_mutex);
    idle = id->state == softverbs::cm::IdState::kIdle;
  }
  if (idle) {
    if (const int error = softverbs::cm::Bind(id, Address::Wildcard(AF_INET))) {
      return Result(error);
    }
  }
  // An id at the wildcard has no device yet, but other hosts reach it through the adapter's port.
  if (softverbs::Net() != nullptr && softverbs::Nic::Get() == nullptr) return Result(errno);
  const softverbs::LockGuard lock(softverbs::cm::state_mutex);
  return Result(softverbs::cm::StartListening(id, backlog));
}

SOFTVERBS_EXPORT __be16 rdma_get_src_port(rdma_cm_id* id) {
  const auto address = Address::From(&id->route.addr.src_addr);
  return address ? htons(address->port()) : 0;
}

SOFTVERBS_EXPORT __be16 rdma_get_dst_port(rdma_cm_id* id) {
  const auto address = Address::From(&id->route.addr.dst_addr);
  return address ? htons(address->port()) : 0;
}
