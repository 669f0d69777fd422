#ifndef GANNET_SERVER_GROUP_MEMBERS_MEMBER_SERVER_H_
#define GANNET_SERVER_GROUP_MEMBERS_MEMBER_SERVER_H_

#include <cstdint>
#include <vector>

#include "common/base/server_time.h"
#include "server/sessions/session/session_copies.h"

namespace gannet {

// The server that a group's member is in, as the member sees it. It tells the time by which items
// expire.
//
// Thread safety: WakeMember and published from any thread, the rest from the member's.
class MemberServer : public ServerTimeSource {
 public:
  virtual ~MemberServer() = default;

  // Makes the member's thread call Member::Poll.
  virtual void WakeMember() = 0;
  // A connection of this name is destroyed, and the name may be used again.
  virtual void Forget(uint64_t name) = 0;

  // Lets the store have all that is safe.
  virtual void Publish() = 0;
  // Returns the position in the stream of changes up to which it has all.
  virtual uint64_t published() const = 0;
  // Returns the oldest map by which a worker may still decide something:
  // GroupPartitions::revision.
  virtual uint64_t workers_at() const = 0;

  // Returns how many requests of clients came so far.
  virtual uint64_t requests() const = 0;
  // Returns whether others want the cores of this machine. What can wait pauses then.
  virtual bool CoresAreScarce() = 0;

  // Gives the workers the sessions of the former primary.
  virtual void Adopt(std::vector<SessionCopy> sessions) = 0;
  // This server is primary of that epoch. It takes clients when this has returned.
  virtual void BeginEpoch(uint64_t epoch) = 0;

  // Sets the clock by which items expire, as a primary's is.
  virtual void FollowClock(ServerTime time) = 0;
  // Lets it go on from this time.
  virtual void StartClock(ServerTime time) = 0;
};

}  // namespace gannet

#endif  // GANNET_SERVER_GROUP_MEMBERS_MEMBER_SERVER_H_
