#ifndef GANNET_SOFTVERBS_CM_MULTICAST_H_
#define GANNET_SOFTVERBS_CM_MULTICAST_H_

namespace softverbs::cm {

struct CmEvent;

// When the application hears that it joined a group, its queue pair is attached to it; if that
// fails, the event says so. False when the group was left in the meantime. REQUIRES: State::mutex
// is not held.
bool EnterGroup(CmEvent* event);

}  // namespace softverbs::cm

#endif  // GANNET_SOFTVERBS_CM_MULTICAST_H_
