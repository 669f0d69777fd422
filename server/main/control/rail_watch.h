#ifndef GANNET_SERVER_MAIN_CONTROL_RAIL_WATCH_H_
#define GANNET_SERVER_MAIN_CONTROL_RAIL_WATCH_H_

#include <array>
#include <span>
#include <string_view>

#include "absl/status/status.h"
#include "common/protocol/rails_reply.h"
#include "common/rdma/device.h"
#include "common/rdma/port.h"
#include "server/main/control/server_workers.h"

namespace gannet {

// Watches the ports and the devices of a server's rails: shows on the board how each is, and says
// in the log what changed. A device that is gone takes its rails with it, for as long as the
// process lives; the others go on, but for those of a group's member. Of one rail it watches
// nothing. Owner thread only.
class RailWatch {
 public:
  // `workers` outlive it. `in_group`: no rail is left once any is lost. The links of a device that
  // is gone may never be flushed, and until then nobody takes over, or is removed.
  RailWatch(const ServerWorkers& workers, bool in_group);

  // Looks at all ports and takes the devices' events.
  void Look();
  // The device is gone: the workers close its connections. `how` is the end of a sentence.
  void OnLost(const ibv_context* verbs, std::string_view how);

  // Not OK: no rail is left, and the server ends.
  const absl::Status& status() const { return status_; }

 private:
  void CountPaths(const ibv_context* verbs, std::span<const PathEvent> events);
  void Show(size_t rail);

  const ServerWorkers& workers_;
  ServerContext& server_;
  const bool in_group_;
  std::array<bool, kRailsMax> lost_{};
  absl::Status status_;
};

}  // namespace gannet

#endif  // GANNET_SERVER_MAIN_CONTROL_RAIL_WATCH_H_
