#include "server/sessions/locks/lock_rail_life.h"

#include <algorithm>

namespace gannet {

bool LockRailLife::LookDead(const Seen& seen, BootTime now) {
  if (seen.port_up) {
    down_since_ = BootTime::Never();
  } else {
    down_since_ = std::min(down_since_, now);
  }
  const bool down = !seen.port_up && now - down_since_ >= kDownNsMax;
  return down || !seen.swaps;
}

void LockRailLife::End() { state_.To(LockRailState::kEnds); }

void LockRailLife::OnAllKnow(BootTime last_lease, BootTime now) {
  state_.To(LockRailState::kWaits);
  free_at_ = std::max(last_lease, now + silence_ns_);
}

bool LockRailLife::MayServe(bool gone, BootTime now) const { return gone && now >= free_at_; }

void LockRailLife::Serve() {
  state_.To(LockRailState::kServes);
  down_since_ = BootTime::Never();
}

}  // namespace gannet
