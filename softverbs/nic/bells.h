#ifndef SOFTVERBS_NIC_BELLS_H_
#define SOFTVERBS_NIC_BELLS_H_

#include <cstdint>
#include <map>
#include <memory>
#include <vector>

#include "softverbs/base/mutex.h"
#include "softverbs/base/unique_fd.h"

namespace softverbs {

// The bells of this process: descriptors that its application threads wait for. Peers ring a bell
// instead of the loop thread. Each bell has a number, which is never reused. Thread safe.
class Bells {
 public:
  // Adds a bell and returns its number. `fd` is an eventfd. The caller owns it and keeps it open
  // until Remove.
  uint32_t Add(int fd);
  void Remove(uint32_t bell);
  // Returns a descriptor to send to a peer, or an invalid one if the bell is gone.
  UniqueFd Open(uint32_t bell);
  // Returns true if the descriptor is readable: a peer rang it, or an event was added, and no
  // thread has read it yet.
  bool Rung(uint32_t bell);

 private:
  Mutex mutex_;
  uint32_t last_ SV_GUARDED_BY(mutex_) = 0;
  std::map<uint32_t, int> fds_ SV_GUARDED_BY(mutex_);
};

// Rings a bell. Returns false if that is not possible.
bool RingBell(int fd);

// The bells that a peer has sent. Not thread safe: the link's transmit lock guards it.
class PeerBells {
 public:
  struct Found {
    std::shared_ptr<const UniqueFd> fd;  // null: the caller rings the peer's loop thread
    bool ask_for_it = false;             // and asks the peer for the bell, which is not known yet
  };
  Found Find(uint32_t bell);
  // Adds a bell that was requested. Ignores other bells, and descriptors that are not eventfds.
  void Install(uint32_t bell, UniqueFd fd);
  void Retire(uint32_t bell);

 private:
  struct Bell {
    uint32_t number;
    std::shared_ptr<const UniqueFd> fd;  // null until the peer has sent it
  };
  static constexpr size_t kMax = 128;

  std::vector<Bell> bells_;
};

}  // namespace softverbs

#endif  // SOFTVERBS_NIC_BELLS_H_
