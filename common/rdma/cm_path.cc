#include "common/rdma/cm_path.h"

#include <arpa/inet.h>
#include <poll.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <fstream>
#include <optional>

#include "absl/strings/str_cat.h"
#include "common/base/status_macros.h"
#include "common/rdma/cm_event.h"
#include "common/rdma/device.h"
#include "common/rdma/handle.h"
#include "common/rdma/status.h"

namespace gannet {
namespace {

std::string FirstLine(const std::string& path) {
  std::ifstream file(path);
  std::string line;
  std::getline(file, line);
  return line;
}

// Finds the entry of the port's table that has this GID. Two may have it, one for each version of
// RoCE. rdma_cm then takes the one of its default mode, which is v2 unless it was configured.
void FindGid(const ibv_context* verbs, const ibv_gid& gid, CmPath& path) {
  ibv_port_attr port{};
  auto* context = const_cast<ibv_context*>(verbs);
  if (ibv_query_port(context, static_cast<uint8_t>(path.port), &port) != 0) return;
  const std::string types = absl::StrCat("/sys/class/infiniband/", path.device, "/ports/",
                                         path.port, "/gid_attrs/types/");
  std::string mode = FirstLine(absl::StrCat("/sys/kernel/config/rdma_cm/", path.device, "/ports/",
                                            path.port, "/default_roce_mode"));
  if (mode.empty()) mode = "RoCE v2";
  for (int i = 0; i < port.gid_tbl_len; ++i) {
    ibv_gid entry{};
    if (ibv_query_gid(context, static_cast<uint8_t>(path.port), i, &entry) != 0) continue;
    if (std::memcmp(entry.raw, gid.raw, sizeof(gid.raw)) != 0) continue;
    std::string type = FirstLine(absl::StrCat(types, i));
    if (path.gid_index >= 0 && type != mode) continue;
    path.gid_index = i;
    path.gid_type = std::move(type);
  }
}

CmPath PathOf(const rdma_cm_id& id) {
  CmPath path{.device = id.verbs->device->name, .port = id.port_num};
  if (id.verbs->device->transport_type == IBV_TRANSPORT_IWARP) {
    path.gid_type = "iWARP";
    return path;
  }
  const ibv_gid& gid = id.route.addr.addr.ibaddr.sgid;
  if (std::ranges::all_of(gid.raw, [](uint8_t byte) { return byte == 0; })) return path;
  std::array<char, INET6_ADDRSTRLEN> text{};
  if (inet_ntop(AF_INET6, gid.raw, text.data(), text.size()) != nullptr) path.gid = text.data();
  FindGid(id.verbs, gid, path);
  return path;
}

absl::Status NoWay(const SocketAddress& to, const std::string& why) {
  return absl::UnavailableError(absl::StrCat("cannot reach ", to.HostString(), ": ", why));
}

}  // namespace

absl::StatusOr<CmPath> ResolvePath(const SocketAddress& to, int timeout_ms) {
  GANNET_ASSIGN_OR_RETURN(CmChannel channel, CmChannel::Create());
  rdma_cm_id* raw = nullptr;
  if (rdma_create_id(channel.get(), &raw, nullptr, RDMA_PS_TCP) != 0) {
    return LastErrnoStatus("cannot create an RDMA id");
  }
  const Handle<rdma_cm_id> id(raw);
  SocketAddress peer = to;
  if (rdma_resolve_addr(id.get(), nullptr, peer.get(), timeout_ms) != 0) {
    return LastErrnoStatus(absl::StrCat("cannot reach ", to.HostString()));
  }
  // The kernel ends the attempt in time. This bounds the wait if it does not.
  pollfd ready{channel.fd(), POLLIN, 0};
  poll(&ready, 1, 2 * timeout_ms);
  const std::optional<CmEvent> event = channel.Next();
  if (!event) return NoWay(to, "the address was not resolved in time");
  if (event->type != RDMA_CM_EVENT_ADDR_RESOLVED) {
    return NoWay(to, FailureText(event->type, event->status, /*softverbs=*/false));
  }
  if (id->verbs == nullptr) return NoWay(to, "no RDMA device is on the interface that leads there");
  return PathOf(*id);
}

}  // namespace gannet
