// rdma_set_option, and the ECE calls, which work like options.

#include <errno.h>
#include <infiniband/sa.h>
#include <rdma/rdma_cma.h>

#include <cstring>

#include "softverbs/base/export.h"
#include "softverbs/cm/cm_id.h"

namespace softverbs::cm {
namespace {

constexpr uint8_t kAckTimeoutMax = 31;  // five bits

// Reads an option of exactly type T; false if it has another size.
template <class T>
bool Read(const void* value, size_t size, T* out) {
  if (value == nullptr || size != sizeof(T)) return false;
  std::memcpy(out, value, sizeof(T));
  return true;
}

int SetReuseAddress(CmId* id, const void* value, size_t size) SV_REQUIRES(state_mutex) {
  int on;
  if (!Read(value, size, &on)) return EINVAL;
  if (id->state == IdState::kListening && on == 0) return EINVAL;
  id->reuse_address = on != 0;
  return 0;
}

int SetFamilyOnly(CmId* id, const void* value, size_t size) SV_REQUIRES(state_mutex) {
  int on;
  if (!Read(value, size, &on)) return EINVAL;
  if (id->state != IdState::kIdle && id->state != IdState::kBound) return EINVAL;
  id->v6_only = on != 0;
  return 0;
}

int SetAckTimeout(CmId* id, const void* value, size_t size) SV_REQUIRES(state_mutex) {
  uint8_t timeout;
  if (!Read(value, size, &timeout) || timeout > kAckTimeoutMax) return EINVAL;
  id->ack_timeout = timeout;
  return 0;
}

int SetIdOption(CmId* id, int name, const void* value, size_t size) SV_REQUIRES(state_mutex) {
  uint8_t type_of_service;
  switch (name) {
    case RDMA_OPTION_ID_TOS:  // accepted: there is no wire to mark packets on
      return Read(value, size, &type_of_service) ? 0 : EINVAL;
    case RDMA_OPTION_ID_REUSEADDR:
      return SetReuseAddress(id, value, size);
    case RDMA_OPTION_ID_AFONLY:
      return SetFamilyOnly(id, value, size);
    case RDMA_OPTION_ID_ACK_TIMEOUT:
      return SetAckTimeout(id, value, size);
    default:
      return ENOSYS;
  }
}

// A path chosen by the application replaces rdma_resolve_route. There is only one path here.
int SetPath(CmId* id, const void* value, size_t size) SV_REQUIRES(state_mutex) {
  if (value == nullptr || size == 0 || size % sizeof(ibv_path_data) != 0) return EINVAL;
  if (id->state != IdState::kAddressResolved) return EINVAL;
  id->state = IdState::kRouteResolved;
  id->PushEvent(RDMA_CM_EVENT_ROUTE_RESOLVED, 0);
  return 0;
}

}  // namespace
}  // namespace softverbs::cm

using softverbs::LockGuard;
using softverbs::cm::CmId;
using softverbs::cm::Result;
using softverbs::cm::state_mutex;

SOFTVERBS_EXPORT int rdma_set_option(rdma_cm_id* handle, int level, int optname, void* optval,
                                     size_t optlen) {
  CmId* id = CmId::From(handle);
  if (id == nullptr) return -1;
  const LockGuard lock(state_mutex);
  if (level == RDMA_OPTION_ID) {
    return Result(softverbs::cm::SetIdOption(id, optname, optval, optlen));
  }
  if (level == RDMA_OPTION_IB && optname == RDMA_OPTION_IB_PATH) {
    return Result(softverbs::cm::SetPath(id, optval, optlen));
  }
  return Result(ENOSYS);
}

SOFTVERBS_EXPORT int rdma_set_local_ece(rdma_cm_id* handle, ibv_ece* ece) {
  CmId* id = CmId::From(handle);
  if (id == nullptr || id->qp != nullptr || ece == nullptr || ece->vendor_id == 0 ||
      ece->comp_mask != 0) {
    return Result(EINVAL);
  }
  const LockGuard lock(state_mutex);
  id->local_ece = *ece;
  return 0;
}

SOFTVERBS_EXPORT int rdma_get_remote_ece(rdma_cm_id* handle, ibv_ece* ece) {
  CmId* id = CmId::From(handle);
  if (id == nullptr || id->qp != nullptr || ece == nullptr) return Result(EINVAL);
  const LockGuard lock(state_mutex);
  *ece = id->remote_ece;
  return 0;
}
