#ifndef GANNET_SERVER_GROUP_MEMBERS_MEMBER_TASK_H_
#define GANNET_SERVER_GROUP_MEMBERS_MEMBER_TASK_H_

#include <cstdint>
#include <string>
#include <vector>

#include "common/base/boot_time.h"
#include "server/group/replica/register.h"

namespace gannet {

// What people are told of the partitions that come to a group.
struct MoveProgress {
  std::string step;         // what is done now; empty: nothing
  std::string giver;        // the group that they come from
  uint64_t partitions = 0;  // that come now
  uint64_t wanted = 0;      // all that are to come, with these
  uint64_t items = 0;       // taken so far of those that come now
  uint64_t bytes = 0;       // of these items: keys and values
  double walked = 0;        // the share of the giver's memory that was walked through
  uint64_t moved = 0;       // partitions that have come since this process is primary
  std::string trouble;      // why it last began again; empty: it did not
};

// What a group's primary does on the member's thread beside its own work. It never blocks, and one
// Poll takes no longer than a beacon may be late.
//
// Thread safety: the member's thread.
class MemberTask {
 public:
  virtual ~MemberTask() = default;

  // While the primary is open and nobody has deposed it. `own` is the newest register of its group
  // that it knows.
  virtual void Poll(BootTime now, const GroupRegister& own) = 0;
  // To sleep: Arm, Poll once more, wait until one of fds() is readable or for next_at(); Woken.
  virtual void Arm(BootTime now) = 0;
  virtual void Woken() = 0;
  virtual void AddFds(std::vector<int>* fds) const = 0;
  virtual BootTime next_at() const = 0;
  // Fills in what it does.
  virtual void Tell(MoveProgress*) const {}
};

}  // namespace gannet

#endif  // GANNET_SERVER_GROUP_MEMBERS_MEMBER_TASK_H_
