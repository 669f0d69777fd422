#include "server/group/members/replica_request.h"

#include "common/auth/handshake.h"
#include "common/layout/key_hash.h"

namespace gannet {

ConnectRequest MakeReplicaRequest(LinkConnection which, uint64_t token, WallTime now) {
  const auto index = static_cast<uint16_t>(which);
  ConnectRequest request = MakeConnectRequest(token, index, Mix64(token + index), now);
  request.features |= kConnectReplica;
  return request;
}

bool IsReplicaRequest(const ConnectRequest& request) {
  return (request.features & kConnectReplica) != 0;
}

std::optional<LinkConnection> LinkConnectionOf(const ConnectRequest& request) {
  if (!IsReplicaRequest(request) || request.session_token == 0) return std::nullopt;
  switch (request.qp_index) {
    case 0:
      return LinkConnection::kControl;
    case 1:
      return LinkConnection::kStream;
    default:
      return std::nullopt;
  }
}

}  // namespace gannet
