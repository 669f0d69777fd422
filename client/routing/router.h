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

namespace gannet {

// Which server of a client's list has a key. What counts is a server's name, not how its address
// was written: the name that it tells when a client connects, or, if it has none, its canonical
// address.
//
// A server that was never reached has told nothing. Its name is then
//   - the one that the user wrote before the '@', if there is one;
//   - otherwise its canonical address, as long as no server that was reached has a name;
//   - otherwise unknown. Any key may then be its key, so none can be routed: status().
//
// A server that tells another name than was assumed changes whose keys are whose. One owner thread.
class Router {
 public:
  struct Server {
    std::string endpoint;  // as the user wrote it, for messages
    std::string name;      // as the user wrote it; may be empty
    std::string address;   // canonical
  };
  // InvalidArgument: two of them have the same name or address.
  static absl::StatusOr<Router> Create(std::vector<Server> servers);

  // Server number `server` was reached and says that its name is `name`; empty: it has none.
  // Returns true if keys changed their servers. Nothing changes after an error. FailedPrecondition:
  // the user wrote another name. InvalidArgument: another server of the list has that name.
  absl::StatusOr<bool> OnName(uint32_t server, std::string_view name);

  // OK, or Unavailable with what to do: a server's name is unknown.
  const absl::Status& status() const { return status_; }
  // The number of the server that has `key`. REQUIRES: status() is OK.
  uint32_t ServerOf(std::string_view key) const { return rendezvous_.ServerOf(key); }
  // As far as it is known.
  const std::string& NameOf(uint32_t server) const { return names_[server]; }
  // Of the names of all servers, the same in whatever order they are listed; 0 as long as one of
  // them is only assumed. A list of one server has the same hash whatever it is called: only lists
  // with several servers can disagree about keys.
  uint64_t set_hash() const { return set_hash_; }

 private:
  explicit Router(std::vector<Server> servers);

  const std::string& CurrentName(uint32_t server) const;
  absl::Status CheckNames() const;
  uint64_t HashOfSet() const;
  void Update();

  std::vector<Server> servers_;
  std::vector<std::optional<std::string>> told_;  // by a server that was reached
  std::vector<std::string> names_;                // by which they are routed
  Rendezvous rendezvous_;
  absl::Status status_;
  uint64_t set_hash_ = 0;
};

}  // namespace gannet

#endif  // GANNET_CLIENT_ROUTING_ROUTER_H_
