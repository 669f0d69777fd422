#ifndef GANNET_CLIENT_SESSION_SERVER_RAILS_H_
#define GANNET_CLIENT_SESSION_SERVER_RAILS_H_

#include <arpa/inet.h>

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <set>
#include <string>
#include <vector>

#include "common/base/clock.h"
#include "common/protocol/rails_reply.h"
#include "common/rdma/address.h"

namespace gannet {

// The rails of a session's server, and when to connect by each. The first is that of the first
// connection. A rail that is lost is tried
// again each second, and one that was never reached each 5 seconds. One owner thread.
class ServerRails {
 public:
  static constexpr int64_t kRetryNs = kNsPerSecond;
  static constexpr int64_t kRetryUnreachedNs = 5 * kNsPerSecond;
  // How long an attempt may take. Another rail may be waiting for its own.
  static constexpr int64_t kAttemptNsMax = kNsPerSecond;

  struct Rail {
    SocketAddress address;
    RailEntry entry{};     // as the server told it
    int64_t next_ns = 0;   // when to connect by it
    bool reached = false;  // at some time
    bool told = false;     // that it cannot be reached
    uint64_t works = 0;    // that were posted to its former connections
    uint64_t moves = 0;    // of its connections to their alternate paths and back
  };

  // The first connection was made, by this address. `asked`: the server will tell its rails.
  void Restart(const SocketAddress& address, bool asked) {
    for (const Rail& rail : all_) NoteReached(rail);
    all_.assign(1, Rail{.address = address, .reached = true});
    awaited_ = asked;
  }
  // The server told, or told again: its rails are the same as long as it lives. Uses so many at
  // most: the first connection's, and those that follow it.
  void Learn(const RailsReply& told, uint32_t most) {
    awaited_ = false;
    const uint32_t used = std::min<uint32_t>(told.count, most);
    if (used < 2 || (several() && used != size())) return;  // connections know them by number
    all_.resize(used);
    for (uint32_t i = 0; i < used; ++i) {
      all_[i].entry = told.rails[(told.own_rail + i) % told.count];
      all_[i].address = AddressOf(all_[i].entry);
      all_[i].reached |= i == 0 || reached_.contains(all_[i].address.ToString());
    }
  }
  // No further connection is made before the server has told.
  bool awaited() const { return awaited_; }

  bool several() const { return all_.size() > 1; }
  uint32_t size() const { return static_cast<uint32_t>(all_.size()); }
  Rail& operator[](uint32_t i) { return all_[i]; }
  const Rail& operator[](uint32_t i) const { return all_[i]; }
  std::vector<SocketAddress> Addresses() const {
    std::vector<SocketAddress> addresses;
    for (const Rail& rail : all_) addresses.push_back(rail.address);
    return addresses;
  }

 private:
  // What was reached with a former first connection, is tried again as soon as what was now.
  void NoteReached(const Rail& rail) {
    if (rail.reached && reached_.size() < kReachedMax) reached_.insert(rail.address.ToString());
  }
  static SocketAddress AddressOf(const RailEntry& rail) {
    std::array<std::byte, 18> bytes{};
    const uint16_t port = htons(rail.port);
    std::memcpy(bytes.data(), rail.address.data(), rail.address.size());
    std::memcpy(bytes.data() + rail.address.size(), &port, sizeof(port));
    return SocketAddress::OfNetworkBytes(bytes);
  }

  static constexpr size_t kReachedMax = 64;

  std::vector<Rail> all_;
  std::set<std::string> reached_;
  bool awaited_ = false;
};

}  // namespace gannet

#endif  // GANNET_CLIENT_SESSION_SERVER_RAILS_H_
