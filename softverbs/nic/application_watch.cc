#include "softverbs/nic/application_watch.h"

namespace softverbs {
namespace {

// A steady poller polls at least once in this time, on average. Waiting for its next poll costs no
// more than waking the loop thread, which would take a core from another thread.
constexpr int64_t kSteadyPollNs = 50'000;

}  // namespace

Patience::Found ApplicationWatch::Look(uint32_t polls, bool waits) const {
  const int64_t elapsed_ns = MonotonicNs() - marked_ns_;
  // An application that polls in bursts, between other work, is not a steady poller. Its peers
  // would wait until our next look, so it is better that they ring.
  const uint32_t since = polls - marked_polls_;
  if (!waits && since * kSteadyPollNs >= elapsed_ns) return Patience::Found::kPolls;
  const int64_t ran_ns = thread_.CpuNs() - marked_cpu_ns_;
  const bool had_no_core =
      2 * ran_ns < elapsed_ns && (waits || since > 0 || ran_ns < kSteadyPollNs);
  if (had_no_core && thread_.Runnable()) return Patience::Found::kWantsCore;
  return Patience::Found::kLeftAlone;
}

}  // namespace softverbs
