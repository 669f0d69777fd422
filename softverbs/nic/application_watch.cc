#include "softverbs/nic/application_watch.h"

namespace softverbs {
namespace {

// A steady poller polls at least once in this time, on average. Waiting for its next poll costs no
// more than waking the loop thread, which would take a core from another thread.
constexpr int64_t kSteadyPollNs = 50'000;
// A steady poller that had a core polled. One that had a core at so many looks in a row and did not
// poll does something else, however little it ran: for example it polls another device, and gives
// its core up after each poll.
constexpr uint32_t kRanWithoutPollsMax = 4;

}  // namespace

Patience::Found ApplicationWatch::Look(uint32_t polls, bool waits) {
  const int64_t elapsed_ns = MonotonicNs() - marked_ns_;
  // An application that polls in bursts, between other work, is not a steady poller. Its peers
  // would wait until our next look, so it is better that they ring.
  const uint32_t since = polls - marked_polls_;
  if (!waits && since * kSteadyPollNs >= elapsed_ns) {
    ran_without_polls_ = 0;
    return Patience::Found::kPolls;
  }
  const int64_t ran_ns = thread_.CpuNs() - marked_cpu_ns_;
  if (since > 0) {
    ran_without_polls_ = 0;
  } else if (ran_ns > 0) {
    ++ran_without_polls_;
  }
  const bool would_poll =
      since > 0 || (ran_ns < kSteadyPollNs && ran_without_polls_ < kRanWithoutPollsMax);
  const bool had_no_core = 2 * ran_ns < elapsed_ns && (waits || would_poll);
  if (had_no_core && thread_.Runnable()) return Patience::Found::kWantsCore;
  return Patience::Found::kLeftAlone;
}

}  // namespace softverbs
