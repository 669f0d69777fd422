#ifndef GANNET_COMMON_CLUSTER_NODE_LIFE_H_
#define GANNET_COMMON_CLUSTER_NODE_LIFE_H_

#include <cstdint>
#include <string>
#include <string_view>

#include "absl/status/statusor.h"
#include "common/cluster/cluster_config.h"
#include "common/cluster/group_policy.h"

namespace gannet {

// What a process that has its group's items says of itself while etcd has lost the group: etcd has
// no register of it, or one that cannot have become of the one that the process knows
// (docs/group-recovery.md, "A register that is lost"). Without it, nobody could tell that the items
// are still there. While it lies in etcd, nobody founds an empty group in their place.
//
// It is written only then, and deleted when the register is there again. Encoded as the other keys
// are (cluster_config.h), with a format of its own.
struct NodeLife {
  uint64_t incarnation = 0;
  std::string group;
  GroupConfig known;   // the last register of the group that it believed; its epoch is never 0
  ClusterConfig map;   // the last map
  GroupPolicy policy;  // the last one of the group; without settings if there was none
  // It is that primary, and no other process can have led the group since.
  bool leads = false;
  uint64_t applied = 0;  // LSN

  bool operator==(const NodeLife&) const = default;
};

// Return what is wrong with it, or OK.
absl::Status Check(const NodeLife& life);
std::string Encode(const NodeLife& life);
absl::StatusOr<NodeLife> DecodeNodeLife(std::string_view text);

}  // namespace gannet

#endif  // GANNET_COMMON_CLUSTER_NODE_LIFE_H_
