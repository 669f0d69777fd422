#ifndef GANNET_TOOLS_KVCLI_RUN_CLUSTER_H_
#define GANNET_TOOLS_KVCLI_RUN_CLUSTER_H_

#include <gannet/types.h>

#include "absl/status/status.h"
#include "tools/kvcli/command.h"

namespace gannet::kvcli {

// How servers are reached, for what goes to them, too.
struct RunClusterFrom {
  Options connect;
  absl::Status device;  // what the choice of a device came to
};

// Does what "cluster" asks for, and prints the answer. Returns the exit code: kExitDone,
// kExitNotFound if it cannot be done now, kExitError if etcd gives no answer; after status --check
// kExitNotFound if copies are missing, kExitError if a group is not served, or if nobody knows.
// REQUIRES: the verb is kCluster.
int RunCluster(const Command& command, const RunClusterFrom& from, bool json);

}  // namespace gannet::kvcli

#endif  // GANNET_TOOLS_KVCLI_RUN_CLUSTER_H_
