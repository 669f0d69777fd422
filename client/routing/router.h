#ifndef GANNET_CLIENT_ROUTING_ROUTER_H_
#define GANNET_CLIENT_ROUTING_ROUTER_H_

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "client/routing/rendezvous.h"
#include "common/base/data_path_checks.h"
#include "common/protocol/partition_map.h"

namespace gannet {

// Decides which server of a client's list has a key. It goes by a server's name, however its
// address was written. A server tells its name when a client connects. A server without one has its
// canonical address for a name.
//
// A server that was never reached has told nothing. Its name is then
//   - the one that the user wrote before the '@', if any;
//   - otherwise its canonical address, as long as no server that was reached has a name;
//   - otherwise unknown. Then any key may belong to it, so no key can be routed: see status().
//
// If a server tells another name than was assumed, keys change their servers.
//
// The groups of a cluster are servers, too. Which of them has a key is what the cluster's map says,
// and the names are those of the groups, whatever a member tells.
//
// One owner thread.
class Router {
 public:
  struct Server {
    std::string endpoint;  // as the user wrote it, for messages
    std::string name;      // as the user wrote it; may be empty
    std::string address;   // canonical
  };
  // Where the keys of a partition are, by the cluster's map.
  struct Route {
    uint16_t server = 0;   // of its group
    bool served = true;    // false: nobody serves it now, or it is not known where
    uint32_t changes = 0;  // grows whenever the partition was closed, opened or given away
  };
  // InvalidArgument: two servers have the same name or address.
  static absl::StatusOr<Router> Create(std::vector<Server> servers);

  // From now on the servers are the groups of a cluster, and `routes`, kPartitions of them, say
  // which of them has a key. REQUIRES: the servers have names, no two equal.
  void SetRoutes(std::vector<Server> servers, std::vector<Route> routes);
  bool has_routes() const { return !routes_.empty(); }
  // Returns the route of a partition. REQUIRES: has_routes().
  const Route& RouteOf(uint32_t partition) const {
    GANNET_CHECK_DATA_PATH(partition < routes_.size(), "there is no such route");
    return routes_[partition];
  }
  // There is one server, which has all keys.
  bool one() const { return one_; }

  // Notes that server number `server` was reached and is called `name` (empty: it has no name).
  // Returns true if keys changed their servers. FailedPrecondition: the user wrote another name.
  // InvalidArgument: another server of the list has that name. After an error nothing has changed.
  absl::StatusOr<bool> OnName(uint32_t server, std::string_view name);

  // OK, or Unavailable if a server's name is unknown; the message says what to do.
  const absl::Status& status() const { return status_; }
  // Returns the number of the server that has `key`. REQUIRES: status() is OK.
  uint32_t ServerOf(std::string_view key) const {
    GANNET_CHECK_DATA_PATH(status_.ok(), "it is not known who has the key");
    return one_ ? 0 : ServerOfSeveral(key);
  }
  // Returns the server's name, or the assumed one.
  const std::string& NameOf(uint32_t server) const { return names_[server]; }
  // A hash of the names of all servers, independent of their order. It is 0 as long as one of the
  // names is only assumed. All lists of one server have the same hash, whatever the server's name:
  // only lists with several servers can disagree about keys.
  uint64_t set_hash() const { return set_hash_; }

 private:
  explicit Router(std::vector<Server> servers);

  uint32_t ServerOfSeveral(std::string_view key) const;
  const std::string& CurrentName(uint32_t server) const;
  absl::Status CheckNames() const;
  uint64_t HashOfSet() const;
  void Update();

  std::vector<Server> servers_;
  std::vector<Route> routes_;  // empty: names decide
  bool one_ = false;
  std::vector<std::optional<std::string>> told_;  // by a server that was reached
  std::vector<std::string> names_;                // the names that decide which server has a key
  Rendezvous rendezvous_;
  absl::Status status_;
  uint64_t set_hash_ = 0;
};

}  // namespace gannet

#endif  // GANNET_CLIENT_ROUTING_ROUTER_H_
