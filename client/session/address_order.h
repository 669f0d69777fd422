#ifndef GANNET_CLIENT_SESSION_ADDRESS_ORDER_H_
#define GANNET_CLIENT_SESSION_ADDRESS_ORDER_H_

#include <cstddef>
#include <string>
#include <vector>

#include "common/rdma/address.h"

namespace gannet {

// The order in which a session tries addresses: those that the user listed, and those of members of
// the group that servers told of. A round tries each once.
//
// One owner thread.
class AddressOrder {
 public:
  // The most addresses beside the listed ones. A new one replaces the oldest.
  static constexpr size_t kLearnedMax = 16;

  // REQUIRES: at least one address.
  explicit AddressOrder(std::vector<SocketAddress> listed);

  // The address that is connected, or will be tried next.
  const SocketAddress& current() const { return addresses_[current_]; }
  // It is the one that BeginBehind left for the end of the round.
  bool at_last() const { return current_ == last_ && addresses_.size() > 1; }

  // The names that the user listed have other addresses now: these take the place of the listed
  // ones. A new one is tried first. Does nothing if none is new. REQUIRES: at least one.
  void Replace(std::vector<SocketAddress> listed);

  // These are the members of the group now. Learns those that are new, and forgets learned ones
  // that are none, but for the current and the last one.
  void Learn(const std::vector<SocketAddress>& members);

  // From now on those that the user listed are kept only as long as they are members, too.
  void ListNone() { listed_ = 0; }

  // Begins a round with the current address.
  void Begin();
  // Begins a round with the address behind the current one, which becomes the last.
  void BeginBehind();
  // The current address failed: goes on to one that was not tried in this round. Returns false if
  // there is none. Then a new round has begun.
  bool GoOn();
  // The same, but tries `named` next, unless it was tried in this round, or is the last one.
  // Returns true if it is next.
  bool GoOnTo(const SocketAddress& named);

 private:
  // Returns addresses_.size() if it is none of them.
  size_t Find(const SocketAddress& address) const;
  size_t IndexOf(const SocketAddress& address);
  void Forget(size_t index);

  size_t listed_;
  std::vector<SocketAddress> addresses_;
  std::vector<bool> tried_;  // in this round
  size_t learned_ = 0;       // how many were learned so far
  size_t current_ = 0;
  size_t last_;  // addresses_.size() or more: none
};

}  // namespace gannet

#endif  // GANNET_CLIENT_SESSION_ADDRESS_ORDER_H_
