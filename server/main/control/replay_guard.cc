#include "server/main/control/replay_guard.h"

#include <algorithm>
#include <utility>

namespace gannet {

ReplayGuard::Verdict ReplayGuard::Judge(uint32_t key_id, uint64_t nonce, uint64_t time_ms,
                                        uint64_t now_ms) {
  now_ms_ = std::max(now_ms_, now_ms);
  ForgetOld();
  const uint64_t apart_ms = time_ms < now_ms_ ? now_ms_ - time_ms : time_ms - now_ms_;
  if (apart_ms > kWindowMs) return Verdict::kOtherClock;
  if (time_ms < start_ms_) return Verdict::kBeforeStart;
  const Nonce own{nonce, key_id};
  if (younger_.contains(own) || older_.contains(own)) return Verdict::kRepeated;
  if (younger_.size() >= nonces_max_) return Verdict::kFull;
  younger_.insert(own);
  return Verdict::kFresh;
}

// The time of a request that is accepted now may be ahead by the window. So a copy of it could be
// accepted for two windows from now on.
void ReplayGuard::ForgetOld() {
  constexpr uint64_t kAcceptedForMs = 2 * kWindowMs;
  if (now_ms_ - began_ms_ <= kAcceptedForMs) return;
  older_ = std::exchange(younger_, {});
  began_ms_ = now_ms_;
}

}  // namespace gannet
