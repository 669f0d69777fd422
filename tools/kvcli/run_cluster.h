#ifndef GANNET_TOOLS_KVCLI_RUN_CLUSTER_H_
#define GANNET_TOOLS_KVCLI_RUN_CLUSTER_H_

#include <gannet/types.h>

#include "tools/kvcli/command.h"

namespace gannet::kvcli {

// Does what "cluster" asks for, and prints the answer. Returns the exit code: kExitDone,
// kExitNotFound if it cannot be done now, kExitError if etcd gives no answer. REQUIRES: the verb is
// kCluster. `connect`: for what goes to servers, too.
int RunCluster(const Command& command, const Options& connect, bool json);

}  // namespace gannet::kvcli

#endif  // GANNET_TOOLS_KVCLI_RUN_CLUSTER_H_
