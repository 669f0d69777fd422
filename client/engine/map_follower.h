#ifndef GANNET_CLIENT_ENGINE_MAP_FOLLOWER_H_
#define GANNET_CLIENT_ENGINE_MAP_FOLLOWER_H_

#include <cstdint>
#include <list>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "client/engine/map_reader.h"
#include "client/engine/op_rerouting.h"
#include "client/engine/op_table.h"
#include "client/engine/server_set.h"
#include "client/session/session_owner.h"
#include "common/protocol/partition_map.h"
#include "common/rdma/name_lookup.h"

namespace gannet {

class ServerMaker;

// Keeps an Engine at the newest map of its cluster: which groups there are, where their members can
// be reached, and which group has which keys.
//
// A client that lists one group of a cluster is a client of the whole cluster. It begins with a
// server for that group. A map with only this group, never changed, just tells its members. The
// first other map gives the engine a server for each group, and routes. A later map is taken if its
// revision is higher. Then new groups get servers, operations go where their keys are now
// (OpRerouting), and a group that left is dropped once no operation is alive.
//
// If the user lists several servers, they are no cluster. Each group among them is asked for its
// own map, which tells only its members.
//
// One owner thread.
class MapFollower {
 public:
  struct Dependencies {  // outlive this
    OpTable* ops;
    ServerSet* servers;
    OpRerouting* rerouting;
    const ServerMaker* maker;
  };

  // `listed`: the servers of the user's list.
  MapFollower(Dependencies given, std::vector<Router::Server> listed);

  // See SessionOwner.
  void OnReady(uint32_t server, Comeback comeback);
  void OnLost(uint32_t server);
  void OnReply(uint32_t server, const ReplyView& reply);

  // Does what is due: asks for the map, and takes what was read. Returns true if addresses or
  // numbers of servers changed, or keys have other servers. Call it at OpTable::look_ns. It sets
  // that to the time of the next call.
  bool Look();

  // Returns nullopt if a connected server is in a group whose map is not known yet. Otherwise OK,
  // or why the client cannot work:
  //   InvalidArgument: the user lists several servers, and one is a group of a larger cluster.
  //   Unavailable: no member of a group that has keys was started yet.
  std::optional<absl::Status> StartStatus() const;

 private:
  void LookAt(uint32_t reader);
  uint32_t WhomToAsk(uint32_t reader) const;
  void Take(uint32_t reader, PartitionMap map);
  void TakeOfOneGroup(uint32_t server, const PartitionMap& map);
  bool AddGroups(const PartitionMap& map);
  std::vector<SocketAddress> AddressesOf(const PartitionMap::Group& group);
  void TellMembers(const PartitionMap& map);
  void NameFirst(const PartitionMap& map);
  void SetRoutes(PartitionMap map);
  void DropGroups();
  void EndLeaving();
  void PointAtServers();
  bool NeedsMap() const;
  uint32_t ServerOfGroup(const std::string& name) const;

  static constexpr int64_t kDropNs = 100 * kNsPerMs;  // between two tries to drop a group
  static constexpr int64_t kLeaveNs = kNsPerMs;       // how often sessions that end are looked at

  const Dependencies given_;
  std::vector<MapReader> readers_;  // one for each server; in a cluster one
  std::vector<uint32_t> whole_;     // readers that have a whole map, still to be taken
  const std::vector<Router::Server> listed_;
  std::vector<std::string> names_;  // each server's group; empty: not known
  std::vector<bool> several_;       // for each server: its map has other groups, too
  // What is followed. Before there are routes: the map of the only group.
  std::optional<PartitionMap> map_;
  std::vector<uint32_t> changes_;    // kPartitions: Router::Route::changes
  uint32_t homeless_ = 0;            // partitions whose group has no server
  bool drops_ = false;               // a server's group is not in the map any more
  bool moved_ = false;               // what Look returns
  std::list<EngineServer> leaving_;  // of groups that were dropped, until their sessions have ended
  // The names of members of groups that have no server yet.
  std::map<std::string, std::shared_ptr<NameLookup>> lookups_;
};

}  // namespace gannet

#endif  // GANNET_CLIENT_ENGINE_MAP_FOLLOWER_H_
