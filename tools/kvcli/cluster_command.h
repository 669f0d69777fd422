#ifndef GANNET_TOOLS_KVCLI_CLUSTER_COMMAND_H_
#define GANNET_TOOLS_KVCLI_CLUSTER_COMMAND_H_

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "common/cluster/group_policy.h"
#include "common/etcd/etcd_access.h"

namespace gannet::kvcli {

// What "cluster" is to do.
struct ClusterCommand {
  enum class Action : uint8_t {
    kInit,
    kStatus,
    kHandOver,
    kAdd,
    kRemove,
    kForce,
    kSet,
    kAddGroup,
    kRemoveGroup,
    kMove,
    kDrain,
    kBalance,
    kMoves
  };
  struct Group {
    std::string name;
    std::vector<std::string> members;
  };

  Action action = Action::kStatus;
  std::string group;  // of all but init, status, move, balance and moves
  std::string node;   // of handover, add and remove
  std::vector<std::string> etcd;
  EtcdAccess etcd_access;
  std::string cluster;
  std::vector<Group> groups;           // init; add-group: one
  std::optional<uint32_t> lease_ms;    // init, add-group, set
  std::optional<uint32_t> min_copies;  // init, add-group, set
  GroupPolicy policy;                  // init, add-group, set: what members do alike
  std::optional<uint64_t> ring_bytes;  // init, add-group
  bool if_missing = false;             // init: a cluster that is there is no error
  bool check = false;                  // status: the exit code says whether all is well
  std::string from;                    // force: the node whose items are kept
  bool lose_data = false;              // force
  bool even_if_worse = false;          // force: although another copy is better
  std::vector<std::string> abandon;    // init: nodes whose items are gone for good
  std::vector<uint16_t> partitions;    // move; moves: none are all
  std::string to;                      // move: a group
  bool dry_run = false;                // move, drain, balance: only show the plan
  bool stop = false;                   // move, drain, balance, moves: give moves up
  // drain, balance: all partitions count the same. Otherwise kvcli measures them.
  bool by_partitions = false;

  // Returns true if the command changes where partitions are, or which groups there are.
  bool changes_map() const { return action >= Action::kAddGroup; }
  // It goes to servers, beside etcd: it asks members what they are, or READs through memory.
  bool goes_to_servers() const { return action == Action::kStatus || measures(); }
  bool measures() const {
    const bool plans = action == Action::kDrain || action == Action::kBalance;
    return plans && !by_partitions && !stop;
  }
};

// The environment variables that are the defaults of --etcd and --cluster.
inline constexpr char kEtcdVariable[] = "GANNET_ETCD";
inline constexpr char kClusterVariable[] = "GANNET_CLUSTER";

// Fills in what the words left out of etcd and of the cluster's name, as the environment says.
// InvalidArgument: the words do not make a whole command.
absl::Status Complete(ClusterCommand* command);

// "min_copies=N, lease_ms=N, on_full=reject|evict, ..."
std::string WhatCanBeSet();

}  // namespace gannet::kvcli

#endif  // GANNET_TOOLS_KVCLI_CLUSTER_COMMAND_H_
