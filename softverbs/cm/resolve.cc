// rdma_resolve_addr and rdma_resolve_route: the active side finds its own address and the peer's.
// There is nothing to ask the network: the answer is queued before the call returns.

#include <errno.h>
#include <rdma/rdma_cma.h>

#include "softverbs/base/devices.h"
#include "softverbs/base/export.h"
#include "softverbs/base/log.h"
#include "softverbs/base/net_config.h"
#include "softverbs/cm/bind.h"
#include "softverbs/cm/cm_id.h"
#include "softverbs/cm/remote.h"

namespace softverbs::cm {
namespace {

// Chooses the id's own address for a connection to another host. Returns 0 or an errno.
int ChooseSourceForHost(const CmId* id, const std::optional<Address>& wanted,
                        const Address& destination, Address* source) SV_REQUIRES(state_mutex) {
  const auto net = SourceForHost(destination);
  if (!net) {
    Report("cannot reach %s: same host only%s", destination.Host().c_str(),
           Net() == nullptr ? ", unless SOFTVERBS_NET is set" : "");
    return EHOSTUNREACH;
  }
  Address own = wanted.value_or(Address::Wildcard(destination.family()));
  if (id->state == IdState::kBound) own = id->local;
  const uint16_t port = own.port();
  own.set_port(0);
  if (!own.IsWildcard() && !Net()->Has(own.Unmapped().ToGid())) {
    Report("cannot reach %s from %s: only the addresses of SOFTVERBS_NET reach other hosts",
           destination.Host().c_str(), own.Host().c_str());
    return EHOSTUNREACH;
  }
  *source = own.IsWildcard() ? *net : own;
  source->set_port(port);
  return 0;
}

// Chooses the id's own address for a connection to `destination`. Returns 0 or an errno.
int ChooseSource(const CmId* id, const std::optional<Address>& wanted, const Address& destination,
                 Address* source) SV_REQUIRES(state_mutex) {
  const bool bound = id->state == IdState::kBound;
  if (wanted && !bound) *source = *wanted;
  if (bound) *source = id->local;
  const uint16_t port = source->port();
  if (!source->IsWildcard()) return bound ? 0 : CheckLocal(*source);
  // An id bound to the IPv6 wildcard may connect to an IPv4 address, and then has one itself.
  *source = SourceFor(destination).value_or(Address::Loopback(destination.family()));
  // The kernel answers 127.0.0.1 for all of 127.0.0.0/8. Of several devices, the one is meant that
  // has the address.
  const bool one_host = !destination.IsMulticast();
  if (one_host && PortOf(source->ToGid()) != PortOf(destination.ToGid())) *source = destination;
  source->set_port(port);
  return 0;
}

// REQUIRES: mutex held.
int Resolve(CmId* id, const std::optional<Address>& wanted, const Address& destination)
    SV_REQUIRES(state_mutex) {
  if (id->state != IdState::kIdle && id->state != IdState::kBound) return EINVAL;
  const bool group = id->IsDatagram() && destination.IsMulticast();
  const int local_error = group ? 0 : CheckLocal(destination);
  if (local_error != 0 && local_error != EADDRNOTAVAIL) return local_error;
  // Writes a public field before the event, because another thread may get the event.
  destination.CopyTo(&id->route.addr.dst_storage);
  Address source = Address::Wildcard(destination.family());
  if (local_error != 0 || (!group && SourceForHost(destination))) {
    if (const int error = ChooseSourceForHost(id, wanted, destination, &source)) {
      id->PushEvent(RDMA_CM_EVENT_ADDR_ERROR, -error);
      return 0;
    }
  } else if (const int error = ChooseSource(id, wanted, destination, &source)) {
    return error;
  }
  if (id->state == IdState::kBound) {
    id->local = source;  // the port stays claimed under the name it was bound with
  } else if (const int error = ClaimFor(id, PortUse::kSource, source)) {
    return error;
  }
  id->remote = destination;
  id->state = IdState::kAddressResolved;
  id->PushEvent(RDMA_CM_EVENT_ADDR_RESOLVED, 0);
  return 0;
}

}  // namespace
}  // namespace softverbs::cm

using softverbs::LockGuard;
using softverbs::cm::Address;
using softverbs::cm::CmId;
using softverbs::cm::IdState;
using softverbs::cm::Result;
using softverbs::cm::state_mutex;

SOFTVERBS_EXPORT int rdma_resolve_addr(rdma_cm_id* handle, sockaddr* src_addr, sockaddr* dst_addr,
                                       int /*timeout_ms: the answer is there at once*/) {
  CmId* id = CmId::From(handle);
  const auto source = Address::From(src_addr);
  auto destination = Address::From(dst_addr);
  if (id == nullptr || !destination || (src_addr != nullptr && !source)) return Result(EINVAL);
  if (source && source->family() != destination->family()) return Result(EINVAL);
  if (destination->IsWildcard()) {  // means this host, as it does to connect(2)
    const uint16_t port = destination->port();
    destination = Address::Loopback(destination->family());
    destination->set_port(port);
  }
  {
    const LockGuard lock(state_mutex);
    if (const int error = softverbs::cm::Resolve(id, source, *destination)) return Result(error);
  }
  return softverbs::cm::Complete(id);
}

SOFTVERBS_EXPORT int rdma_resolve_route(rdma_cm_id* handle, int /*timeout_ms*/) {
  CmId* id = CmId::From(handle);
  if (id == nullptr) return -1;
  {
    const LockGuard lock(state_mutex);
    if (id->state != IdState::kAddressResolved) return Result(EINVAL);
    id->state = IdState::kRouteResolved;
    id->PushEvent(RDMA_CM_EVENT_ROUTE_RESOLVED, 0);
  }
  return softverbs::cm::Complete(id);
}
