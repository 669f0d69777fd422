#ifndef GANNET_SERVER_GROUP_MEMBERS_FOLLOWERS_H_
#define GANNET_SERVER_GROUP_MEMBERS_FOLLOWERS_H_

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "common/base/boot_time.h"
#include "common/base/checked_state.h"
#include "common/protocol/replica.h"
#include "common/rdma/completion.h"
#include "server/group/members/follower.h"
#include "server/group/members/follower_admission.h"
#include "server/group/members/group_context.h"
#include "server/group/members/leadership.h"
#include "server/group/members/primary_link.h"
#include "server/group/members/primary_ring.h"
#include "server/group/members/replica_arrival.h"
#include "server/group/members/ring_wait.h"
#include "server/group/replica/unanswered_beacons.h"

namespace gannet {

// Who follows a primary's stream: the links of backups, of those that join, and of other groups'
// receivers, from a request to connect to their end.
//
// 1. A link that broke is closed, and destroyed once it is flushed.
// 2. One that is in sync stays here, with its place in the ring, until its removal is known.
// 3. A receiver counts neither for the lease nor for commits, nor as a member.
//
// Ship and PollWrites by any thread, the rest by the member's. One thread at a time: whoever holds
// the mutex of PrimaryStream.
class Followers {
 public:
  // `environments`: of each rail's links; their ring is that of `ring`. All of it outlives the
  // followers.
  Followers(const GroupContext& context, std::span<const PrimaryLink::Environment> environments,
            PrimaryRing* ring, Leadership* lead)
      : context_(context),
        environments_(environments),
        ring_(*ring),
        lead_(*lead),
        admission_(context, *ring, *lead) {}

  void OnArrival(ReplicaArrival arrival, BootTime now);
  // A connection of this name is gone.
  void OnGone(uint64_t name, BootTime now);
  // Takes the messages that came.
  struct Heard {
    bool beacon_is_due = false;  // somebody waits for one
    bool closes = false;         // a receiver is going to close partitions
  };
  Heard PollMessages(BootTime now);
  // WRITEs what was appended, to all who follow.
  void Ship();
  // Sees which WRITEs have completed.
  void PollWrites();
  // Whether some link failed since the last DropLinks.
  bool failed() const { return failed_; }
  // Breaks what failed, is silent or too slow, and destroys what is closed.
  void DropLinks(BootTime now);
  // Goes to the newest version of the stream that all speak.
  void RaiseStreamVersion();

  // Whether all who are in sync have a link.
  bool AllLinked() const;
  bool HasReceiver() const;
  const std::vector<std::unique_ptr<Follower>>& all() const { return all_; }
  uint64_t links_broken() const { return links_broken_; }  // of this group's

 private:
  // Whose link this is, if it is still there.
  Follower* Find(uint32_t number);
  bool HasLink(uint64_t incarnation, bool receives) const;
  void Refuse(ReplicaArrival arrival, RejectCode code, std::string_view reason);
  // Returns nullptr if there may be no more links; `arrival` is refused then.
  Follower* Add(ReplicaArrival* arrival, BootTime now);
  void OnMessage(Follower* from, std::span<const std::byte> message, BootTime now, Heard* heard);
  // Each of these returns false if the message is out of place.
  bool OnHello(Follower* from, std::span<const std::byte> message, BootTime now);
  bool OnResume(Follower* from, std::span<const std::byte> message, BootTime now);
  bool OnReceiverHello(Follower* from, std::span<const std::byte> message, BootTime now);
  bool OnAnswer(Follower* from, std::span<const std::byte> message, BootTime now);
  bool OnReady(Follower* from, std::span<const std::byte> message, BootTime now);
  bool IsClosing(const Follower& from, std::span<const std::byte> message) const;
  // The link of who is not welcome: says why, and lets it go.
  void Refuse(Follower* from, std::string_view name, const std::string& why_not, BootTime now);
  // Welcomes who said hello, or refuses it. `joins`: it has no items of the group.
  template <class Hello>
  void Answer(Follower* to, const Hello& hello, FollowerState as, bool joins, BootTime now);
  // Says where the stream begins for it, and until where it keeps the rest of its own tail.
  void Welcome(Follower* to, const RingMark& begin, uint64_t tail_end);
  // Returns why to break a link, or "" if it may go on. `waited`: for room in the ring.
  std::string_view WhyBreak(Follower* follower, int64_t waited, BootTime now);
  void Break(Follower* follower, BootTime now, std::string_view why);
  // The same, as its rail may have died: the backup may go on over another one.
  void OnBroken(Follower* follower, BootTime now, std::string_view why);

  const GroupContext& context_;
  const std::span<const PrimaryLink::Environment> environments_;  // by rail
  PrimaryRing& ring_;
  Leadership& lead_;
  const FollowerAdmission admission_;
  uint32_t next_link_ = 1;
  std::vector<std::unique_ptr<Follower>> all_;
  RingWait ring_wait_;
  bool failed_ = false;
  uint64_t links_broken_ = 0;
};

}  // namespace gannet

#endif  // GANNET_SERVER_GROUP_MEMBERS_FOLLOWERS_H_
