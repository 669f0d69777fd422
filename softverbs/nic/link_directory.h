#ifndef SOFTVERBS_NIC_LINK_DIRECTORY_H_
#define SOFTVERBS_NIC_LINK_DIRECTORY_H_

#include <cstdint>
#include <memory>
#include <unordered_map>
#include <vector>

#include "softverbs/base/mutex.h"
#include "softverbs/base/unique_fd.h"
#include "softverbs/nic/control_socket.h"
#include "softverbs/nic/link.h"

namespace softverbs {

class Nic;

// Creates and ends links. The process with the lower slot opens the link of two processes, and the
// other one asks for it. So two processes never open two links at the same time.
class LinkDirectory {
 public:
  LinkDirectory(Nic* nic, UniqueFd listener);
  // Starts to accept peers.
  void Start();

  // Returns the link to the process that owns `slot`, and opens it if there is none. The link may
  // still be connecting. It is down if there is no such process. Thread safe.
  std::shared_ptr<Link> Get(uint32_t slot);

  // Makes the loop thread end the link soon. Thread safe.
  void Drop(uint32_t slot);

  // Asks the peer for a region, the first time only. Thread safe.
  void RequestRegion(Link& link, uint32_t region);
  // Tells every peer to unmap a region. Thread safe.
  void AnnounceRegionGone(uint32_t region);
  // Tells every peer to close a bell. Thread safe.
  void AnnounceBellGone(uint32_t bell);

 private:
  std::shared_ptr<Link> OpenLoopback(uint32_t slot);
  std::shared_ptr<Link> Dial(uint32_t slot);
  std::shared_ptr<Link> Knock(uint32_t slot);
  std::shared_ptr<Link> FindLocked(uint32_t slot) SV_REQUIRES(mutex_);
  std::vector<std::shared_ptr<Link>> All();

  // Loop thread only.
  void OnListener();
  void OnNewcomer(int fd);
  void Welcome(UniqueFd socket, const ControlMessage& hello, const std::vector<UniqueFd>& fds);
  void Watch(const std::shared_ptr<Link>& link, UniqueFd socket);
  void OnLinkSocket(const std::shared_ptr<Link>& link);
  bool OnMessage(Link& link, const ControlMessage& message, std::vector<UniqueFd>& fds);
  void SendRegion(Link& link, uint32_t region);
  void SendBell(Link& link, uint32_t bell);
  void End(const std::shared_ptr<Link>& link);

  struct Newcomer {
    UniqueFd socket;
    Loop::Watch watch = 0;
  };

  Nic* const nic_;
  const UniqueFd listener_;
  std::unordered_map<int, Newcomer> newcomers_;  // loop thread only

  Mutex mutex_;
  std::unordered_map<uint32_t, std::shared_ptr<Link>> links_ SV_GUARDED_BY(mutex_);
};

}  // namespace softverbs

#endif  // SOFTVERBS_NIC_LINK_DIRECTORY_H_
