#ifndef GANNET_CLIENT_ROUTING_RENDEZVOUS_H_
#define GANNET_CLIENT_ROUTING_RENDEZVOUS_H_

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace gannet {

// Which of several servers owns a key, by rendezvous hashing ("highest random weight", Thaler and
// Ravishankar, 1998): every client with the same names of servers gives the same answer in whatever
// order it lists them, and taking one server away moves only that server's keys.
//
// The hashes are unseeded XXH3-64 (not an index's seeded hash, which differs per server); the
// weight of a server is Mix64(hash of key ^ hash of its name). Changing any of it loses sight of
// every stored key: a golden test keeps it.
//
// Thread safe as long as nobody assigns to it.
class Rendezvous {
 public:
  explicit Rendezvous(const std::vector<std::string>& names);

  // Index of the server that owns `key`. REQUIRES: there is at least one.
  uint32_t ServerOf(std::string_view key) const {
    return name_hashes_.size() == 1 ? 0 : HighestWeight(key);
  }

 private:
  uint32_t HighestWeight(std::string_view key) const;

  std::vector<uint64_t> name_hashes_;
};

}  // namespace gannet

#endif  // GANNET_CLIENT_ROUTING_RENDEZVOUS_H_
