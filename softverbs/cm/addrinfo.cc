// rdma_getaddrinfo: getaddrinfo(3) with RDMA's words for socket type and protocol. And
// rdma_resolve_addrinfo, which tells the end of it by an event.

#include <errno.h>
#include <netdb.h>
#include <rdma/rdma_cma.h>
#include <stdlib.h>
#include <string.h>

#include <memory>
#include <utility>

#include "softverbs/base/export.h"
#include "softverbs/base/log.h"
#include "softverbs/cm/cm_id.h"

namespace softverbs::cm {
namespace {

constexpr int kBySubnetAdministrator = 0x10;  // RAI_SA, since version 60 of rdma-core

addrinfo ToSocketHints(const rdma_addrinfo& hints) {
  addrinfo out = {};
  if ((hints.ai_flags & RAI_PASSIVE) != 0) out.ai_flags |= AI_PASSIVE;
  if ((hints.ai_flags & RAI_NUMERICHOST) != 0) out.ai_flags |= AI_NUMERICHOST;
  out.ai_family = hints.ai_family;
  const bool datagram = hints.ai_port_space == RDMA_PS_UDP || hints.ai_port_space == RDMA_PS_IPOIB;
  if (hints.ai_qp_type == IBV_QPT_UD) {
    out.ai_socktype = SOCK_DGRAM;
  } else if (hints.ai_qp_type != 0) {
    out.ai_socktype = SOCK_STREAM;
  }
  if (datagram) {
    out.ai_protocol = IPPROTO_UDP;
  } else if (hints.ai_port_space == RDMA_PS_TCP || out.ai_socktype == SOCK_STREAM) {
    out.ai_protocol = IPPROTO_TCP;
  }
  return out;
}

// Returns 0 or an errno.
int CopyAddress(const sockaddr* from, socklen_t size, sockaddr** to, socklen_t* to_size) {
  *to = static_cast<sockaddr*>(malloc(size));
  if (*to == nullptr) return ENOMEM;
  memcpy(*to, from, size);
  *to_size = size;
  return 0;
}

// Returns 0 or an errno.
int FillFromSockets(const addrinfo& found, bool passive, const rdma_addrinfo& hints,
                    rdma_addrinfo* out) {
  const bool stream = found.ai_socktype != SOCK_DGRAM;
  out->ai_family = found.ai_family;
  out->ai_qp_type = hints.ai_qp_type != 0 ? hints.ai_qp_type : stream ? IBV_QPT_RC : IBV_QPT_UD;
  out->ai_port_space = hints.ai_port_space != 0 ? hints.ai_port_space
                       : stream                 ? RDMA_PS_TCP
                                                : RDMA_PS_UDP;
  if (passive) out->ai_flags = RAI_PASSIVE;
  char** name = passive ? &out->ai_src_canonname : &out->ai_dst_canonname;
  if (found.ai_canonname != nullptr) *name = strdup(found.ai_canonname);
  return passive
             ? CopyAddress(found.ai_addr, found.ai_addrlen, &out->ai_src_addr, &out->ai_src_len)
             : CopyAddress(found.ai_addr, found.ai_addrlen, &out->ai_dst_addr, &out->ai_dst_len);
}

// Returns what rdma_getaddrinfo returns: 0, an EAI_* code, or -1 and errno.
int Look(const char* node, const char* service, const rdma_addrinfo& hints, rdma_addrinfo* out) {
  const addrinfo socket_hints = ToSocketHints(hints);
  addrinfo* found = nullptr;
  if (const int error = getaddrinfo(node, service, &socket_hints, &found)) return error;
  const bool passive = (hints.ai_flags & RAI_PASSIVE) != 0;
  const int error = FillFromSockets(*found, passive, hints, out);
  freeaddrinfo(found);
  return Result(error);
}

// Without names, fills in the answer from the hints.
int FillFromHints(const rdma_addrinfo& hints, rdma_addrinfo* out) {
  out->ai_flags = hints.ai_flags;
  out->ai_family = hints.ai_family;
  out->ai_qp_type = hints.ai_qp_type;
  out->ai_port_space = hints.ai_port_space;
  if (hints.ai_dst_len == 0) return 0;
  return Result(
      CopyAddress(hints.ai_dst_addr, hints.ai_dst_len, &out->ai_dst_addr, &out->ai_dst_len));
}

// Returns 0 or an errno.
int Resolve(const char* node, const char* service, const rdma_addrinfo* hints, Info* info) {
  if (hints != nullptr && (hints->ai_flags & kBySubnetAdministrator) != 0) {
    Report("rdma_resolve_addrinfo: no subnet administrator that could be asked");
    return EOPNOTSUPP;
  }
  rdma_addrinfo* found = nullptr;
  const int error = rdma_getaddrinfo(node, service, hints, &found);
  info->reset(found);
  if (error == 0) return 0;
  return error == -1 || error == EAI_SYSTEM ? errno : ENODATA;
}

}  // namespace
}  // namespace softverbs::cm

using softverbs::cm::CmId;
using softverbs::cm::Result;

SOFTVERBS_EXPORT int rdma_getaddrinfo(const char* node, const char* service,
                                      const rdma_addrinfo* hints, rdma_addrinfo** res) {
  if (node == nullptr && service == nullptr && hints == nullptr) return Result(EINVAL);
  static constexpr rdma_addrinfo kNoHints = {};
  if (hints == nullptr) hints = &kNoHints;
  softverbs::cm::Info info(static_cast<rdma_addrinfo*>(calloc(1, sizeof(rdma_addrinfo))));
  if (info == nullptr) return Result(ENOMEM);
  const bool named = node != nullptr || service != nullptr;
  const int error = named ? softverbs::cm::Look(node, service, *hints, info.get())
                          : softverbs::cm::FillFromHints(*hints, info.get());
  if (error != 0) return error;
  if (info->ai_src_len == 0 && hints->ai_src_len != 0) {
    if (const int failed = softverbs::cm::CopyAddress(hints->ai_src_addr, hints->ai_src_len,
                                                      &info->ai_src_addr, &info->ai_src_len)) {
      return Result(failed);
    }
  }
  *res = info.release();
  return 0;
}

SOFTVERBS_EXPORT void rdma_freeaddrinfo(rdma_addrinfo* res) {
  while (res != nullptr) {
    rdma_addrinfo* next = res->ai_next;
    free(res->ai_connect);
    free(res->ai_route);
    free(res->ai_src_canonname);
    free(res->ai_dst_canonname);
    free(res->ai_src_addr);
    free(res->ai_dst_addr);
    free(res);
    res = next;
  }
}

// The names are looked up before this returns.
SOFTVERBS_EXPORT int rdma_resolve_addrinfo(rdma_cm_id* handle, const char* node,
                                           const char* service, const rdma_addrinfo* hints) {
  CmId* id = CmId::From(handle);
  if (id == nullptr) return -1;
  softverbs::cm::Info info;
  if (const int error = softverbs::cm::Resolve(node, service, hints, &info)) return Result(error);
  {
    const softverbs::LockGuard lock(softverbs::cm::state_mutex);
    if (id->resolved != nullptr) return Result(EBUSY);  // nobody took the answer before this one
    id->resolved = std::move(info);
    id->PushEvent(static_cast<rdma_cm_event_type>(softverbs::cm::kAddrinfoResolved), 0);
  }
  return softverbs::cm::Complete(id);
}

SOFTVERBS_EXPORT int rdma_query_addrinfo(rdma_cm_id* handle, rdma_addrinfo** info) {
  CmId* id = CmId::From(handle);
  if (id == nullptr || info == nullptr) return Result(EINVAL);
  const softverbs::LockGuard lock(softverbs::cm::state_mutex);
  if (id->resolved == nullptr) return Result(ENOENT);
  *info = id->resolved.release();
  return 0;
}
