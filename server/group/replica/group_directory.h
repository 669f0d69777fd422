#ifndef GANNET_SERVER_GROUP_REPLICA_GROUP_DIRECTORY_H_
#define GANNET_SERVER_GROUP_REPLICA_GROUP_DIRECTORY_H_

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "common/cluster/group_policy.h"
#include "common/protocol/partition_map.h"
#include "server/group/replica/cluster_register.h"
#include "server/group/replica/register.h"
#include "server/group/replica/restart.h"
#include "server/group/replica/served_partitions.h"

namespace gannet {

// What the processes of a group and its operators tell each other, beside the register. Nothing
// that must be safe is decided by it, but by transactions that compare it. Nothing here blocks;
// what was told is known some time later.
//
// Thread safety: one thread, that of the ConfigStore.
class GroupDirectory {
 public:
  virtual ~GroupDirectory() = default;

  // What operators have set, as far as it is known.
  virtual GroupTerms terms() const = 0;
  // What members are to do alike, as far as it is known; nullptr: nothing is.
  virtual const GroupPolicy* Policy() const { return nullptr; }
  // Tells where this process can be reached ("HOST:PORT", or one for each of its rails, with commas
  // between them), and what it has applied, for people.
  virtual void Announce(const GroupMember& self, std::string_view addresses, uint64_t applied) = 0;
  // What Announce tells next is to be known soon: the process has become something else.
  virtual void AnnounceSoon() {}
  // Returns why nobody can be told anything, if that has been so for a while; "": all can be told.
  virtual std::string WhyNotAnnounced() const { return ""; }
  // Tells what an earlier process of this node left on its disk.
  virtual void AnnounceKept(const KeptRun& /*kept*/) {}
  // This process has all of the group's items that were committed when it was in sync, or it leads.
  // From then on it says that it lives if etcd loses the group's register. `leads`: it is primary,
  // and nobody can have led the group since the register was lost.
  virtual void AnnounceItems(bool /*leads*/) {}
  // Returns the nodes of the group whose processes have said so. As long as there are any, nobody
  // founds the group.
  virtual std::vector<std::string> WithItems() const { return {}; }
  // Returns what is known of a node's newest process; nullopt: nothing, or it has not run yet.
  virtual std::optional<NodeSeen> NodeOf(std::string_view /*node*/) const { return std::nullopt; }
  // Returns the address of a process, or nullopt if it is not known, or if another process of the
  // node has come since.
  virtual std::optional<std::string> AddressOf(const GroupMember& member) const = 0;
  // Returns whether another process with this node's name has announced itself after this one did.
  // This one then ends, and does not execute itself again: two would replace each other for ever.
  virtual bool Replaced() const { return false; }
  // Returns the node to which an operator wants the primary to hand over, if any.
  virtual std::optional<std::string> WantedSuccessor() const = 0;
  // Returns which group has which keys, and where they are; nullopt: there are no other groups.
  virtual std::optional<PartitionMap> Map() const { return std::nullopt; }
  // Returns what that says of this process's group; nullptr as above. It stays as it is while its
  // revision does.
  virtual const GroupPartitions* Partitions() const { return nullptr; }
  // Returns the map as the register has it; nullptr: there are no other groups.
  virtual const SeenMap* Config() const { return nullptr; }
  // Returns the partitions that are to move, to this group and to others. nullptr: as above, or
  // they are not known yet as they were when the map became what it is.
  virtual const PartitionMoveWishes* Moves() const { return nullptr; }
  // Returns the address of a group's primary; nullopt: it has none, or it is not known.
  virtual std::optional<std::string> PrimaryOf(std::string_view /*group*/) const {
    return std::nullopt;
  }
  // Returns the length of a group's rings; nullopt: it is not known.
  virtual std::optional<uint64_t> RingBytesOf(std::string_view /*group*/) const {
    return std::nullopt;
  }
  // The wish is fulfilled, or cannot be.
  virtual void ForgetWantedSuccessor() = 0;
};

}  // namespace gannet

#endif  // GANNET_SERVER_GROUP_REPLICA_GROUP_DIRECTORY_H_
