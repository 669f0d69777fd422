#ifndef GANNET_TOOLS_KVCLI_RUN_INIT_H_
#define GANNET_TOOLS_KVCLI_RUN_INIT_H_

#include <chrono>
#include <optional>

#include "absl/status/status.h"
#include "tools/kvcli/cluster_command.h"
#include "tools/kvcli/etcd_session.h"

namespace gannet::kvcli {

// Executes "cluster init", and prints its answer: makes a cluster; or, if etcd has lost one whose
// members live, has them lead it again (lost_cluster.h). `wait`: how long members may take to say
// that they live; nullopt: 3 s. AlreadyExists: etcd has the cluster. FailedPrecondition: it cannot
// be; the text says what to do.
absl::Status RunInit(const ClusterCommand& command, std::optional<std::chrono::milliseconds> wait,
                     bool json, EtcdSession* session);

}  // namespace gannet::kvcli

#endif  // GANNET_TOOLS_KVCLI_RUN_INIT_H_
