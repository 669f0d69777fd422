#ifndef GANNET_SERVER_GROUP_REPLICA_HAND_OVER_H_
#define GANNET_SERVER_GROUP_REPLICA_HAND_OVER_H_

#include <algorithm>
#include <cstdint>
#include <optional>

#include "common/base/boot_time.h"
#include "common/base/checked_state.h"
#include "common/base/clock.h"
#include "server/group/replica/group_times.h"
#include "server/group/replica/membership.h"
#include "server/group/replica/register.h"

namespace gannet {

// The steps of a hand-over:
//
//   none --Begin--> short leases --L is over--> stops --Poll--> waits --they are over--> named
//     ^                                                                                    |
//     +-----------------------the successor is not named, and cannot be any more----------+
enum class HandOverPhase : uint8_t {
  kNone,
  kShortLeases,  // serves, and tells clients of short leases only
  kStops,        // serves no more. Clients are told so before the next Poll
  kWaits,        // until the short leases are over
  kNamed,        // the successor is named, or is to be
};

constexpr bool MayFollow(HandOverPhase from, HandOverPhase to) {
  using enum HandOverPhase;
  switch (from) {
    case kNone:
      return to == kShortLeases;
    case kShortLeases:
      return to == kStops;
    case kStops:
      return to == kWaits;
    case kWaits:
      return to == kNamed;
    case kNamed:
      return to == kNone;
  }
  return false;
}

// How a primary gives its place to a backup (docs/group.md, "Hand-over"):
//
//   1. For L it tells clients of short leases only, and serves. Then no longer one is valid.
//   2. It grants no lease, takes no request, and waits until the short ones are over: nobody
//      believes it any more.
//   3. Backups are told this primary's clock as its last: nothing counts any more that it judges.
//      Once the successor has answered that, Membership names it, and from then on allows no
//      commit. If that fails for certain, the primary goes on.
//
//   hand_over.Begin(successor, now);
//   hand_over.Poll(now);             // before membership.Poll
//   grant(min(lease, hand_over.LeaseNsMax()));
//
// What clients are told may be a Poll behind. So the wait begins with the Poll behind the one that
// stopped: REQUIRES: between two Polls clients are told anew, and `now` was read after that.
//
// Thread safety: one thread. Times are those of CLOCK_BOOTTIME.
class HandOver {
 public:
  static constexpr int64_t kShortNs = 50 * kNsPerMs;

  // `membership` outlives this.
  HandOver(const GroupTimes& times, Membership* membership)
      : times_(times), membership_(membership) {}

  // Does nothing if one is under way.
  void Begin(const GroupMember& successor, BootTime now) {
    if (begun()) return;
    successor_ = successor;
    To(HandOverPhase::kShortLeases, now);
  }
  // Returns true when it has just come to `ended`: tell backups the clock soon.
  bool Poll(BootTime now) {
    using enum HandOverPhase;
    switch (phase_.now()) {
      case kNone:
        break;
      case kShortLeases:
        // Clients were told of the last long lease before `since_`.
        if (now - since_ >= times_.lease_ns) To(kStops, now);
        break;
      case kStops:
        To(kWaits, now);
        break;
      case kWaits:
        if (now - since_ < kShortNs) break;
        membership_->Name(*successor_, now);
        To(kNamed, now);
        return true;
      case kNamed:
        if (membership_->naming() || membership_->deposed()) break;
        To(kNone, now);  // it cannot win any more
    }
    return false;
  }
  bool begun() const { return phase_.now() != HandOverPhase::kNone; }
  // No leases, no requests.
  bool stopped() const { return phase_.now() > HandOverPhase::kShortLeases; }
  // No client believes this primary any more. What a beacon says of its clock now is the last.
  bool ended() const { return phase_.now() == HandOverPhase::kNamed; }
  // Returns the longest lease that clients may be told of.
  int64_t LeaseNsMax() const {
    return !begun() ? times_.lease_ns : stopped() ? 0 : std::min(times_.lease_ns, kShortNs);
  }
  // Returns when to Poll at the latest.
  BootTime next_at() const {
    using enum HandOverPhase;
    switch (phase_.now()) {
      case kShortLeases:
        return since_ + times_.lease_ns;
      case kStops:
        return since_;
      case kWaits:
        return since_ + kShortNs;
      case kNone:
      case kNamed:
        return BootTime::Never();
    }
    return BootTime::Never();
  }

 private:
  void To(HandOverPhase next, BootTime now) {
    phase_.To(next);
    since_ = now;
  }

  const GroupTimes times_;
  Membership* const membership_;
  CheckedState<HandOverPhase> phase_{HandOverPhase::kNone};
  BootTime since_;                        // in this phase
  std::optional<GroupMember> successor_;  // of the last one
};

}  // namespace gannet

#endif  // GANNET_SERVER_GROUP_REPLICA_HAND_OVER_H_
