#ifndef GANNET_COMMON_CLUSTER_CLUSTER_KEYS_H_
#define GANNET_COMMON_CLUSTER_CLUSTER_KEYS_H_

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace gannet {

// Where a cluster's configuration lies in etcd:
//
//   /gannet/CLUSTER/config      ClusterConfig
//   /gannet/CLUSTER/groups/G    GroupConfig, one for each group
//   /gannet/CLUSTER/nodes/N     NodeInfo, one for each process that has run
//   /gannet/CLUSTER/versions/N  NodeVersion, beside nodes/N
//   /gannet/CLUSTER/rails/N     NodeRails, beside nodes/N, of processes that have several rails
//   /gannet/CLUSTER/disks/N     NodeDisk, beside nodes/N, of processes that have a disk
//   /gannet/CLUSTER/lives/N     NodeLife, beside nodes/N, while etcd has lost the node's group
//   /gannet/CLUSTER/policies/G  GroupPolicy, beside groups/G
//   /gannet/CLUSTER/wishes/G    GroupWish, while an operator wants something of a group
//   /gannet/CLUSTER/moves/P     MoveInfo, while partition P is to have another group

inline constexpr size_t kClusterNameBytesMax = 32;
// How many moves one transaction may compare and change. etcd takes 128 compares and as many
// changes, and the map and whoever asks need some, too.
inline constexpr size_t kMovesOfTxnMax = 100;

// Returns whether a cluster, a group or a node may be called so: 1 to kClusterNameBytesMax letters,
// digits, '.', '_' and '-', the first of which is a letter or a digit. So a name is a part of a key
// in etcd, of a flag (--group=g1:n1,n2), and IsServerName.
bool IsClusterName(std::string_view name);
// Says what a name may be, for messages: "a NAME has 1 to 32 letters, ...".
std::string WhatNamesAre(std::string_view of_what);

// Returns the number of a partition, which is written in one way only: decimal, without zeros
// before it. nullopt: it is none.
std::optional<uint16_t> ParsePartition(std::string_view text);

// REQUIRES of all: the names are valid (IsClusterName).
std::string ClusterPrefix(std::string_view cluster);  // all of the cluster's keys begin with it
std::string ConfigKey(std::string_view cluster);
std::string GroupKey(std::string_view cluster, std::string_view group);
std::string NodeKey(std::string_view cluster, std::string_view node);
std::string VersionKey(std::string_view cluster, std::string_view node);
std::string RailsKey(std::string_view cluster, std::string_view node);
std::string DiskKey(std::string_view cluster, std::string_view node);
std::string LifeKey(std::string_view cluster, std::string_view node);
std::string PolicyKey(std::string_view cluster, std::string_view group);
std::string WishKey(std::string_view cluster, std::string_view group);
// REQUIRES: partition < kPartitions.
std::string MoveKey(std::string_view cluster, uint16_t partition);

struct ClusterKey {
  enum class Kind { kConfig, kGroup, kNode, kVersion, kRails, kDisk, kLife, kPolicy, kWish, kMove };
  Kind kind = Kind::kConfig;
  std::string name = {};   // of the group or the node; not of kConfig and kMove
  uint16_t partition = 0;  // of kMove

  bool operator==(const ClusterKey&) const = default;
};
// Returns what lies at a key of the cluster, or nullopt if it is none of the above.
std::optional<ClusterKey> ParseClusterKey(std::string_view cluster, std::string_view key);

}  // namespace gannet

#endif  // GANNET_COMMON_CLUSTER_CLUSTER_KEYS_H_
