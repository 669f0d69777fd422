#ifndef GANNET_COMMON_CLUSTER_CLUSTER_KEYS_H_
#define GANNET_COMMON_CLUSTER_CLUSTER_KEYS_H_

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>

namespace gannet {

// Where a cluster's configuration lies in etcd:
//
//   /gannet/CLUSTER/config      ClusterConfig
//   /gannet/CLUSTER/groups/G    GroupConfig, one for each group
//   /gannet/CLUSTER/nodes/N     NodeInfo, one for each process that has run
//   /gannet/CLUSTER/wishes/G    GroupWish, while an operator wants something of a group

inline constexpr size_t kClusterNameBytesMax = 32;

// Returns whether a cluster, a group or a node may be called so: 1 to kClusterNameBytesMax letters,
// digits, '.', '_' and '-', the first of which is a letter or a digit. So a name is a part of a key
// in etcd, of a flag (--group=g1:n1,n2), and IsServerName.
bool IsClusterName(std::string_view name);
// Says what a name may be, for messages: "a NAME has 1 to 32 letters, ...".
std::string WhatNamesAre(std::string_view of_what);

// REQUIRES of all: the names are valid (IsClusterName).
std::string ClusterPrefix(std::string_view cluster);  // all of the cluster's keys begin with it
std::string ConfigKey(std::string_view cluster);
std::string GroupKey(std::string_view cluster, std::string_view group);
std::string NodeKey(std::string_view cluster, std::string_view node);
std::string WishKey(std::string_view cluster, std::string_view group);

struct ClusterKey {
  enum class Kind { kConfig, kGroup, kNode, kWish };
  Kind kind = Kind::kConfig;
  std::string name = {};  // of the group or the node; not of kConfig

  bool operator==(const ClusterKey&) const = default;
};
// Returns what lies at a key of the cluster, or nullopt if it is none of the above.
std::optional<ClusterKey> ParseClusterKey(std::string_view cluster, std::string_view key);

}  // namespace gannet

#endif  // GANNET_COMMON_CLUSTER_CLUSTER_KEYS_H_
