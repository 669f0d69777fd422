#ifndef GANNET_TOOLS_KVCLI_CLUSTER_STATE_H_
#define GANNET_TOOLS_KVCLI_CLUSTER_STATE_H_

#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"
#include "common/cluster/cluster_config.h"
#include "common/cluster/group_policy.h"
#include "common/cluster/node_life.h"
#include "common/etcd/etcd_messages.h"
#include "tools/kvcli/member_answer.h"

namespace gannet::kvcli {

// What lies in etcd of a cluster at one revision, what its members answered when they were asked,
// and what operators make of it. Pure: no I/O.

// What lies below lives/, by node: who has said that it has its group's items, which etcd has lost.
struct LifeSeen {
  NodeLife info;
  int64_t mod_revision = 0;
};
using Lives = std::map<std::string, LifeSeen>;

struct ClusterState {
  struct Group {
    GroupConfig config;
    int64_t mod_revision = 0;
  };
  struct Wish {
    GroupWish wish;
    int64_t mod_revision = 0;
  };
  struct Move {
    MoveInfo info;
    int64_t mod_revision = 0;
  };
  std::string name;
  ClusterConfig map = {};
  int64_t map_revision = 0;  // mod_revision
  std::map<std::string, Group> groups;
  std::map<std::string, NodeInfo> nodes;
  std::map<std::string, NodeVersion> versions = {};  // by node
  std::map<std::string, NodeRails> rails = {};       // by node
  std::map<std::string, NodeDisk> disks = {};        // by node
  std::map<std::string, GroupPolicy> policies = {};  // by group
  std::set<std::string> newer_policies = {};         // groups; this version cannot read theirs
  std::map<std::string, Wish> wishes;                // by group
  std::map<uint16_t, Move> moves = {};               // by partition
  std::map<std::string, MemberAnswer> answers = {};  // by node; ReadCluster asks nobody
  Lives lives = {};
  // What Gannet has not written, each with what is wrong with it. It counts as not there.
  std::vector<std::string> unreadable = {};
};

// Reads a list of all keys of a cluster. NotFound: there is no cluster; the text says whether
// members live that know it. Others: the map, or a group's register, cannot be read.
absl::StatusOr<ClusterState> ReadCluster(const std::string& name,
                                         const std::vector<EtcdKeyValue>& items);

// Returns what the group's members do alike; without settings if etcd has nothing.
GroupPolicy PolicyIn(const ClusterState& state, const std::string& group);

// Return what the group becomes. NotFound: there is no such group, or no such member.
// FailedPrecondition says why it may not be done now.
//
// AlreadyExists: the node is a member of this or of another group.
absl::StatusOr<GroupConfig> WithMember(const ClusterState& state, const std::string& group,
                                       const std::string& node);
absl::StatusOr<GroupConfig> WithoutMember(const ClusterState& state, const std::string& group,
                                          const std::string& node);
// The next epoch, of which the node's newest process is primary, alone, with a new history. If etcd
// has lost the group, that is the epoch behind all that members know; or the epoch and the history
// that it has, if the node's process is its primary and lives.
absl::StatusOr<GroupConfig> Forced(const ClusterState& state, const std::string& group,
                                   const std::string& node, uint64_t history);
// Returns OK if the primary may be asked to hand over to this node.
absl::Status MayHandOver(const ClusterState& state, const std::string& group,
                         const std::string& node);

// Returns what a node's newest process announced, if it is the one in sync; otherwise nullptr.
// Others' LSNs say nothing of the group's items.
const NodeInfo* InfoInSync(const ClusterState& state, const GroupConfig& config,
                           const std::string& node);
// Returns what the disk of a node has, if its newest process is not in sync; 0: nothing is known.
uint64_t KeptBy(const ClusterState& state, const GroupConfig& config, const std::string& node);
// What may be lost if this node is forced to be primary.
std::string LossText(const ClusterState& state, const std::string& group, const std::string& node);

}  // namespace gannet::kvcli

#endif  // GANNET_TOOLS_KVCLI_CLUSTER_STATE_H_
