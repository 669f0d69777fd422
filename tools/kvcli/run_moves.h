#ifndef GANNET_TOOLS_KVCLI_RUN_MOVES_H_
#define GANNET_TOOLS_KVCLI_RUN_MOVES_H_

#include <gannet/types.h>

#include <chrono>
#include <optional>

#include "absl/status/status.h"
#include "tools/kvcli/cluster_command.h"
#include "tools/kvcli/etcd_session.h"

namespace gannet::kvcli {

// The actions of "cluster" on the map of partitions: add-group, remove-group, move, drain, balance
// and moves. Servers move partitions; this only writes what is wanted into etcd, and watches. So
// nothing depends on it: if it ends in the middle, what was asked for goes on, and the same command
// again asks for the rest.
//
// Prints the answer, and progress to the standard error. `wait`: for how long; nullopt: for ever.
absl::Status RunMoves(const ClusterCommand& command, std::optional<std::chrono::milliseconds> wait,
                      bool json, const Options& connect, EtcdSession* session);

}  // namespace gannet::kvcli

#endif  // GANNET_TOOLS_KVCLI_RUN_MOVES_H_
