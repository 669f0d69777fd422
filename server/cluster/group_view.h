#ifndef GANNET_SERVER_CLUSTER_GROUP_VIEW_H_
#define GANNET_SERVER_CLUSTER_GROUP_VIEW_H_

#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "common/cluster/cluster_config.h"
#include "common/etcd/etcd_client.h"
#include "common/protocol/partition_map.h"
#include "server/replica/cluster_register.h"
#include "server/replica/register.h"
#include "server/replica/restart.h"
#include "server/replica/served_partitions.h"

namespace gannet {

// A group as it lies in etcd, for the group's rules: its register, and what operators set.
struct GroupState {
  GroupRegister now;  // its revision is the key's mod_revision
  GroupTerms terms;
};

// The only two places where the JSON's struct and the rules' structs meet.
GroupState StateOf(const GroupConfig& config, int64_t mod_revision);
GroupConfig ConfigOf(const GroupTerms& terms, const GroupConfiguration& configuration);

// What a watch of a cluster's keys has told, as far as one node is concerned: its group, the nodes,
// the wish of an operator, what clients are told of all groups, and which partitions are to move.
//
// Thread safety: one thread.
class GroupView {
 public:
  struct Node {
    NodeInfo info;
    int64_t mod_revision = 0;
  };
  struct Wish {
    std::string handover;
    int64_t mod_revision = 0;
  };

  GroupView(std::string cluster, std::string node)
      : cluster_(std::move(cluster)), node_(std::move(node)) {}

  // Finds the node's group in a list of all keys of the cluster, and begins with it.
  //   NotFound: there is no such cluster, or the node is in no group; the text says which.
  //   InvalidArgument, Unimplemented: what lies there cannot be read.
  absl::Status Begin(const std::vector<EtcdKeyValue>& items);
  // REQUIRES: Begin returned OK.
  void Take(const EtcdNews& news);
  // What answers have. What is older than what was seen is dropped: answers and the watch come on
  // different ways.
  void TakeGroup(const GroupConfig& config, int64_t mod_revision);
  void TakeConfig(ClusterConfig config, int64_t mod_revision);
  // Takes the map that is among the items of an answer. Returns false if none that can be read is.
  bool TakeMap(const std::vector<EtcdKeyValue>& items);

  bool found_cluster() const { return found_cluster_; }
  const std::string& group() const { return group_; }
  // The newest that was seen.
  const GroupState& state() const { return *state_; }
  // Those of the state, with the group's policy.
  GroupTerms terms() const;
  const Node* FindNode(std::string_view name) const;
  // Returns what the node's newest process has said of itself.
  std::optional<NodeSeen> SeenOf(std::string_view name) const;
  size_t nodes() const { return nodes_.size(); }  // that have run
  // The revision of etcd up to which the watch has told all.
  int64_t watched() const { return watched_; }
  const std::optional<Wish>& wish() const { return wish_; }
  // REQUIRES: Begin returned OK.
  PartitionMap Map() const;
  // What the map says of the node's group. REQUIRES: Begin returned OK.
  const GroupPartitions& partitions() const { return partitions_; }
  // The newest that was seen. REQUIRES: Begin returned OK.
  const SeenMap& map() const { return map_; }
  // Which partitions are to move. nullptr: an answer has told of a newer map than the watch, so
  // wishes may be gone that were given up with that map.
  const PartitionMoveWishes* moves() const {
    return watched_ >= map_.mod_revision ? &moves_ : nullptr;
  }
  // Returns the address of a group's primary, if the process that the register names has one.
  std::optional<std::string> PrimaryOf(std::string_view group) const;
  std::optional<uint64_t> RingBytesOf(std::string_view group) const;

 private:
  void TakeItem(const EtcdKeyValue& item);
  void Forget(std::string_view key);

  const std::string cluster_;
  const std::string node_;
  bool found_cluster_ = false;
  std::string group_;
  std::optional<GroupState> state_;
  int64_t watched_ = 0;
  SeenMap map_;
  GroupPartitions partitions_;
  PartitionMoveWishes moves_;
  std::map<std::string, GroupConfig, std::less<>> groups_;
  std::map<std::string, Node, std::less<>> nodes_;
  std::map<std::string, NodeVersion, std::less<>> versions_;
  std::map<std::string, NodeDisk, std::less<>> disks_;
  std::optional<GroupPolicy> policy_;
  std::optional<Wish> wish_;
};

}  // namespace gannet

#endif  // GANNET_SERVER_CLUSTER_GROUP_VIEW_H_
