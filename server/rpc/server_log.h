#ifndef GANNET_SERVER_RPC_SERVER_LOG_H_
#define GANNET_SERVER_RPC_SERVER_LOG_H_

#include "server/rpc/connection_log.h"
#include "server/rpc/log_limit.h"

namespace gannet {

// The limits of one server's log. Each kind of line has its own, so the log stays readable whatever
// clients do. Thread safe.
struct ServerLog {
  static constexpr int64_t kNsPerMinute = 60 * kNsPerSecond;

  ConnectionLog connections;
  LogLimit refused_connections{1, kNsPerSecond};
  LogLimit refused_requests{1, kNsPerMinute};
  LogLimit broken_locks{1, kNsPerMinute};
  LogLimit different_sets{1, kNsPerMinute};
};

}  // namespace gannet

#endif  // GANNET_SERVER_RPC_SERVER_LOG_H_
