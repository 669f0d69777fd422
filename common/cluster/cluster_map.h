#ifndef GANNET_COMMON_CLUSTER_CLUSTER_MAP_H_
#define GANNET_COMMON_CLUSTER_CLUSTER_MAP_H_

#include <string>
#include <vector>

#include "common/cluster/cluster_config.h"

namespace gannet {

// Returns a configuration in which each partition is in the group that has the highest hash with it
// (rendezvous hashing). So a further group takes partitions from all others, and moves none between
// them. REQUIRES: 1 to kGroupsMax names, no two equal.
ClusterConfig FillPartitions(std::vector<std::string> groups);

}  // namespace gannet

#endif  // GANNET_COMMON_CLUSTER_CLUSTER_MAP_H_
