#ifndef SOFTVERBS_NIC_REMOTE_LINKS_H_
#define SOFTVERBS_NIC_REMOTE_LINKS_H_

#include <infiniband/verbs.h>

#include <array>
#include <compare>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <utility>
#include <vector>

#include "softverbs/base/mutex.h"
#include "softverbs/base/unique_fd.h"
#include "softverbs/nic/link.h"
#include "softverbs/nic/loop.h"
#include "softverbs/nic/net_exchange.h"
#include "softverbs/nic/strangers.h"

namespace softverbs {

class Nic;

// Creates and ends the links to processes of other hosts, if SOFTVERBS_NET is set. A peer is a GID
// and a slot, as one of our own addresses sees it: two processes have a link for each pair of
// addresses that their queue pairs use.
//
// All processes of the user listen at the same TCP port of each address (SO_REUSEPORT). The one
// that accepts a connection looks at its NetOpening, and hands the descriptor to the process that
// it asks for.
//
// Either side dials. If both do, the connection of the lower one of the two (by GID, then slot) is
// kept. A connection that comes for a link which is up replaces it, unless it is older: the peer
// would not have dialed if it still had the link.
class RemoteLinks {
 public:
  explicit RemoteLinks(Nic* nic);
  // Starts to listen. Returns false, says why on stderr and sets errno if that fails.
  bool Start();

  // Returns the link from our own address to the process that owns `slot` of the host with this
  // GID, and dials if there is none. The link may still be connecting, and it may never come up.
  // Thread safe.
  std::shared_ptr<Link> Get(const ibv_gid& own, const ibv_gid& gid, uint32_t slot);

  // Ends the link at once: nothing of it is sent or executed any more. Queue pairs learn of it
  // soon. Thread safe. The engine may be paused.
  void Abort(Link& link);
  // Makes the loop thread end the link soon, because the peer has closed it. Thread safe.
  void Drop(Link& link);

  // Sends what the links still have to send, as far as the kernel takes it. Thread safe.
  void FlushAll();

  // Answers a connection whose NetOpening asks for this process. Loop thread.
  void Answer(UniqueFd socket);
  // Loop thread.
  Strangers& strangers() { return strangers_; }

  // Is called with the port space, port and descriptor of each connection for a listener of
  // rdma_cm. Loop thread. Set it before the first device is opened.
  using ServiceHandler = void (*)(uint32_t space, uint16_t port, UniqueFd socket);
  static void SetServiceHandler(ServiceHandler handler);

  // Returns a NetOpening with what it says of this process.
  NetOpening NewOpening(NetKind kind, uint32_t target, uint32_t space);

 private:
  using Host = std::array<uint8_t, sizeof(ibv_gid)>;
  struct Peer {
    Host own;
    Host host;
    uint32_t slot;
    auto operator<=>(const Peer&) const = default;
  };
  struct Entry {
    std::shared_ptr<Link> link;
    uint64_t incarnation = 0;  // of the peer, if the link is up
    uint64_t dialed = 0;       // the peer's dials up to this one are older than the link
    uint64_t dial = 0;         // ours, while it is under way
    int64_t give_up_ns = 0;    // when not to dial again
    int unanswered = 0;        // dials
  };

  static Host ToHost(const ibv_gid& gid);
  static ibv_gid ToGid(const Host& host);
  // Returns whether we are the lower one of the two.
  bool IsLower(const Peer& peer) const;

  // Loop thread only.
  void Dial(const Peer& peer, const std::shared_ptr<Link>& link);
  // For SOFTVERBS_NET_SELF.
  void LinkToSelf(const Peer& peer, const std::shared_ptr<Link>& link);
  void DialLater(const Peer& peer, const std::shared_ptr<Link>& link);
  // Returns false if nobody needs the link any more. Fills in DialHost's arguments.
  bool BeginDial(const Peer& peer, const std::shared_ptr<Link>& link, NetOpening* opening,
                 int* dials);
  void OnDialed(const Peer& peer, const std::shared_ptr<Link>& link, uint64_t dial,
                DialResult result);
  struct Listener {
    UniqueFd socket;
    Loop::Watch watch = 0;
  };
  void WatchListener(Listener& listener);
  void OnListener(Listener& listener);
  void PauseListener(Listener& listener);
  void Greet(UniqueFd socket);
  void OnNewcomer(int fd);
  void Judge(UniqueFd socket, ssize_t size, const NetOpening& opening);
  void HandOver(UniqueFd socket, const NetOpening& opening);
  Welcome DecideOn(const NetCaller& caller);
  void Welcomed(UniqueFd socket, const NetCaller& caller);
  bool TakeUp(const std::shared_ptr<Link>& link, UniqueFd socket);
  void End(const std::shared_ptr<Link>& link);
  std::shared_ptr<Link> FindLink(const Link& link);

  // A stranger whose NetOpening is still to come.
  struct Newcomer {
    UniqueFd socket;
    Strangers::Id stranger = 0;
    Loop::Watch watch = 0;
    Loop::Timer timer = 0;
  };
  Newcomer TakeNewcomer(int fd);

  Nic* const nic_;
  std::vector<Listener> listeners_;  // does not change once it is started
  // Loop thread only.
  std::map<int, Newcomer> newcomers_;
  Strangers strangers_;

  Mutex mutex_;
  std::map<Peer, Entry> entries_ SV_GUARDED_BY(mutex_);
  uint64_t dials_ SV_GUARDED_BY(mutex_) = 0;
  uint64_t incarnation_ = 0;  // written by Start
};

}  // namespace softverbs

#endif  // SOFTVERBS_NIC_REMOTE_LINKS_H_
