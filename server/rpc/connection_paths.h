#ifndef GANNET_SERVER_RPC_CONNECTION_PATHS_H_
#define GANNET_SERVER_RPC_CONNECTION_PATHS_H_

#include <cstdint>
#include <vector>

#include "common/base/boot_time.h"
#include "common/base/clock.h"
#include "common/rdma/alternate_paths.h"
#include "server/rpc/worker_context.h"

namespace gannet {

// Loads alternate paths on the connections of one worker, if two rails are ports of one device that
// has them (docs/rails.md#alternate-paths): a connection by either may go by the other. Owner
// thread only.
class ConnectionPaths {
 public:
  // `context` outlives this.
  explicit ConnectionPaths(WorkerContext& context);

  // Looks which are to be loaded, or to be loaded again.
  void Look();
  // When to look next.
  BootTime Next() const {
    return looks_ && !context_.connections.empty() ? context_.now.boot + kLookNs
                                                   : BootTime::Never();
  }

 private:
  static constexpr int64_t kLookNs = kNsPerSecond / 4;

  WorkerContext& context_;
  const std::vector<bool> has_them_;  // by rail
  const bool looks_;                  // at any
  uint32_t changes_ = 0;              // of RailBoard::path_changes
  AlternatePaths paths_;
};

}  // namespace gannet

#endif  // GANNET_SERVER_RPC_CONNECTION_PATHS_H_
