#ifndef GANNET_SERVER_GROUP_MEMBERS_FOLLOWER_H_
#define GANNET_SERVER_GROUP_MEMBERS_FOLLOWER_H_

#include <cstdint>
#include <memory>

#include "common/base/boot_time.h"
#include "common/base/checked_state.h"
#include "common/protocol/group_member.h"
#include "server/group/members/control_messages.h"
#include "server/group/members/follower_state.h"
#include "server/group/members/primary_link.h"
#include "server/group/replica/unanswered_beacons.h"
#include "server/log/stream/ring_writer.h"

namespace gannet {

// Whoever has a link to a primary.
struct Follower {
  std::unique_ptr<PrimaryLink> link;
  uint8_t rail = 0;  // by which the link goes
  CheckedState<FollowerState> state{FollowerState::kGreets};
  GroupMember member;           // who it is. From its hello on, as is `ring`
  RingWriter::LinkId ring = 0;  // its place
  uint64_t applied = 0;
  // Fewer than a backup's receives, of which it needs one for the welcome.
  UnansweredBeacons beacons{ControlMessages::kPlaces / 2};
  BootTime since;
  // If its link broke: until then the backup may go on over another rail. Of one that is in sync,
  // as long as it is counted.
  BootTime resumes_until;
  // Its link goes on from a former one, and its first answer has not come by it. Until then the
  // backup may leave it before the welcome is there, and reads nothing of its ring.
  bool to_answer_first = false;
  uint64_t ended_told = 0;  // to a receiver: the revision of the last map whose partitions ended

  bool said_hello() const {
    return state.now() != FollowerState::kGreets && state.now() != FollowerState::kReplaced;
  }
  // Whether its link broke, and may go on over another rail.
  bool may_resume() const { return is_backup() && resumes_until != BootTime(); }
  bool receives() const { return state.now() == FollowerState::kReceives; }
  bool is_backup() const { return said_hello() && !receives(); }
  // A backup is in sync, or asks to be.
  void Count() {
    if (state.now() == FollowerState::kFollows) state.To(FollowerState::kCounted);
  }
  // Whether it can be sent what comes: messages, and records.
  bool follows() const { return said_hello() && link->usable(); }
  bool takes_records() const { return follows() && !to_answer_first; }
};

}  // namespace gannet

#endif  // GANNET_SERVER_GROUP_MEMBERS_FOLLOWER_H_
