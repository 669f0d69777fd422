#ifndef GANNET_TOOLS_KVCLI_CLUSTER_STATUS_H_
#define GANNET_TOOLS_KVCLI_CLUSTER_STATUS_H_

#include <string>

#include "tools/kvcli/cluster_state.h"
#include "tools/kvcli/text.h"

namespace gannet::kvcli {

// What "cluster status" shows, for people and for programs: what etcd has, and what members
// answered if they were asked. Pure: no I/O.
std::string StatusText(const ClusterState& state);
Json StatusJson(const ClusterState& state);

}  // namespace gannet::kvcli

#endif  // GANNET_TOOLS_KVCLI_CLUSTER_STATUS_H_
