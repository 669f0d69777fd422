#ifndef GANNET_SERVER_GROUP_REPLICA_MAP_STORE_H_
#define GANNET_SERVER_GROUP_REPLICA_MAP_STORE_H_

#include <cstdint>
#include <optional>
#include <utility>
#include <vector>

#include "common/cluster/cluster_config.h"
#include "common/cluster/cluster_keys.h"
#include "server/group/replica/cluster_register.h"

namespace gannet {

// A change of the cluster's map.
struct MapTxn {
  int64_t map_revision = 0;  // SeenMap::mod_revision of the map that `wanted` was made of
  ClusterConfig wanted;
  // GroupRegister::revision of the member's own group. If its register has another one by then, the
  // transaction changes nothing (rule 8). nullopt: it is not compared.
  std::optional<uint64_t> group = std::nullopt;
  // Wishes that it deletes: partitions, and PartitionMoveWish::mod_revision of each. If one has
  // another wish by then, or none, the transaction changes nothing. At most kMovesOfTxnMax.
  std::vector<std::pair<uint16_t, int64_t>> ended = {};
};

// A member's way to the cluster's map. It carries one request at a time, and decides nothing.
// Nothing here blocks. Requests are carried on while the member's ConfigStore is polled.
//
//   store->Txn({.map_revision = store->Seen()->mod_revision, .wanted = *next, ...});
//   ...
//   if (const auto result = store->Poll()) ...
//
// A request of a process whose node has had another process since changes nothing.
//
// Thread safety: one thread, that of the ConfigStore.
class MapStore {
 public:
  enum class Result : uint8_t {
    kWon,   // the map is what was wanted. Seen() has it
    kLost,  // something else was there than what is compared. This request will not win any more
    // Nothing is known. It may have won, and **it may still win later**. Only a changed
    // mod_revision of the map proves that it will not.
    kUnknown,
  };

  virtual ~MapStore() = default;

  // Begins a request. One that is still under way is abandoned: nobody is told its result, which is
  // as good as unknown. REQUIRES: Check(wanted) is OK, and at most kMovesOfTxnMax wishes are ended.
  virtual void Txn(const MapTxn& txn) = 0;
  // Returns the request's result, once. Each request that is not abandoned gets one, within a time
  // that the store limits.
  virtual std::optional<Result> Poll() = 0;
  // Returns the newest map that this member has seen, by its watch or by a result. It may be out of
  // date. nullptr: none yet.
  virtual const SeenMap* Seen() const = 0;
};

}  // namespace gannet

#endif  // GANNET_SERVER_GROUP_REPLICA_MAP_STORE_H_
