#ifndef GANNET_SERVER_GROUP_MEMBERS_REPLICA_REQUEST_H_
#define GANNET_SERVER_GROUP_MEMBERS_REPLICA_REQUEST_H_

#include <cstdint>
#include <optional>

#include "common/base/clocks.h"
#include "common/protocol/connect.h"
#include "server/group/members/link_work.h"

namespace gannet {

// The connection requests of a link between two servers of a group. They are a client's requests
// with kConnectReplica among the features. The token says which two belong together, and qp_index
// is the LinkConnection.

// `token` is not 0. It serves as nonce, too, so that a request is unlike any other.
ConnectRequest MakeReplicaRequest(LinkConnection which, uint64_t token, WallTime now);

// Returns which connection of a link a request asks for; nullopt: it is a client's, or asks for
// nothing that there is.
bool IsReplicaRequest(const ConnectRequest& request);
std::optional<LinkConnection> LinkConnectionOf(const ConnectRequest& request);

}  // namespace gannet

#endif  // GANNET_SERVER_GROUP_MEMBERS_REPLICA_REQUEST_H_
