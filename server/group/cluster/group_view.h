#ifndef GANNET_SERVER_GROUP_CLUSTER_GROUP_VIEW_H_
#define GANNET_SERVER_GROUP_CLUSTER_GROUP_VIEW_H_

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
#include "common/cluster/cluster_keys.h"
#include "common/cluster/group_policy.h"
#include "common/cluster/node_life.h"
#include "common/etcd/etcd.h"
#include "common/protocol/partition_map.h"
#include "server/group/replica/cluster_register.h"
#include "server/group/replica/config_store.h"
#include "server/group/replica/register.h"
#include "server/group/replica/restart.h"
#include "server/group/replica/served_partitions.h"

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
// What Gannet has not written is not believed, as far as that can be told: what cannot be decoded,
// and a map that no change makes of the one that is known. Once the process has the group's items,
// that holds for the group's register, too: its epoch does not fall, and an epoch has one primary
// and one history. A register of the same epoch that was there already when etcd went back may be
// that of a backup of etcd, which lacks what was changed since. All these stay as they were known.
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
  struct Life {
    NodeLife info;  // without an incarnation: it cannot be read
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
  // different ways. Returns false if it is not believed.
  bool TakeGroup(const GroupConfig& config, int64_t mod_revision);
  bool TakeConfig(ClusterConfig config, int64_t mod_revision);
  // Takes the map that is among the items of an answer. Returns false if none is that can be read
  // and believed.
  bool TakeMap(const std::vector<EtcdKeyValue>& items);

  bool found_cluster() const { return found_cluster_; }
  const std::string& group() const { return group_; }
  // The process has the group's items.
  void SetHasItems() { has_items_ = true; }
  // The same, if this register says so of this process of the node. A register that the view takes
  // from then on says it, too.
  void SetHasItemsIfInSync(uint64_t incarnation, const GroupConfig& config);
  // How state() stands in etcd.
  ConfigStore::Standing standing() const;
  // Whether the process has items of a group of which etcd has no register, or of a cluster of
  // which it has no map, that are believed.
  bool lost() const { return Filters() && (!there_ || !has_map_); }
  // What has an earlier revision was there already when etcd went back: it is not new.
  int64_t trusted_from() const { return trusted_from_; }
  // The revision of the register that is there instead; 0: there is none.
  int64_t other_revision() const { return other_revision_; }
  // Returns what the node says while its group is lost.
  const Life* FindLife(std::string_view name) const;
  // Returns the members of the group that have said that they have its items.
  std::vector<std::string> WithItems() const;

  // The newest that was seen.
  const GroupState& state() const { return *state_; }
  // The newest that was seen. It stays if etcd has none any more.
  const GroupPolicy& policy() const { return policy_; }
  // The revision of what etcd has of it now, 0 if that is nothing. nullopt: it cannot be read, so
  // it is not to be written over.
  std::optional<int64_t> policy_revision() const { return policy_revision_; }
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
  // wishes may be gone that were given up with that map. Or etcd has lost the group, or has a map
  // that is not believed.
  const PartitionMoveWishes* moves() const {
    return watched_ >= map_.mod_revision && !lost() ? &moves_ : nullptr;
  }
  // Returns the address of a group's primary, if the process that the register names has one.
  std::optional<std::string> PrimaryOf(std::string_view group) const;
  std::optional<uint64_t> RingBytesOf(std::string_view group) const;

 private:
  bool Filters() const { return has_items_ && !removed_; }
  bool MayFollow(const GroupConfig& config, int64_t mod_revision) const;
  // Whether a member in sync cannot believe the register yet.
  bool IsDoubted() const;
  void ForgetAll(const EtcdNews& news);
  void TakeItem(const EtcdKeyValue& item);
  // Of the kinds of keys that decide nothing by themselves. Returns what is wrong with it.
  absl::Status TakeNote(const ClusterKey& key, const EtcdKeyValue& item);
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
  std::map<std::string, NodeRails, std::less<>> rails_;
  std::map<std::string, NodeDisk, std::less<>> disks_;
  GroupPolicy policy_;
  std::optional<int64_t> policy_revision_ = 0;
  std::map<std::string, Life, std::less<>> lives_;
  std::optional<Wish> wish_;
  uint64_t incarnation_ = 0;  // of the node's process, once that is known
  bool has_items_ = false;
  bool removed_ = false;        // the group is no part of the cluster any more
  bool there_ = true;           // etcd has state_, or what became of it
  bool has_map_ = true;         // the same of map_
  int64_t other_revision_ = 0;  // if not there_: of the register that is there; 0: none is
  bool other_founded_ = false;  // that has a primary, or cannot be read
  int64_t refused_map_ = 0;     // the revision of the last one that was not believed
  int64_t trusted_from_ = 0;    // what was there before may be of a backup of etcd
};

}  // namespace gannet

#endif  // GANNET_SERVER_GROUP_CLUSTER_GROUP_VIEW_H_
