#ifndef SOFTVERBS_CM_MULTICAST_H_
#define SOFTVERBS_CM_MULTICAST_H_

namespace softverbs::cm {

struct CmEvent;

// Attaches the id's queue pair to the group when the application hears that it joined. If that
// fails, the event says so. Returns false if the group was left in the meantime. REQUIRES:
// State::mutex is not held.
bool EnterGroup(CmEvent* event);

}  // namespace softverbs::cm

#endif  // SOFTVERBS_CM_MULTICAST_H_
