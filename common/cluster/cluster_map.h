#ifndef GANNET_COMMON_CLUSTER_CLUSTER_MAP_H_
#define GANNET_COMMON_CLUSTER_CLUSTER_MAP_H_

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "common/cluster/cluster_config.h"

namespace gannet {

// Returns the partition of a key: the upper 10 bits of its unseeded XXH3. Servers' indexes have
// seeds of their own, so this hash says nothing of a key's place there.
uint32_t PartitionOf(std::string_view key);

// Returns a configuration in which each partition is in the group that has the highest hash with it
// (rendezvous hashing). So a further group takes partitions from all others, and moves none between
// them. REQUIRES: 1 to kGroupsMax names, no two equal.
ClusterConfig FillPartitions(std::vector<std::string> groups);

}  // namespace gannet

#endif  // GANNET_COMMON_CLUSTER_CLUSTER_MAP_H_
