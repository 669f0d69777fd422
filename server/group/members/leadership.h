#ifndef GANNET_SERVER_GROUP_MEMBERS_LEADERSHIP_H_
#define GANNET_SERVER_GROUP_MEMBERS_LEADERSHIP_H_

#include <cstdint>
#include <string_view>

#include "common/base/boot_time.h"
#include "common/base/checked_state.h"
#include "server/group/members/group_context.h"
#include "server/group/members/primary_phase.h"
#include "server/group/members/primary_ring.h"
#include "server/group/replica/commit.h"
#include "server/group/replica/hand_over.h"
#include "server/group/replica/membership.h"
#include "server/group/replica/opening.h"
#include "server/group/replica/primary_lease.h"

namespace gannet {

// What a primary may do at any time: its phase, who is in sync with it, its lease, and how it gives
// its place to another member.
//
// 1. The phase takes only the steps of PrimaryPhase.
// 2. Whoever is counted by `membership` is counted by the lease and by the commits.
// 3. Clients are told of no lease while it steps down, nor while a successor may have been named.
//
// Only the member's thread changes it. One thread at a time: whoever holds the mutex of
// PrimaryStream. Times are those of CLOCK_BOOTTIME.
class Leadership {
 public:
  // As Primary::Create has them.
  Leadership(const GroupContext& context, const GroupTerms& terms, const GroupRegister& known,
             const RingTail& tail);

  PrimaryPhase phase() const { return phase_.now(); }
  bool open() const { return IsOpen(phase()); }
  // Whether anything may be recorded now. What is published may wait for this (docs/group.md).
  bool records() const { return Records(phase()); }
  // Whether as many members are in sync as operators want now.
  bool HasCopies() const { return membership_.copies() >= min_copies_; }
  // Whether this primary may say of what happened before `now` that it was primary then.
  bool LeaseIsValid(BootTime now) const { return membership_.MayCommit() && lease_.Valid(now); }

  // Sends the tail. Returns whether it is committed, and is to be applied now. REQUIRES: opening.
  bool TryToOpen(PrimaryRing* ring, bool all_linked, BootTime now);
  // Takes clients from now on.
  void Open();
  // An operator may have taken a node out of the group, want another primary, or more copies.
  void FollowOperator(BootTime now);
  // Begins to hand over to the first backup that is in sync and heard, unless that is under way.
  // `why` is for people.
  void StepDown(BootTime now, std::string_view why);
  // Returns whether backups are to be told the last of this primary's clock soon. Before Poll, as
  // HandOver wants.
  bool FollowHandOver(BootTime now);
  void Poll(BootTime now) { membership_.Poll(now); }
  // Ends if somebody else is primary.
  void FollowRegister();
  // Says what this server may do. Clients are told of leases of at most `lease_ns_max`.
  void TellStanding(int64_t lease_ns_max, BootTime now);

  const GroupTerms& terms() const { return terms_; }  // when it became primary
  const Opening& opening() const { return opening_; }
  const HandOver& hand_over() const { return hand_over_; }
  const GroupConfiguration& configuration() const { return membership_.known().configuration; }
  uint64_t epoch() const { return configuration().epoch; }
  PrimaryLease& lease() { return lease_; }
  const PrimaryLease& lease() const { return lease_; }
  Commit& commit() { return commit_; }
  Membership& membership() { return membership_; }
  const Membership& membership() const { return membership_; }

 private:
  void BeginHandOver(const GroupMember& successor, BootTime now);

  const GroupContext& context_;
  const GroupTerms terms_;
  Opening opening_;
  PrimaryLease lease_;
  Commit commit_;
  Membership membership_;
  HandOver hand_over_;
  uint32_t min_copies_;  // as operators have it now
  CheckedState<PrimaryPhase> phase_{PrimaryPhase::kOpening};
};

// Of a group by its terms.
inline GroupTimes TimesOf(const GroupTerms& terms) {
  return {.lease_ns = int64_t{terms.lease_ms} * kNsPerMs};
}

}  // namespace gannet

#endif  // GANNET_SERVER_GROUP_MEMBERS_LEADERSHIP_H_
