#include "common/cluster/create_cluster.h"

#include "absl/container/flat_hash_set.h"
#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "common/base/status_macros.h"
#include "common/cluster/cluster_keys.h"
#include "common/cluster/cluster_map.h"

namespace gannet {
namespace {

// etcd takes 128 operations in a transaction unless it is told otherwise. One is the configuration,
// and each group has two keys.
constexpr size_t kNewGroupsMax = 63;

absl::Status CheckNames(const NewCluster& cluster) {
  if (!IsClusterName(cluster.name)) return absl::InvalidArgumentError(WhatNamesAre("cluster"));
  if (cluster.groups.empty() || cluster.groups.size() > kNewGroupsMax) {
    return absl::InvalidArgumentError(
        absl::StrCat("a new cluster has 1 to ", kNewGroupsMax, " groups"));
  }
  absl::flat_hash_set<std::string> groups, nodes;
  for (const NewCluster::Group& group : cluster.groups) {
    if (!IsClusterName(group.name)) return absl::InvalidArgumentError(WhatNamesAre("group"));
    if (!groups.insert(group.name).second) {
      return absl::InvalidArgumentError(absl::StrCat("two groups are called ", group.name));
    }
    for (const std::string& node : group.members) {
      if (!IsClusterName(node)) return absl::InvalidArgumentError(WhatNamesAre("node"));
      if (!nodes.insert(node).second) {
        return absl::InvalidArgumentError(
            absl::StrCat("node ", node, " is named twice. A node is a member of one group"));
      }
    }
  }
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<EtcdTxn> CreateClusterTxn(const NewCluster& cluster,
                                         absl::FunctionRef<uint64_t()> random) {
  GANNET_RETURN_IF_ERROR(CheckNames(cluster));
  EtcdTxn txn;
  txn.compares.push_back({.key = ClusterPrefix(cluster.name), .mod_revision = 0, .prefix = true});
  std::vector<std::string> names;
  for (const NewCluster::Group& group : cluster.groups) {
    const GroupConfig config = {.history = random() | 1,  // never 0
                                .members = group.members,
                                .lease_ms = cluster.lease_ms,
                                .min_copies = cluster.min_copies,
                                .ring_bytes = cluster.ring_bytes};
    if (const absl::Status wrong = Check(config); !wrong.ok()) {
      return absl::InvalidArgumentError(
          absl::StrCat("group ", group.name, " cannot be: ", wrong.message()));
    }
    txn.puts.push_back({GroupKey(cluster.name, group.name), Encode(config)});
    txn.puts.push_back({PolicyKey(cluster.name, group.name), Encode(cluster.policy)});
    names.push_back(group.name);
  }
  txn.puts.push_back({ConfigKey(cluster.name), Encode(FillPartitions(names))});
  return txn;
}

}  // namespace gannet
