#ifndef GANNET_SERVER_GROUP_MEMBERS_RING_WAIT_H_
#define GANNET_SERVER_GROUP_MEMBERS_RING_WAIT_H_

#include <cstdint>

#include "common/base/boot_time.h"

namespace gannet {

// For how long changes have waited for room in a full ring, while next to nothing got in. A value
// of many MiB fills a ring that is shorter, and may take seconds on a busy machine. As long as it
// goes on, no backup is too slow.
//
// Thread safety: one thread.
class RingWait {
 public:
  // If so many bytes got in, the wait begins anew.
  static constexpr uint64_t kProgressBytes = 1 << 20;

  // Call it often. `waits`: whether changes wait. `end`: the position of the ring's end. Returns
  // ns; 0 if nothing waits.
  int64_t Look(bool waits, uint64_t end, BootTime now) {
    if (!waits_ || end - from_ >= kProgressBytes) {
      since_ = now;
      from_ = end;
    }
    waits_ = waits;
    return waits ? now - since_ : 0;
  }

 private:
  bool waits_ = false;
  BootTime since_;
  uint64_t from_ = 0;
};

}  // namespace gannet

#endif  // GANNET_SERVER_GROUP_MEMBERS_RING_WAIT_H_
