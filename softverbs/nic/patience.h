#ifndef SOFTVERBS_NIC_PATIENCE_H_
#define SOFTVERBS_NIC_PATIENCE_H_

#include <algorithm>
#include <cstdint>

namespace softverbs {

// Decides how often the engine looks whether the application still drives it. Each look costs a
// wake-up. Taking over from an application that only waits for a core costs more, because the loop
// thread then takes that core from other threads. On the other hand, the peers of an application
// that is busy with something else wait until the next look.
//
// 1. An application that polls is looked at soon, then less and less often, up to kPollsNsMax.
// 2. An application that waits on its bell earns trust: the time doubles, up to kWaitsNsMax, each
//    time it came when it was rung, or would have come if it had a core. The time falls back to
//    kWaitsNs if the application leaves a ring unanswered.
// 3. An application that waits and was not rung since the last look is idle. The engine takes over,
//    which ends the timer.
//
// Not thread safe.
class Patience {
 public:
  static constexpr int64_t kPollsNs = 50'000;
  static constexpr int64_t kPollsNsMax = 1'000'000;
  static constexpr int64_t kWaitsNs = 8'000'000;
  static constexpr int64_t kWaitsNsMax = 64'000'000;

  // What a look at the application found.
  enum class Found : uint8_t {
    kPolls,
    kCame,       // it was woken since the last look; it may wait again by now
    kWantsCore,  // it would poll if it had a core
    kNotRung,    // it waits, and no peer rang
    kLeftAlone,  // it is busy with something else
  };

  // Returns the time until the first look at an application that `waits` on its bell, or polls.
  int64_t Begin(bool waits) {
    polls_ns_ = kPollsNs;
    return waits ? waits_ns_ : polls_ns_;
  }
  // Returns the time until the next look. Returns 0 to take over. `waits` is as for Begin.
  int64_t Next(Found found, bool waits) {
    switch (found) {
      case Found::kPolls:
        return polls_ns_ = std::min(2 * polls_ns_, kPollsNsMax);
      case Found::kCame:
      case Found::kWantsCore:
        return waits_ns_ = std::min(2 * waits_ns_, kWaitsNsMax);
      case Found::kNotRung:
        return 0;
      case Found::kLeftAlone:
        if (waits) waits_ns_ = kWaitsNs;
        return 0;
    }
    return 0;
  }

 private:
  int64_t polls_ns_ = kPollsNs;
  int64_t waits_ns_ = kWaitsNs;
};

}  // namespace softverbs

#endif  // SOFTVERBS_NIC_PATIENCE_H_
