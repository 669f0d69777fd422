#ifndef GANNET_SERVER_GROUP_MEMBERS_REPLICA_ARRIVAL_H_
#define GANNET_SERVER_GROUP_MEMBERS_REPLICA_ARRIVAL_H_

#include <cstdint>
#include <memory>
#include <optional>

#include "common/protocol/connect.h"
#include "common/rdma/listener.h"
#include "server/sessions/session/session_key.h"

namespace gannet {

// A server's request to connect as a replica, which proved its key if there are keys.
struct ReplicaArrival {
  uint64_t name = 0;  // of the connection's events
  uint8_t rail = 0;   // of the server, by which it came
  ConnectRequest request{};
  IncomingRequest incoming;
  std::shared_ptr<const SessionKey> key = nullptr;  // null: none needed
};

}  // namespace gannet

#endif  // GANNET_SERVER_GROUP_MEMBERS_REPLICA_ARRIVAL_H_
