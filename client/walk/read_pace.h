#ifndef GANNET_CLIENT_WALK_READ_PACE_H_
#define GANNET_CLIENT_WALK_READ_PACE_H_

#include <algorithm>
#include <array>
#include <cstdint>
#include <optional>
#include <utility>

#include "common/base/clock.h"

namespace gannet {

// Says when a walk may post its next READs, which it posts some together and waits for.
//
// With a rate: so that there are at most so many a second. Unused time is lost: a walk that paused
// does not hurry afterwards.
//
// By load: at once, as long as READs take about as long as they can. If they take longer, others
// use the device, the network or the cores, and the walk rests for several times as long as it had
// to wait for them. So it takes what others leave, as a transport with LEDBAT does (RFC 6817).
class ReadPace {
 public:
  // 0: no limit. nullopt: by load.
  explicit ReadPace(std::optional<uint32_t> reads_per_second)
      : reads_per_second_(reads_per_second) {}

  // Returns how long to wait before `reads` are posted, and counts them as posted then.
  int64_t WaitNs(uint32_t reads, int64_t now_ns) {
    if (!reads_per_second_) return std::exchange(rest_ns_, 0);
    if (*reads_per_second_ == 0) return 0;
    const int64_t at_ns = std::max(next_ns_, now_ns);
    next_ns_ = at_ns + int64_t{reads} * kNsPerSecond / *reads_per_second_;
    return at_ns - now_ns;
  }

  // `reads` that were posted together took `ns`, the last of them.
  void Took(uint32_t reads, int64_t ns) {
    if (reads_per_second_) return;
    int64_t& shortest_ns = shortest_ns_[std::min(reads, kTogetherMax)];
    if (shortest_ns == 0 || ns < shortest_ns) shortest_ns = ns;
    rest_ns_ = std::clamp<int64_t>(kRests * (ns - kUsual * shortest_ns), 0, kRestMax * shortest_ns);
  }

 private:
  static constexpr uint32_t kTogetherMax = 32;
  static constexpr int64_t kUsual = 2;     // up to so many times the shortest time is no load
  static constexpr int64_t kRests = 4;     // a rest, in times of what they took longer
  static constexpr int64_t kRestMax = 16;  // a rest, in times of the shortest time

  const std::optional<uint32_t> reads_per_second_;
  int64_t next_ns_ = 0;
  int64_t rest_ns_ = 0;
  // By how many were posted together. 0: none were yet.
  std::array<int64_t, kTogetherMax + 1> shortest_ns_{};
};

}  // namespace gannet

#endif  // GANNET_CLIENT_WALK_READ_PACE_H_
