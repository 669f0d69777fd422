#ifndef GANNET_SERVER_GROUP_REPLICA_CLUSTER_REGISTER_H_
#define GANNET_SERVER_GROUP_REPLICA_CLUSTER_REGISTER_H_

#include <cstdint>
#include <map>
#include <string>

#include "common/cluster/cluster_config.h"

namespace gannet {

// What a member has seen of what the register has of the whole cluster (docs/partitions.md, "In the
// register"). It may be out of date.

struct SeenMap {
  ClusterConfig config;
  int64_t mod_revision = 0;  // of the key. It grows with each change, as config.revision does

  bool operator==(const SeenMap&) const = default;
};

// A partition is to have another group.
struct PartitionMoveWish {
  std::string to;     // the receiver
  bool stop = false;  // it is not wanted any more: open the partition if it is closed, and end it
  int64_t mod_revision = 0;  // of the key

  bool operator==(const PartitionMoveWish&) const = default;
};
using PartitionMoveWishes = std::map<uint16_t, PartitionMoveWish>;  // by partition

}  // namespace gannet

#endif  // GANNET_SERVER_GROUP_REPLICA_CLUSTER_REGISTER_H_
