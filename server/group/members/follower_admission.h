#ifndef GANNET_SERVER_GROUP_MEMBERS_FOLLOWER_ADMISSION_H_
#define GANNET_SERVER_GROUP_MEMBERS_FOLLOWER_ADMISSION_H_

#include <cstdint>
#include <string>

#include "common/base/boot_time.h"
#include "common/protocol/replica.h"
#include "server/group/members/follower.h"
#include "server/group/members/group_context.h"
#include "server/group/members/leadership.h"
#include "server/group/members/primary_ring.h"

namespace gannet {

// Whom a primary takes as a follower. Each WhyNot returns why it does not, or "" if it does.
//
// One thread at a time: whoever holds the mutex of PrimaryStream.
class FollowerAdmission {
 public:
  // All outlive this.
  FollowerAdmission(const GroupContext& context, const PrimaryRing& ring, const Leadership& lead)
      : context_(context), ring_(ring), lead_(lead) {}

  // `linked`: it has a link already.
  std::string WhyNot(const ReplicaHello& hello, bool linked) const;
  std::string WhyNot(const ReceiverHello& hello, bool linked) const;
  // `former`: the link that is to go on; nullptr: there is none.
  std::string WhyNot(const ReplicaResume& resume, const Follower* former, BootTime now) const;
  // Whether a member speaks a version of the stream, as far as is known.
  bool Speaks(const GroupMember& member, uint16_t version) const;

 private:
  const GroupContext& context_;
  const PrimaryRing& ring_;
  const Leadership& lead_;
};

}  // namespace gannet

#endif  // GANNET_SERVER_GROUP_MEMBERS_FOLLOWER_ADMISSION_H_
