#include "server/replica/partition_end.h"

namespace gannet {

// What clients are told may be a Poll behind (HandOver has the same rule).
void PartitionEnd::FollowClosing(int64_t now) {
  if (!closing_at_) return;
  if (!short_since_) short_since_ = now;
  if (now - *closing_at_ < ShortForNs(times_.lease_ns)) return;
  closing_at_.reset();
  short_since_.reset();
}

void PartitionEnd::Poll(const Facts& facts) {
  const int64_t now = facts.now;
  FollowClosing(now);
  lease_was_valid_ = lease_was_valid_ || facts.lease_is_valid;
  if (phase_ == Phase::kWorkers && facts.workers_at >= running_) {
    // Whoever told a lease by an older map did so before now, which was read after the workers were
    // looked at. If leases had been short for a while, only those told before that were long.
    leases_over_ = now + times_.lease_ns;
    if (short_since_) {
      leases_over_ = std::max(*short_since_ + times_.lease_ns, now + LeaseNsMax());
    }
    position_ = facts.recorded;
    phase_ = Phase::kPublishes;
  }
  if (phase_ == Phase::kPublishes && facts.published >= position_) {
    position_ = facts.recorded;  // with the deletions that undo
    phase_ = Phase::kCommits;
  }
  if (phase_ == Phase::kCommits && facts.safe >= position_) {
    lsn_ = facts.committed;
    phase_ = Phase::kLeases;
  }
  if (phase_ == Phase::kLeases && lease_was_valid_ && now >= leases_over_) {
    ended_ = {.revision = running_, .lsn = lsn_};
    phase_ = Phase::kNone;
    if (wanted_ > running_) Begin();
  }
  const bool waits_for_leases = phase_ == Phase::kLeases && lease_was_valid_;
  next_ns_ = phase_ == Phase::kNone ? INT64_MAX : now + kLookNs;
  if (waits_for_leases) next_ns_ = leases_over_;
  if (closing_at_) next_ns_ = std::min(next_ns_, *closing_at_ + ShortForNs(times_.lease_ns));
}

}  // namespace gannet
