#ifndef GANNET_TOOLS_KVCLI_LOST_CLUSTER_H_
#define GANNET_TOOLS_KVCLI_LOST_CLUSTER_H_

#include <cstdint>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "common/cluster/create_cluster.h"
#include "common/cluster/node_life.h"
#include "common/etcd/etcd_messages.h"
#include "tools/kvcli/cluster_state.h"

namespace gannet::kvcli {

// What etcd is to become if it has lost a cluster, and members say that they have its items
// (lives/N; docs/cluster-lost.md, "etcd's data is lost"). Pure: no I/O.

// A process that lives writes its note again if it names another process. So this asks for a sign
// of life, and founders see the note meanwhile. Returns the note that asks.
NodeLife Asking(NodeLife life);
bool IsAsking(const NodeLife& life);

// What `init` does.
struct InitPlan {
  EtcdTxn txn;                        // without puts and deletes: etcd has all already
  std::vector<std::string> adopting;  // groups whose primaries live, and adopt them
  std::string advice;                 // for the groups that nobody leads; empty: there are none
};
// `items` are all of the cluster's keys. `living` are the nodes of `lives` whose processes live.
//   FailedPrecondition: members had items that nobody has any more, or the groups are others than
//   members know; the text says what to do.
absl::StatusOr<InitPlan> PlanInit(const NewCluster& cluster, const EtcdTxn& create,
                                  const std::vector<EtcdKeyValue>& items, const Lives& lives,
                                  const std::set<std::string>& living);

// For people: who lives, and how to take over what they have. Empty: nobody says so.
std::string LivesText(const std::string& cluster, const Lives& lives);

// Returns whose copy of the group's items is better than the node's, and why; empty: nobody's that
// is known.
std::string WhatIsBetter(const ClusterState& state, const std::string& group,
                         const std::string& node);

}  // namespace gannet::kvcli

#endif  // GANNET_TOOLS_KVCLI_LOST_CLUSTER_H_
