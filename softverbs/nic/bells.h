#ifndef SOFTVERBS_NIC_BELLS_H_
#define SOFTVERBS_NIC_BELLS_H_

#include <cstdint>
#include <map>
#include <vector>

#include "softverbs/base/mutex.h"
#include "softverbs/base/unique_fd.h"

namespace softverbs {

// The descriptors of this process that peers may ring instead of its loop thread: those that its
// application threads wait on. A number names one and is never reused. Thread safe.
class Bells {
 public:
  // `fd` is an eventfd, the caller's, and stays open until Remove.
  uint32_t Add(int fd);
  void Remove(uint32_t bell);
  // A descriptor to send to a peer; invalid when there is no such bell any more.
  UniqueFd Open(uint32_t bell);
  // Returns true if somebody rang the bell, or added an event, and nobody took it yet.
  bool Rung(uint32_t bell);

 private:
  Mutex mutex_;
  uint32_t last_ SV_GUARDED_BY(mutex_) = 0;
  std::map<uint32_t, int> fds_ SV_GUARDED_BY(mutex_);
};

// The bells of a peer, as far as it sent them. Not thread safe: the link's transmit lock guards it.
class PeerBells {
 public:
  enum class Rung : uint8_t {
    kYes,
    kAskForIt,  // it is not here: ask the peer for it, once, and ring its loop thread now
    kNo,        // not here yet, or broken: ring the loop thread
  };
  Rung Ring(uint32_t bell);
  // Only one that was asked for is taken, and only an eventfd.
  void Install(uint32_t bell, UniqueFd fd);
  void Retire(uint32_t bell);

 private:
  struct Bell {
    uint32_t number;
    UniqueFd fd;  // invalid until it came
  };
  static constexpr size_t kMax = 128;

  std::vector<Bell> bells_;
};

}  // namespace softverbs

#endif  // SOFTVERBS_NIC_BELLS_H_
