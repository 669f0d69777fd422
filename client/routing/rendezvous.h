#ifndef GANNET_CLIENT_ROUTING_RENDEZVOUS_H_
#define GANNET_CLIENT_ROUTING_RENDEZVOUS_H_

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "common/base/data_path_checks.h"

namespace gannet {

// Decides which of several servers owns a key, by rendezvous hashing ("highest random weight",
// Thaler and Ravishankar, 1998). Every client with the same server names gets the same answer, in
// whatever order it lists them. Removing a server moves only that server's keys.
//
// The hashes are unseeded XXH3-64, because an index's seeded hash differs from server to server.
// The weight of a server is Mix64(hash of key ^ hash of its name). Any change here would lose all
// stored keys, so a golden test fixes it.
//
// Thread safe as long as nobody assigns to it.
class Rendezvous {
 public:
  explicit Rendezvous(const std::vector<std::string>& names);

  // Returns the index of the server that owns `key`. REQUIRES: there is at least one server.
  uint32_t ServerOf(std::string_view key) const {
    GANNET_CHECK_DATA_PATH(!name_hashes_.empty(), "there is no server");
    return name_hashes_.size() == 1 ? 0 : HighestWeight(key);
  }

 private:
  uint32_t HighestWeight(std::string_view key) const;

  std::vector<uint64_t> name_hashes_;
};

}  // namespace gannet

#endif  // GANNET_CLIENT_ROUTING_RENDEZVOUS_H_
