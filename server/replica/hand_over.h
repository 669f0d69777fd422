#ifndef GANNET_SERVER_REPLICA_HAND_OVER_H_
#define GANNET_SERVER_REPLICA_HAND_OVER_H_

#include <algorithm>
#include <cstdint>
#include <optional>

#include "common/base/clock.h"
#include "server/replica/group_times.h"
#include "server/replica/membership.h"
#include "server/replica/register.h"

namespace gannet {

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
// Thread safety: one thread. Times are those of CLOCK_BOOTTIME, in ns.
class HandOver {
 public:
  static constexpr int64_t kShortNs = 50 * kNsPerMs;

  // `membership` outlives this.
  HandOver(const GroupTimes& times, Membership* membership)
      : times_(times), membership_(membership) {}

  // Does nothing if one is under way.
  void Begin(const GroupMember& successor, int64_t now) {
    if (begun()) return;
    successor_ = successor;
    phase_ = Phase::kShortLeases;
    since_ = now;
  }
  // Returns true when it has just come to `ended`: tell backups the clock soon.
  bool Poll(int64_t now) {
    switch (phase_) {
      case Phase::kNone:
        break;
      case Phase::kShortLeases:
        // Clients were told of the last long lease before `since_`.
        if (now - since_ >= times_.lease_ns) phase_ = Phase::kStops;
        break;
      case Phase::kStops:
        phase_ = Phase::kWaits;
        since_ = now;
        break;
      case Phase::kWaits:
        if (now - since_ < kShortNs) break;
        membership_->Name(*successor_, now);
        phase_ = Phase::kNamed;
        return true;
      case Phase::kNamed:
        if (membership_->naming() || membership_->deposed()) break;
        phase_ = Phase::kNone;  // it cannot win any more
        successor_.reset();
    }
    return false;
  }
  bool begun() const { return phase_ != Phase::kNone; }
  // No leases, no requests.
  bool stopped() const { return phase_ > Phase::kShortLeases; }
  // No client believes this primary any more. What a beacon says of its clock now is the last.
  bool ended() const { return phase_ == Phase::kNamed; }
  // Returns the longest lease that clients may be told of.
  int64_t LeaseNsMax() const {
    return !begun() ? times_.lease_ns : stopped() ? 0 : std::min(times_.lease_ns, kShortNs);
  }
  // Returns when to Poll at the latest.
  int64_t next_ns() const {
    switch (phase_) {
      case Phase::kShortLeases:
        return since_ + times_.lease_ns;
      case Phase::kStops:
        return since_;
      case Phase::kWaits:
        return since_ + kShortNs;
      default:
        return INT64_MAX;
    }
  }

 private:
  enum class Phase : uint8_t { kNone, kShortLeases, kStops, kWaits, kNamed };

  const GroupTimes times_;
  Membership* const membership_;
  Phase phase_ = Phase::kNone;
  std::optional<GroupMember> successor_;
  int64_t since_ = 0;
};

}  // namespace gannet

#endif  // GANNET_SERVER_REPLICA_HAND_OVER_H_
