#ifndef GANNET_CLIENT_WALK_READ_PACE_H_
#define GANNET_CLIENT_WALK_READ_PACE_H_

#include <algorithm>
#include <cstdint>

#include "common/base/clock.h"

namespace gannet {

// Says when the next READs may be posted, so that there are at most so many a second. Unused time
// is lost: a walk that paused does not hurry afterwards.
class ReadPace {
 public:
  // 0: no limit.
  explicit ReadPace(uint32_t reads_per_second) : reads_per_second_(reads_per_second) {}

  // Returns how long to wait before `reads` are posted, and counts them as posted then.
  int64_t WaitNs(uint32_t reads, int64_t now_ns) {
    if (reads_per_second_ == 0) return 0;
    const int64_t at_ns = std::max(next_ns_, now_ns);
    next_ns_ = at_ns + int64_t{reads} * kNsPerSecond / reads_per_second_;
    return at_ns - now_ns;
  }

 private:
  const uint32_t reads_per_second_;
  int64_t next_ns_ = 0;
};

}  // namespace gannet

#endif  // GANNET_CLIENT_WALK_READ_PACE_H_
