#ifndef GANNET_TOOLS_KVCLI_RUN_CLUSTER_H_
#define GANNET_TOOLS_KVCLI_RUN_CLUSTER_H_

#include "tools/kvcli/command.h"

namespace gannet::kvcli {

// Does what "cluster" asks for, and prints the answer. Returns the exit code: kExitDone,
// kExitNotFound if it cannot be done now, kExitError if etcd gives no answer. REQUIRES: the verb is
// kCluster.
int RunCluster(const Command& command, bool json);

}  // namespace gannet::kvcli

#endif  // GANNET_TOOLS_KVCLI_RUN_CLUSTER_H_
