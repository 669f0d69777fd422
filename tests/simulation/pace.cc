#include "tests/simulation/pace.h"

#include <algorithm>

#include "common/base/clock.h"

namespace gannet::simulation {
namespace {

// Bounds of the longest jump of time while nothing happens: far below the time between two
// heartbeats, or two beacons.
constexpr int64_t kJumpNsMin = 5 * kNsPerUs;
constexpr int64_t kJumpNsMax = 4 * kNsPerMs;

}  // namespace

void Pace::StepUntil(int64_t until_ns, const std::function<bool()>& done) {
  int64_t jump_ns = kJumpNsMin;
  uint64_t idle = 0;
  while (!world_.over() && run_->now_ns() < until_ns && !done()) {
    ++turns_;
    if (never_ends()) return run_->Fail(Check::kEnds, "too many steps");
    bool moved = false;
    for (uint64_t n = 1 + run_->Below(4); n > 0; --n) moved |= run_->StepDevice(run_->now_ns());
    world_.turn();
    idle = moved ? 0 : idle + 1;
    if (moved) jump_ns = kJumpNsMin;
    if (idle <= 2) continue;
    // If a Poll of everybody causes no work for the device, nothing is left to do.
    world_.poll_everybody();
    if (run_->StepDevice(std::min({run_->now_ns() + jump_ns, world_.next_ns(), until_ns}))) {
      idle = 0;
    } else {
      jump_ns = std::min(2 * jump_ns, kJumpNsMax);
    }
  }
}

int64_t GapNs(Run* run, int64_t span_ns, uint32_t acts) {
  const int64_t usual_ns = 2 * span_ns / acts;
  return run->LogUniform(100, 4 * usual_ns + 1000);
}

int64_t ShortGapNs(Run* run) { return run->LogUniform(10 * kNsPerUs, 10 * kNsPerMs); }

}  // namespace gannet::simulation
