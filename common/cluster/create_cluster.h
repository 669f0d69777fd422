#ifndef GANNET_COMMON_CLUSTER_CREATE_CLUSTER_H_
#define GANNET_COMMON_CLUSTER_CREATE_CLUSTER_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/functional/function_ref.h"
#include "absl/status/statusor.h"
#include "common/cluster/cluster_config.h"
#include "common/cluster/group_policy.h"
#include "common/etcd/etcd_messages.h"

namespace gannet {

// A cluster that is to be created.
struct NewCluster {
  struct Group {
    std::string name;
    std::vector<std::string> members;  // the names of its nodes
  };
  std::string name;
  std::vector<Group> groups;
  uint32_t lease_ms = kGroupLeaseMsDefault;
  uint32_t min_copies = 1;
  uint64_t ring_bytes = kGroupRingBytesDefault;
  GroupPolicy policy = DefaultGroupPolicy();
};

// Returns the transaction that creates all keys of the cluster, and is refused if there is any.
// `random` gives the groups' histories. InvalidArgument says what the cluster may not be: an odd
// name, two groups of one name, a node in two groups.
absl::StatusOr<EtcdTxn> CreateClusterTxn(const NewCluster& cluster,
                                         absl::FunctionRef<uint64_t()> random);

}  // namespace gannet

#endif  // GANNET_COMMON_CLUSTER_CREATE_CLUSTER_H_
