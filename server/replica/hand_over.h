#ifndef GANNET_SERVER_REPLICA_HAND_OVER_H_
#define GANNET_SERVER_REPLICA_HAND_OVER_H_

#include <cstdint>
#include <optional>

#include "server/replica/group_times.h"
#include "server/replica/membership.h"
#include "server/replica/register.h"

namespace gannet {

// How a primary gives its place to a backup (docs/group.md, "Hand-over"). It grants no lease and
// takes no request, and waits L, so that no client believes it any more. Then Membership names the
// successor, and from then on allows no commit. If that fails for certain, the primary goes on.
//
//   hand_over.Begin(successor, now);
//   hand_over.Poll(now);             // before membership.Poll
//   if (hand_over.stopped()) ...     // no leases, no requests
//
// Thread safety: one thread. Times are those of CLOCK_BOOTTIME, in ns.
class HandOver {
 public:
  // `membership` outlives this.
  HandOver(const GroupTimes& times, Membership* membership)
      : times_(times), membership_(membership) {}

  // Does nothing if one is under way.
  void Begin(const GroupMember& successor, int64_t now) {
    if (stopped()) return;
    successor_ = successor;
    begun_ = now;
    named_ = false;
  }
  void Poll(int64_t now) {
    if (!stopped()) return;
    if (!named_ && now - begun_ >= times_.lease_ns) {
      membership_->Name(*successor_);
      named_ = true;
    } else if (named_ && !membership_->naming() && !membership_->deposed()) {
      successor_.reset();  // it cannot win any more
    }
  }
  bool stopped() const { return successor_.has_value(); }

 private:
  const GroupTimes times_;
  Membership* const membership_;
  std::optional<GroupMember> successor_;
  int64_t begun_ = 0;
  bool named_ = false;
};

}  // namespace gannet

#endif  // GANNET_SERVER_REPLICA_HAND_OVER_H_
