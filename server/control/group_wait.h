#ifndef GANNET_SERVER_CONTROL_GROUP_WAIT_H_
#define GANNET_SERVER_CONTROL_GROUP_WAIT_H_

#include <algorithm>
#include <cstdint>

namespace gannet {

// Decides how long a sync waits for more writes, which it then serves, too.
//
// Clients that got their answers after one sync send their next writes a moment later. If the next
// sync began at once, for the writes that came during the last one, those of the answered clients
// would have to wait for a third. Two groups would take turns, each sync serving half of the
// writes.
//
// 1. It waits only after a sync, until as many writes wait as clients had under way when that
// ended.
// 2. At most for half of the time that the sync took. If nothing comes for an eighth of it, no more
//    is expected.
//
// A state machine, given its clock. One owner thread.
class GroupWait {
 public:
  // A sync ended. It took `took_ns` and answered so many writes; so many others wait already.
  void Synced(int64_t now_ns, int64_t took_ns, uint64_t answered, uint64_t waiting) {
    expected_ = answered + waiting;
    waiting_ = waiting;
    until_ns_ = now_ns + took_ns / 2;
    quiet_ns_ = took_ns / 8;
    // The answered clients need a moment to send anything at all.
    quiet_until_ns_ = now_ns + took_ns / 4;
  }
  // Returns how long to wait before this is called again; 0: sync now. `waiting` > 0 writes wait.
  int64_t LeftNs(int64_t now_ns, uint64_t waiting) {
    if (waiting != waiting_) {
      waiting_ = waiting;
      quiet_until_ns_ = std::max(quiet_until_ns_, now_ns + quiet_ns_);
    }
    if (waiting >= expected_) return 0;
    return std::max<int64_t>(std::min(until_ns_, quiet_until_ns_) - now_ns, 0);
  }

 private:
  uint64_t expected_ = 0;
  uint64_t waiting_ = 0;  // when it was looked at last
  int64_t until_ns_ = 0;
  int64_t quiet_ns_ = 0;
  int64_t quiet_until_ns_ = 0;
};

}  // namespace gannet

#endif  // GANNET_SERVER_CONTROL_GROUP_WAIT_H_
