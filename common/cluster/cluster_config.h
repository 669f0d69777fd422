#ifndef GANNET_COMMON_CLUSTER_CLUSTER_CONFIG_H_
#define GANNET_COMMON_CLUSTER_CLUSTER_CONFIG_H_

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"
#include "common/protocol/group_member.h"
#include "common/protocol/partition_map.h"

namespace gannet {

// What lies in etcd of a cluster, as JSON (cluster_keys.h says where; docs/group-recovery.md has
// examples).
//
// The decoders take whatever bytes are there, and are strict: a field that is missing, unknown, or
// of a wrong type is an error, because a process that misreads who is primary loses data. An older
// process must not read a newer format: ClusterConfig::format says which one all keys have.
// NodeVersion, NodeRails, NodeDisk and MoveInfo, which came later, have formats of their own.
// Unimplemented: the format is a newer one. InvalidArgument says what is wrong, and where. The
// encoders require what the decoders check.

// 1 as long as the map is the one that the cluster was created with. A process that does not know
// of changes must not serve by a map that has been changed.
inline constexpr uint32_t kClusterFormat = 2;
inline constexpr uint32_t kGroupLeaseMsDefault = 600;
inline constexpr uint64_t kGroupRingBytesDefault = 16 << 20;

// Which group has which partition, and when that changed (docs/partitions.md). partitions[p] is the
// place of its group in `groups`. map_changes.h makes the next configuration of one.
struct ClusterConfig {
  std::vector<std::string> groups;   // names, ascending, no two equal
  std::vector<uint16_t> partitions;  // kPartitions of them
  // The map's. It grows by one with each change. 0: none was made, and what follows is empty.
  uint64_t revision = 0;
  std::vector<uint64_t> changed;  // kPartitions of them: when it was closed, opened or given
  std::vector<uint16_t> closed;   // partitions that nobody serves, ascending
  std::vector<uint64_t> lost;     // for each of `groups`, when it last closed a partition

  bool operator==(const ClusterConfig&) const = default;
};

// Who a group is. A transaction that changes it compares its mod_revision.
struct GroupConfig {
  uint64_t history = 0;  // of the group's items; never 0. Another one: items were lost
  uint64_t epoch = 0;    // grows with each primary; 0: no process has been primary yet
  // While the epoch is 0, `primary` has no node, and nobody is in sync. Later, `primary` is one of
  // those in sync.
  GroupMember primary;
  std::vector<GroupMember> in_sync;
  std::vector<std::string> members;  // nodes that may be in sync, by rank; no two equal
  uint32_t lease_ms = kGroupLeaseMsDefault;
  uint32_t min_copies = 1;  // with fewer in sync, no write is taken
  uint64_t ring_bytes = kGroupRingBytesDefault;

  bool operator==(const GroupConfig&) const = default;
};

// What a process says of itself. What a process sends is executed by etcd only as long as this
// names the process (BeginningOf).
struct NodeInfo {
  uint64_t incarnation = 0;
  std::string address;   // "10.0.0.1:7471"
  uint64_t applied = 0;  // LSN

  bool operator==(const NodeInfo&) const = default;
};

// Which version of Gannet a process is. It lies beside its NodeInfo, to which no field can be
// added: release 0.1.0 must read it. That release writes no NodeVersion.
struct NodeVersion {
  uint64_t incarnation = 0;  // of the process; other processes of the node may be of other versions
  std::string version;       // "0.2.0", for people
  bool moves = false;        // it can move partitions, and serves while others do
  uint32_t stream = 0;       // the newest version of the stream that it speaks (docs/versions.md)

  bool operator==(const NodeVersion&) const = default;
};

// Where a process that has several rails can be reached (docs/rails.md). A process of an older
// version does not know of it, and takes the address of the NodeInfo.
struct NodeRails {
  uint64_t incarnation = 0;        // of the process
  std::vector<std::string> rails;  // "10.0.0.1:7471", two or more of them, in its own order

  bool operator==(const NodeRails&) const = default;
};

// What an earlier process of a node left on its disk of its group's items, as the node's process
// says when it starts (docs/group-recovery.md, "A whole group that restarts").
struct NodeDisk {
  uint64_t incarnation = 0;  // of the process that says so
  uint64_t run = 0;          // incarnation of the process that kept them
  uint64_t history = 0;      // of the group's items
  uint64_t applied = 0;      // LSN: everything up to there is on the disk, at least
  bool always = false;       // it was kept with --sync=always
  // The last epoch in which that process took clients as primary with --sync=always; 0: in none.
  // The disk has all that was acknowledged in it.
  uint64_t opened = 0;

  bool operator==(const NodeDisk&) const = default;
};

// A partition is to have another group (docs/partitions.md). Who has it now is in the map.
struct MoveInfo {
  std::string to;     // a group
  std::string asked;  // by whom and when, for people
  // It is not wanted any more. The receiver opens the partition again if it is closed, and deletes
  // this.
  bool stop = false;

  bool operator==(const MoveInfo&) const = default;
};

// What an operator wants of a group. Its primary deletes it when that is done, or cannot be.
struct GroupWish {
  std::string handover;  // the node that is to be primary

  bool operator==(const GroupWish&) const = default;
};

// Return what is wrong with it, or OK.
absl::Status Check(const ClusterConfig& config);
absl::Status Check(const GroupConfig& group);
absl::Status Check(const NodeInfo& node);
absl::Status Check(const NodeVersion& version);
absl::Status Check(const NodeRails& rails);
absl::Status Check(const NodeDisk& disk);
absl::Status Check(const GroupWish& wish);
absl::Status Check(const MoveInfo& move);

std::string Encode(const ClusterConfig& config);
std::string Encode(const GroupConfig& group);
std::string Encode(const NodeInfo& node);
std::string Encode(const NodeVersion& version);
std::string Encode(const NodeRails& rails);
std::string Encode(const NodeDisk& disk);
std::string Encode(const GroupWish& wish);
std::string Encode(const MoveInfo& move);
// Returns how Encode(node) begins for all that a process says of itself, and for no other process.
std::string BeginningOf(const NodeInfo& node);

absl::StatusOr<ClusterConfig> DecodeClusterConfig(std::string_view text);
absl::StatusOr<GroupConfig> DecodeGroupConfig(std::string_view text);
absl::StatusOr<NodeInfo> DecodeNodeInfo(std::string_view text);
absl::StatusOr<NodeVersion> DecodeNodeVersion(std::string_view text);
absl::StatusOr<NodeRails> DecodeNodeRails(std::string_view text);
absl::StatusOr<NodeDisk> DecodeNodeDisk(std::string_view text);
absl::StatusOr<GroupWish> DecodeGroupWish(std::string_view text);
absl::StatusOr<MoveInfo> DecodeMoveInfo(std::string_view text);

}  // namespace gannet

#endif  // GANNET_COMMON_CLUSTER_CLUSTER_CONFIG_H_
