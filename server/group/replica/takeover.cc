#include "server/group/replica/takeover.h"

#include <algorithm>
#include <utility>

#include "common/base/check.h"
#include "common/base/clock.h"

namespace gannet {

Takeover::Takeover(const GroupTimes& times, ConfigStore* config_store, const GroupMember& self,
                   const GroupRegister& known, uint64_t link_epoch, BootTime answered, BootTime now)
    : times_(times),
      config_store_(config_store),
      self_(self),
      known_(known),
      link_epoch_(link_epoch) {
  GANNET_CHECK(known.configuration.IsInSync(self), "it is not in sync");
  watch_.emplace(std::max(answered, now));
}

void Takeover::Learn(const GroupRegister& now_known, BootTime now) {
  if (now_known.revision <= known_.revision) return;
  const bool next_epoch = now_known.configuration.epoch > known_.configuration.epoch;
  known_ = now_known;
  out_ = !known_.configuration.IsInSync(self_);
  if (!next_epoch) return;  // of the same epoch: a candidate tries again
  // A survivor, or an earlier try won, or a hand-over names this member.
  candidate_ = false;
  leaves_silently_ = false;
  watch_.emplace(now);
}

Takeover::Step Takeover::Poll(BootTime now) {
  if (const auto answer = config_store_->Poll()) {
    busy_ = false;
    // After an unknown result it tries again, and finds out by losing if the first try has won.
    if (answer->result != ConfigStore::Result::kUnknown) Learn(answer->now, now);
  }
  if (config_store_->SeesNewer(known_.revision)) Learn(*config_store_->Seen(), now);
  if (out_) return Step::kEnd;
  const GroupConfiguration& configuration = known_.configuration;
  if (!leads() && !candidate_ && watch_->IsOver(times_, now, configuration.OrderOf(self_))) {
    candidate_ = true;
    watch_->Fence();
  }
  // Also one that a new primary has been named for: the old one writes here no more.
  const bool ends = leads() || candidate_ || link_epoch_ != configuration.epoch;
  if (link_epoch_ != 0 && (ends || makes_anew_)) {
    return Step::kFence;
  }
  if (leads()) return Step::kLead;
  if (candidate_) {
    if (busy_) return Step::kWait;
    busy_ = true;
    // If the primary is gone, this copy may be the only one.
    const bool leaves = std::exchange(leaves_silently_, false) && now - told_ < times_.silence_ns();
    config_store_->Txn(known_.revision,
                       leaves ? configuration.Without(self_) : configuration.Under(self_));
    return Step::kWait;
  }
  return link_epoch_ == 0 ? Step::kConnect : Step::kFollow;
}

void Takeover::Leave(uint32_t min_copies) {
  const bool follows = !leads() && !candidate_ && link_epoch_ == known_.configuration.epoch;
  if (busy_ || out_ || !follows || leaves_silently_) return;
  const GroupConfiguration without = known_.configuration.Without(self_);
  if (without.in_sync.size() < min_copies) {
    leaves_silently_ = true;
    watch_->Fence();
    return;
  }
  config_store_->Txn(known_.revision, without);
  busy_ = true;
}

bool Takeover::OnBeacon(BootTime now) {
  if (leads() || link_epoch_ != known_.configuration.epoch) return false;
  told_ = now;
  return watch_->OnBeacon(now);
}

// The former primary may have judged until its lease was over, which may have begun when it sent
// that beacon. Who takes over by itself has waited for longer. Whom a hand-over names may not have,
// and then has heard the last of the clock, unless the primary is of an older version.
ServerTime ExpiryClock::AtTakeover(const GroupTimes& times, BootTime now) const {
  const int64_t least = last_ ? 0 : times.lease_ns + times.lease_ns / 64;
  const int64_t since = std::max(now - heard_, least);
  return told_ + static_cast<uint64_t>((since + kNsPerMs - 1) / kNsPerMs);
}

}  // namespace gannet
