#include "server/group/replica/partition_end.h"

namespace gannet {

// What clients are told may be a Poll behind (HandOver has the same rule).
void PartitionEnd::FollowClosing(BootTime now) {
  if (!closing_at_) return;
  if (!short_since_) short_since_ = now;
  if (now - *closing_at_ < ShortForNs(times_.lease_ns)) return;
  closing_at_.reset();
  short_since_.reset();
}

void PartitionEnd::Advance(Run* run, const Facts& facts) const {
  const BootTime now = facts.now;
  run->lease_was_valid = run->lease_was_valid || facts.lease_is_valid;
  if (run->phase == Phase::kWorkers && facts.workers_at >= run->revision) {
    // Whoever told a lease by an older map did so before now, which was read after the workers were
    // looked at. If leases had been short for a while, only those told before that were long.
    run->leases_over = now + times_.lease_ns;
    if (short_since_) {
      run->leases_over = std::max(*short_since_ + times_.lease_ns, now + LeaseNsMax());
    }
    run->position = facts.recorded;
    run->phase = Phase::kPublishes;
  }
  if (run->phase == Phase::kPublishes && facts.published >= run->position) {
    run->position = facts.recorded;  // with the deletions that undo
    run->phase = Phase::kCommits;
  }
  if (run->phase == Phase::kCommits && facts.safe >= run->position) {
    run->lsn = facts.committed;
    run->phase = Phase::kLeases;
  }
  if (run->phase == Phase::kLeases && run->lease_was_valid && now >= run->leases_over) {
    run->phase = Phase::kOver;
  }
}

void PartitionEnd::Poll(const Facts& facts) {
  const BootTime now = facts.now;
  FollowClosing(now);
  for (Run& run : runs_) Advance(&run, facts);
  for (; !runs_.empty() && runs_.front().phase == Phase::kOver; runs_.pop_front()) {
    ended_ = {.revision = runs_.front().revision, .lsn = runs_.front().lsn};
  }
  next_at_ = BootTime::Never();
  for (const Run& run : runs_) {
    const bool waits_for_leases = run.phase == Phase::kLeases && run.lease_was_valid;
    next_at_ = std::min(next_at_, waits_for_leases ? run.leases_over : now + kLookNs);
  }
  if (closing_at_) next_at_ = std::min(next_at_, *closing_at_ + ShortForNs(times_.lease_ns));
}

}  // namespace gannet
